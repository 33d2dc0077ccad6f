//! Recording code and exporting it.

use super::{Remedy, remedies};

remedies! {
    SESSION_STATE
        "`stop` without `start`, `compile_graph` while recording or with nothing recorded, or \
         LEAPP was imported before it was to be replaced.",
        "`start`, run the code, `stop`, `compile_graph`; or `with veracity.session(...)` and \
         `compile_graph` after it.";
    ANNOTATION_TYPE
        "An annotation got a bare tensor, a mixed list, a name that is no text, or the \
         decorator stands without parentheses.",
        "Give `{\"name\": tensor}`, a `TensorSemantics`, or a list of those; write \
         `@annotate.method()`.";
    ANNOTATION_NAME
        "A name stands twice or cannot be a name, or a period or frequency is not positive.",
        "Give each value of a node a name of its own.";
    TRACED_NODE_UNKNOWN
        "`output_tensors`, `state_tensors` or another mark names a node that `input_tensors` \
         did not begin on this pass.",
        "Call `input_tensors` first, with the same name.";
    TRACED_NODE_UNFINISHED
        "A node has inputs and its `output_tensors` was never reached: an early return, an \
         exception, another name.",
        "Call `output_tensors` with the same node name on every way through the code.";
    REENTRY_DIFFERS
        "A later pass marks other names, shapes or dtypes than the first, or the same node is \
         begun on another line. A node has one program.",
        "Give the second place a node name of its own, and keep shapes fixed.";
    VALUES_MIXED
        "A value of a node that is still open is used inside of another node, so that it \
         belongs to both.",
        "Finish the first node, and give the value to the second as an input.";
    OUTPUT_UNTRACED
        "An output was not computed from the inputs: a constant, a tensor from elsewhere, the \
         original variable instead of the one that `input_tensors` returned.",
        "Use what `input_tensors` returned; give constants as `static_outputs`.";
    STATE_MISMATCH
        "`update_state` gives another name, shape or dtype than `state_tensors` declared, or \
         two nodes change one state.",
        "Declare and update the same names with the same shapes; let one node own a state.";
    STATE_NOT_UPDATED
        "`state_tensors` declared it, and no `update_state` followed, so that it is an ordinary \
         input.",
        "Call `update_state`, or mark it with `input_tensors`.";
    FROZEN_VALUE
        "A value of the node reached Python (`if`, `while`, `.item()`, `float()`, an index, a \
         size) and decides something that the export computes: the branch taken, the number used. \
         Values that are only printed, logged, kept as metrics or checked by code that raises are \
         not told.",
        "Keep it a tensor: `torch.where` for a branch, `clamp` for a limit, `gather` for an index. \
         If the value never changes on the robot, it is right as it is.";
    MISSED_INPUT
        "A tensor or a Python value that the node reads changes from pass to pass, or code around \
         the node may change it one day, and nobody marked it; the export holds what it was while \
         it was recorded.",
        "Mark it with `input_tensors`; what the node itself changes is state: `state_tensors` \
         and `update_state`, or `annotate.module`. What never changes is assigned once, before \
         you record.";
    LOOSE_GLUE
        "The output of one node was changed outside of any node before the next one read it. \
         That computation is in no model.",
        "Move the line into one of the two nodes. `start(glue=\"error\")` makes it a refusal.";
    UNMARKED_USE
        "A node reads a value of another node directly, without having it as an input, so that \
         its first value is fixed.",
        "Add it to `input_tensors` of the node that reads it.";
    BORN_UNSEEN
        "A tensor came from where the recorder does not look: another thread, compiled code, \
         before the session.",
        "If it depends on inputs, compute it with torch inside of the session; if not, it is a \
         constant and right as it is.";
    RANDOM_VALUE
        "The node draws random numbers: dropout in training mode, sampling, noise. An export \
         cannot repeat the draw.",
        "Call `eval()`, or draw outside of the node and mark the draw as an input.";
    DELAY_VARIES
        "An input is one tick old on one pass and more on another, or comes from different \
         nodes in turn. A bundle runs every node once a tick.",
        "Use an input for each source; export nodes that run at different rates as bundles of \
         their own.";
    PASS_DIFFERS
        "The operations of a later pass are not those of the first: a branch, a loop of another \
         length, a first call that prepares something.",
        "Make both ways one computation, or give each a node of its own; warm up before the \
         session.";
    UNSEEN_WRITE
        "Memory of a constant was written by an operation that is not known to write.",
        "Write it with plain torch operations; please report the operation in the message.";
    OPERATION_UNSUPPORTED
        "An operation cannot be put into a model: a data-dependent shape, a sparse or complex \
         tensor, a Warp kernel.",
        "Compute it with other operations, or outside of the node, and mark the result as an \
         input.";
    CONSTANT_CHANGED
        "Weights were changed between recording and `compile_graph`, so that the recorded \
         values are those of other weights.",
        "Compile before you change them, or record again.";
    NUMPY_UNMAPPED
        "A NumPy function was called on a traced value and has no counterpart in torch, or one \
         that gives other values.",
        "Write it with torch, or outside of the node with the result as an input.";
    INPUTS_OVERLAP
        "Two inputs of a node are views of one memory and one of them is written, so that each \
         write changes the other.",
        "Give the node copies: `tensor.clone()`.";
    RECORDER_FAULT
        "An operation did something that the recorder cannot follow.",
        "Replace the operation in the message by plain ones; please report it.";
    PATCH_INVALID
        "A `FunctionPatch` names something that is not there or cannot be called, or a function \
         twice.",
        "Give a module, the name of one of its functions, and a replacement that can be called.";
    DELAY_UNKNOWN
        "A value is fed back after more ticks than passes were recorded, so that its first \
         values are not known.",
        "Record at least two passes more than the delay, and raise `max_cached_io` of `start` \
         to at least the delay.";
    ONE_PASS
        "One pass cannot tell a state, a clock or a random number from a constant.",
        "Record three passes or more.";
    NEVER_UNOBSERVED
        "Recording can change what code computes, so one pass of each node runs without being \
         recorded and is compared with the program. There was no such pass.",
        "Record three passes or more.";
    STATE_FOUND
        "The node reads memory that its last pass made or wrote. It is exported as a state that \
         starts from what the first pass found there.",
        "Nothing. Declare it with `state_tensors` and `update_state` to choose its name.";
    STATE_LOST
        "The node reads memory that an earlier pass made or wrote, and the export cannot follow \
         it: the first pass filled it from an input, or it was computed outside of the node. A \
         warning means that code around the node may write a state one day.",
        "Start from a constant, compute it inside of the node, or mark it with `input_tensors`. Set \
         states back in `reset`.";
    RECORDING_CHANGES
        "A pass ran without being recorded, and the recorded program gives other values for its \
         inputs: a Python value changes, a state was missed, or the code takes another way while \
         it is recorded. A warning means that your code took another way and the values were the \
         same.",
        "Keep what changes in tensors, and mark it as an input or a state. Ask \
         `isinstance(x, numpy.ndarray)` instead of for the exact type.";
    MEMORY_HANDED_OUT
        "The memory of a traced value went to code that the recorder cannot follow: another \
         library, `data_ptr`, DLPack, `memoryview`, `ctypes`, a thread that is older than the \
         session. What comes back from there is fixed in the export.",
        "Compute it with torch or NumPy inside of the node, or outside of the node and mark the \
         result as an input.";
    CAUGHT_ERROR
        "A call that raises on some values (a singular matrix, an index out of range) stands in a \
         `try` whose handler goes on. The export holds the way that was recorded and does not \
         raise.",
        "Decide with tensors: `linalg.inv_ex`, `cholesky_ex` and `solve_ex` return whether it went \
         well, and `torch.where` chooses. If the handler only reports, let it raise again.";
    STATE_BEGINS_UNSEEN
        "A bundle begins with what the first recorded pass found in its states. That is not always where \
         your code begins: it ran before, to warm up, and the state was written since the code \
         filled it (`self.h = torch.zeros(4)`). Or a value is read several passes after it was \
         made, and one of these passes was not recorded, so that its first value is a guess.",
        "Record a fresh instance, or reset the state before you record. Else record an episode in \
         which the first values matter, or declare the states with `state_tensors`.";
    GLUE_COMES_BACK
        "Code between two passes computes an input from outputs of the pass before. The bundle has \
         it as an input, and does not hold that code.",
        "Compute it inside of the node: it becomes a state and is fed back. If a simulator computes it, \
         or the robot does, leave it: that is its input.";
    MANY_OBJECTS
        "Python values that change from pass to pass are baked into the export, so Veracity compares \
         everything that the code of a node reaches. Here it reaches too much.",
        "Annotate a function or module that holds only what the node needs, not the whole simulation.";

    EXPORT_REFUSED
        "torch's exporter stopped; the message has its reason and, where known, the operation.",
        "Try another backend (`onnx`, `onnx-torchscript`, `jit`, `pt2`), or write the operation \
         in another way.";
    EXPORT_OPTION_UNKNOWN
        "`backend_params` or `output_tensors` has an option that means nothing here; a typing \
         error would otherwise pass unnoticed.",
        "Take the nearest name from the hint, or remove it.";
    EXPORT_BACKEND_UNKNOWN
        "`export_with` names no backend.",
        "Use `jit`, `jit-trace`, `onnx`, `onnx-torchscript`, `pt2`, or `None`.";
    EXPORT_PORTS_DIFFER
        "The exporter renamed, dropped or added inputs or outputs, or two names of the node \
         collide in ONNX.",
        "Rename one of the two ports; for a model that was brought along, use the names of the \
         node.";
    EXPORT_WRONG
        "On recorded or fresh inputs the model gives other values than the code.",
        "See \"My export is disproved\".";
    EXPORT_NOT_CHECKED
        "There is no model, no engine to run it, or it gives other results each time.",
        "Install onnxruntime, give the node a backend, or make its randomness an input.";
    FOREIGN_MODEL
        "`model_path` leads to no file, or to a kind of file that a bundle cannot hold.",
        "Give an `.onnx`, `.pt` or `.pt2` file.";
}
