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
    START_UNCHECKED
        "A node was first recorded later than the others, so that the recorded episode begins in the \
         middle and the bundle's initial values were not tried.",
        "Record from the first step on, with every node, or raise `max_cached_io` of `start()`.";
    RUNNER_UNPROVED
        "Without Python, torch's own runner runs a pt2 model, and it could not be tried on this machine: \
         it needs a C++ compiler, torch's headers, a torch that has this runner (2.6 and 2.15 do not) \
         and a model on the CPU. What was compared ran in Python's torch.",
        "`veracity check BUNDLE --save` where it will run, or export with `onnx` or `jit`.";
    PROOF_ELSEWHERE
        "The proof was made with another engine, another major version of it, on another kind of \
         device, or without the options that are to be used now.",
        "`veracity run --prove` proves it as it will run; or `veracity check BUNDLE --save` with the \
         same engine and device.";
    PROOF_INCONSISTENT
        "What the proof says does not follow from its own numbers, or does not fit the ports, samples \
         or tolerances of the bundle: it was edited, damaged, or made for another bundle.",
        "Make it again with `veracity check BUNDLE --save`.";
    PROOF_TOO_WIDE
        "The proof was made with a tolerance that is wider than the one the bundle was exported with.",
        "`veracity check BUNDLE --save` without a tolerance; if the wider one is meant, give it as \
         the ceiling: `--ceiling atol=...,rtol=...`.";
    PROOF_CONDITIONAL
        "Everything that was compared is right, and tracing or exporting could not rule something out: \
         a branch that was not taken, a value that was not looked at.",
        "`veracity check BUNDLE` lists the assumptions, each with what settles it; \
         `--accept-conditional` takes them as they are.";
    RECORDED_OTHERWISE
        "The description was changed after the export: a port has another name, kind, unit, order of \
         elements or period than the values that were recorded, or the pipeline another frequency.",
        "Put the description back, or export again with what is meant.";
    OUTPUTS_MISSING
        "Every output of every node is fed to another node or back, so that whoever runs the bundle gets \
         nothing; or nothing was annotated as an output.",
        "Annotate what the pipeline gives as an output of a node.";
    TOLERANCE_SAYS_NOTHING
        "The tolerance that was given is as large as the values of the output: it would accept \
         zeros in their place, or their mean.",
        "Leave `rtol` and `atol` away, so that they follow the scale of each output, or give the \
         output a finer one in `tolerances`.";
    OUTPUT_NEVER_MOVES
        "The output depends on the inputs, and has the same value on all recorded and fresh \
         samples: what changes it was not tried.",
        "Record a pass in which it changes.";
    CORNER_DIFFERS
        "The engine treats zeros of different signs, values that tie, values far outside of the \
         recorded range, NaN or infinities in another way than torch. As a note, it is about NaN or \
         infinities that no input declares and that stay visible in the outputs.",
        "Keep such values away from the operation, or use another backend if they occur. Record a pass \
         with large values, or declare `extra={\"allow_nan\": True, \"allow_inf\": True}`, to have \
         them checked.";
    SAMPLES_FIND_LITTLE
        "Small faults were planted into copies of the program, and the samples of the node do not \
         show one in ten of them or more: parts of the program do nothing on the samples.",
        "The proof names the faults and their lines; record passes that use these parts.";
    RUNNER_REFUSES
        "Python's torch runs the model, and torch's own runner, which runs pt2 without Python, does not \
         know an operator or an argument of it.",
        "Export the node with `export_with=\"onnx\"` or `\"jit\"`, or write the line that is named in \
         another way.";
    RUNNER_DIFFERS
        "Python's torch gives from the model what was recorded, and torch's own runner, which runs pt2 \
         without Python, does not.",
        "Export the node with `export_with=\"onnx\"` or `\"jit\"`.";

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
