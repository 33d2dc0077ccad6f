//! Proofs, and operators compared one by one.

use super::{Remedy, remedies};

remedies! {
    PROOF_MISSING
        "The bundle was exported without validation, or by another tool.",
        "`veracity check BUNDLE --save`; without samples, `--record` makes some.";
    PROOF_STALE
        "A model, the samples, the initial values or the description changed since the proof \
         was made.",
        "`veracity check BUNDLE --save` proves it as it is now.";
    PROOF_NEGATIVE
        "The proof disproves something, leaves something open, or only shows that runs repeat.",
        "`veracity check BUNDLE` says which port. See \"My export is disproved\"; samples that \
         `--record` made cannot show more.";
    PROOF_UNREADABLE
        "The file is no proof, is damaged, or was written by a newer major version.",
        "Make it again with `veracity check BUNDLE --save`.";
    SAMPLES_MISSING
        "The bundle has no samples: LEAPP wrote it, it was written by hand, or a node was \
         added.",
        "Export it again, or `veracity check BUNDLE --record`, which shows only that runs \
         repeat.";
    SAMPLES_MISMATCH
        "The samples are those of another export: other nodes, ports, shapes, or a newer \
         format.",
        "Export it again; after renaming ports by hand rename them in the samples, too.";
    NODE_NOT_RUN
        "The node has no model, its engine is missing, or it failed on its first sample.",
        "The reason stands with it; install the engine, or export the node with a backend.";
    OUTPUT_COUNT_DIFFERS
        "The model returns more or fewer values than the node has outputs.",
        "Export again; for a model that was brought along, give it the outputs of the node.";
    UNSTABLE
        "Run twice on the same inputs, the code or the model gave different values: random \
         numbers, a hidden state, threads.",
        "Make what changes an input; `eval()`; for engines, one thread. Nothing is proved of \
         such a node, and nothing is blamed on it.";
    ROLLOUT_NOT_RUN
        "The bundle was not run over time: there is no complete episode, a node cannot be run, \
         or nothing flows between nodes or ticks.",
        "In the last case nothing is missing. Else record whole episodes from their first step.";
    ROLLOUT_DIVERGES
        "Each node may be right, and together they leave the recorded episode: an edge, a \
         delay, an initial value or the order is wrong.",
        "See \"My export is disproved\", point 6; the message names the port and the tick.";
    TOLERANCE_PORT_UNKNOWN
        "A tolerance is given for a port that is no output of the bundle, so that it would \
         judge nothing.",
        "Take the nearest name from the hint: `node/port`.";
    AUTO_TOLERANCE_UNKNOWN
        "Derived tolerances come from a run in float64 while exporting, and this bundle was \
         exported without.",
        "Export with `compile_graph(tolerance=\"auto\")`, or give a tolerance.";
    BASELINE_WORSE
        "Something has a worse verdict than in the baseline, is gone, or needs more than twice \
         the tolerance; or tracing warns of something that it had not warned of.",
        "`veracity diff BASELINE PROOF` lists it. If it is meant, save the new proof as the \
         baseline.";
    RECORDED_WRONG
        "Exporting was refused for a reason that stands in the message with its own code, and the \
         bundle is there to be looked at. Its samples may agree all the same: they are not all that \
         the code did.",
        "Mend what the message names, and export again.";
    DEVICE_ROUNDS
        "The values were recorded on a GPU and the model was run on the CPU. The recorded program, \
         run as the model was, gives what the model gives: the operations are right, and the GPU \
         rounds otherwise. By default it computes convolutions and recurrent layers in TF32, with \
         ten bits of mantissa.",
        "Set `torch.backends.cudnn.allow_tf32` and `torch.backends.cuda.matmul.allow_tf32` to \
         `False` while recording. What is left, in half precision mostly, is a matter of the \
         tolerance; or check on the GPU, with `onnxruntime-gpu`.";

    REPRO_FOLDER_TAKEN
        "The folder holds something else than a repro, and would be overwritten.",
        "Name a new folder.";
    REPRO_UNREADABLE
        "The folder lacks a file of a repro, or was written by a newer version.",
        "Write it again with `--repro`.";
    REPRO_ROW_UNKNOWN
        "No operator of this name was compared, or its values were not kept.",
        "Take a name from the report. If values were not kept, compare again without \
         `--no-causes`.";
    PAIR_INPUTS_DIFFER
        "The second model has an input that the first does not have, or of another shape.",
        "Export both with the same inputs.";
    DIM_UNKNOWN
        "`--dim` names an axis that no input has.",
        "The hint lists the names; an axis of fixed size needs none.";
    TOLERANCES_UNREADABLE
        "The file is not the JSON that rules are written in, or has a key that is not known.",
        "A rule looks like `{\"op\": \"Softmax\", \"budget\": 256}`, in a list called `rules`.";
    DRIFT_UNREADABLE
        "The file is no drift report, or one of a newer major version.",
        "`veracity drift ... --save FILE` writes one.";
    DRIFT_WORSE
        "An operator has a worse verdict than in the baseline, or brings in more than twice the \
         error, or is not compared any more.",
        "Look at its row and cause. If it is meant, save the new report as the baseline.";
    ZOO_UNKNOWN
        "The zoo has no network of this name, or torchvision, which has most of them, is not \
         installed.",
        "Take the nearest name from the hint; `pip install torchvision`.";
    WEIGHTS_MISFIT
        "The file holds no tensors that can be read safely, or their names and shapes are those \
         of another network.",
        "Save a `state_dict` of this very network, or a `.safetensors` file.";
    OUTPUT_DEAD
        "An output is constant, about zero or not finite, so that a comparison would always \
         succeed.",
        "Give trained weights with `--weights`, or another `--seed`.";
    TARGET_INVALID
        "The target cannot be imported or called, or returns no module.",
        "Write `package.module:builder`, `path/file.py:builder` or `zoo:NAME`; the error of \
         your own code is shown with its line.";
    PYTHON_MISSING
        "`veracity parity` runs torch code, and the Python of `VIRTUAL_ENV`, or else `python3`, \
         lacks torch, onnxscript or veracity.",
        "Activate the environment that your code runs in, and install veracity there.";
    PROGRAM_MISSING
        "To compare operators the recorded program is needed, and the bundle does not hold it, \
         or torch cannot read it.",
        "Export with `compile_graph(drift=True)`, or compare the module itself.";
    NODE_UNKNOWN
        "The bundle has no node of this name, or one without a model.",
        "Take the nearest name from the hint; `veracity inspect` lists them.";
    NODE_DRIFTS
        "With `compile_graph(drift=True)` an operator of a model is not what was recorded, or \
         could not be compared.",
        "Look at `.drift` of the result; the first wrong operator and its cause are there.";
    AGAINST_INVALID
        "`against` names no program, the program takes other arguments, or options for ONNX \
         were given beside it.",
        "Give `onnx`, `program`, an `ExportedProgram` or a `.pt2` file of this module.";
    DRIFT_END_TO_END
        "Each operator is right to roundings on the reference's values, and yet the output is \
         farther off than moving all inputs and constants by as much explains.",
        "Begin at the value that the message names: its error arrives from the inputs on.";
    DRIFT_TABLE
        "A row of an embedding or another table differs. Indices that were not given read it.",
        "Export the table again; the message names the first row that differs.";
    DRIFT_LIMIT
        "Both models clip or compare at one place, each at another number, and no value that was seen \
         lies in between.",
        "Give inputs that lie between the two numbers, or use the same number.";
}
