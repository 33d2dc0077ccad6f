//! Graphs and models that are changed.

use super::{Remedy, remedies};

remedies! {
    TRANSFORMATION_INVALID
        "`transform` returned no graph module, or `compose` got nothing, a list, or a class \
         instead of an instance.",
        "End `transform` with `return graph_module`; write `compose(MergeLinears(), ...)`.";
    SIGNATURE_UNDEFINED
        "A parameter (a lambda, an open file) has no value that is the same in every process, \
         or changed while the transformation ran.",
        "Return stable values from `signature_parameters`; keep counters and caches out of it.";
    MARK_MISSING
        "`mark_as_restored` was called on a node that this transformation did not mark.",
        "Restore only what `mark_as_transformed` marked.";
    MARKS_UNPLACED
        "A graph was loaded from a file and changed before its marks were read, so that they \
         fit no node.",
        "Read the marks right after loading, before any other change.";
    BATCH_NORM_TRAINING
        "A batch norm in training mode, or without running statistics, normalises by each \
         batch; no constant can stand for it.",
        "Call `.eval()` on the model before it is traced.";
    MATCH_DECLINED
        "A pattern was found and left alone, as a precondition does not hold; the message says \
         which.",
        "Nothing needs to be done. To have it changed, change what the precondition is about.";
    NOT_REVERSIBLE_NOW
        "The graph was changed after the transformation, so that the old nodes cannot be put \
         back.",
        "Undo later transformations first, the latest at the beginning.";
    GRAPH_UNUSABLE
        "The model cannot be traced by torch.fx, does not run on the given inputs, or no inputs \
         were given.",
        "Trace it with a tracer that knows its leaves and give the graph; give inputs that the \
         model takes.";
    TRANSFORMATION_FAILED
        "The code of the transformation raised; its exception is in the message.",
        "Correct the transformation. Nothing is concluded from it.";
    TRANSFORMED_DIFFERS
        "On some input the transformed graph gives other values, or raises.",
        "`first_difference` names the first node that lost its value. Correct the \
         transformation, or let it claim less.";
    CHANGE_UNMARKED
        "Nodes were added or changed without a mark, so that nobody can find them.",
        "Call `mark_as_transformed` on each; or `require_marks=False`.";
    NOT_RESTORED
        "After `reverse=True` names, order, values or marks are not what they were.",
        "Let `reverse` undo everything that `transform` did.";
    ORIGINAL_CHANGED
        "Modules of the model that was traced were changed; a graph shares them with it.",
        "Put a changed copy of the module into the graph module instead.";
    NOTHING_CLAIMED
        "`preserves_computation` is false, so that there is no claim to hold the outputs \
         against.",
        "Set it if the transformation is to keep the outputs; else the difference is only \
         reported.";
    TRACE_DIFFERS
        "torch.fx decided something while tracing that the model decides anew each time.",
        "Trace with inputs and settings that are used later, or rewrite the branch.";
    RANK_DIFFERS
        "The batch norm was folded for inputs of two axes, and the graph is run on others.",
        "Transform a graph with shapes (`torch.fx.passes.shape_prop`), where others are left \
         alone.";
    NOTHING_TRANSFORMED
        "No pattern was found, or every match was declined.",
        "`declined(graph)` says why; give a model that has the pattern.";
    PATCH_BREAKS_GRAPH
        "A pass proposed a change after which a value would have no producer, or two. It was \
         refused as a whole.",
        "This is a fault of the pass: please report it; leave the pass out with `--passes \
         default,-NAME`.";
    PASS_UNKNOWN
        "`--passes` names a pass that does not exist.",
        "`veracity passes` lists them; the hint has the nearest.";
    REWRITE_WRONG
        "Beside what it replaced, a rewrite gives other values than its class allows.",
        "By default it is taken back alone and the rest stays. `veracity bisect MODEL --repro \
         DIR` shows it; please report it.";
    REWRITE_UNCHECKED
        "The engine could not run the rewrite beside what it replaced, so that nothing is known \
         about it.",
        "Give inputs with `--inputs`, another engine, or leave the pass out.";
    LOG_UNREADABLE
        "The file is no log of rewrites, is damaged, or was written by a newer major version.",
        "Transform the original again.";
    LOG_MISFIT
        "The log beside the model is about another model, or the model was changed since.",
        "Bring the model and its log together again, or transform the original again.";
    BISECT_NOTHING
        "With every rewrite in, the outputs agree with the original's.",
        "There is nothing to find. A fault that the outputs do not show is looked for by \
         `--validate local`.";
    TOOL_FAILED
        "The command of `--tool` cannot be started, ended with an error, or wrote no model to \
         `{out}`.",
        "Run it by hand with the files of the message. `{in}`, `{out}` and `{skip}` are filled \
         in; words are split at spaces.";
    FUNCTION_RECURSIVE
        "Functions in the model call each other in a circle, which ONNX does not allow.",
        "Export the model again, or ask the tool that made it.";
    FUNCTION_VERSIONS
        "A function of the model was written for another version of the operators than the \
         model, so that it cannot be put in place.",
        "Export with one opset for all, or convert with `onnx.version_converter`.";
    FUNCTION_MISFIT
        "A call hands over more values than the function takes, or putting functions in place \
         would make the model too large.",
        "Export the model again without functions.";
    BISECT_UNDECIDED
        "A model in the middle of the search cannot be run or compared, so that halving cannot \
         go on.",
        "Give inputs that the model can be run on, or another engine.";
    TOOL_ALWAYS_WRONG
        "With every name left out the result still is wrong: the fault is in something that was \
         not named.",
        "Name more of what the optimiser can leave out; ONNX Runtime ignores names that it does \
         not have.";
    REPLAY_DIFFERS
        "Doing the logged rewrites again gives other bytes: another version of Veracity, or the \
         log is not complete.",
        "Use the version that wrote it, or transform the original again.";
    LOG_CHANGED
        "The log was edited after the model had recorded its hash.",
        "Take the log as it was written, or transform the original again.";
    ELEMENTS_MISSING
        "The file with the elements (`OUT.rewrites.safetensors`) is missing or belongs to \
         another result.",
        "Copy it along with the model and its log.";
    REVERSE_DIFFERS
        "What was put together from result, log and elements does not have the hash of the \
         original.",
        "The files do not belong together: take those that were written together.";
    AUDIT_UNKNOWN
        "No node or value of this name is in the log, the model or the original.",
        "Take the nearest name from the hint.";
}
