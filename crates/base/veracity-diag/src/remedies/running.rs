//! ONNX files, engines, running and comparing.

use super::{Remedy, remedies};

remedies! {
    ONNX_MALFORMED
        "The bytes are no ONNX model, or a model that contradicts itself: a cut-off download, a \
         pointer file of git LFS, a graph whose values have no producer.",
        "Fetch or export it again; `onnx.checker.check_model` says more about files of other \
         tools.";
    ONNX_PORT_MISSING
        "The description names an input or output that the model does not have, as after an \
         export under other names.",
        "Export the bundle again, or correct the name; the message lists what the model has.";
    ONNX_PORT_MISMATCH
        "The model declares another shape or dtype for a port than the description.",
        "One of the two is from another export: export both together.";
    ONNX_EXTERNAL_DATA
        "Weights lie in a file beside the model, and that file is missing, too short, or named \
         by a path that is not allowed.",
        "Copy the data file along with the model, under the name that the model has for it.";
    ONNX_UNFUSABLE
        "Neighbouring models cannot become one: other operator versions, names or features that \
         do not go together.",
        "Nothing needs to be done: they run separately. To merge them, export them with the \
         same exporter and opset.";
    ONNX_INPUT_UNDECLARED
        "The model needs an input that nobody feeds.",
        "Name it in the description, or export the model without it.";
    ONNX_VALUE_UNKNOWN
        "The value that is to be looked at is not in the main graph of the model: it was \
         renamed, folded away, or lies inside of a branch or loop.",
        "Take the name from the hint, or from a viewer such as Netron.";

    ENGINE_NOT_FOUND
        "The library of ONNX Runtime or torch is neither in the active Python environment nor \
         in the places that were searched; the message lists them.",
        "`pip install onnxruntime` or `pip install torch` in the active environment, or \
         `--ort-library`, `--torch`; ONNX models also run with `--engine embedded`.";
    ENGINE_UNUSABLE
        "A library was found and cannot be used: too old, for another processor, damaged, or \
         the process has loaded another one already.",
        "Install a version that is supported, or name the right one with `--ort-library` or \
         `--torch`.";
    ENGINE_UNSUPPORTED_FORMAT
        "The chosen engine does not run this kind of model: torch runs TorchScript and pt2, the \
         others ONNX.",
        "Use `--engine auto`, or export the node for the engine that you want.";
    ENGINE_LOAD_FAILED
        "The engine read the model and refused it: an operator that it does not have, types \
         that do not fit, a newer opset.",
        "Read what the engine said in the message. Export with a lower opset or another \
         backend, or try another engine.";
    ENGINE_RUN_FAILED
        "The engine stopped in the middle of a model: an index out of range, sizes that do not \
         fit, no memory, a NaN that the embedded engine could lose.",
        "Check the inputs. `veracity drift MODEL --engine embedded --reference-engine ort` \
         shows whether another engine gets further.";
    ENGINE_UNSUPPORTED
        "The model is sound and needs something that this engine does not have, or does not \
         compute as ONNX Runtime does.",
        "Run it in ONNX Runtime (`--engine ort`), or export without that operator.";
    ENGINE_BIND_MISMATCH
        "Memory for a port has another count, size, shape or dtype than the port, or is bound \
         twice.",
        "Hand over memory of the shape and dtype that the port declares.";
    DEVICE_UNAVAILABLE
        "There is no such device, or the engine was built without support for it.",
        "`--device cpu`, or install the build of the engine for your GPU.";
    SHIM_BUILD_FAILED
        "TorchScript and pt2 run through a small C++ library that is built on first use: there \
         is no compiler, no folder to keep it in, or compiling failed.",
        "Install a C++ compiler; set `VERACITY_CACHE` to a folder that can be written to.";
    ENGINE_OUTPUT_MISMATCH
        "The model returned something else than its description says, often because a shape \
         depends on values.",
        "Export with fixed shapes, or correct the description.";
    ENGINE_MEMORY_IN_USE
        "Two threads ran sessions on the same memory at the same time.",
        "Give each thread a runner of its own.";

    INPUT_MISSING
        "A step was asked for without a value for one of the pipeline's inputs, or values for \
         it cannot be made up. Nothing is filled in silently.",
        "Give it; `veracity inspect` and `manager.inputs` list the names.";
    INPUT_UNKNOWN
        "A value was given under a name that is no input.",
        "Take the nearest name from the hint; names are `node/port`.";
    INPUT_DTYPE
        "A value has another dtype than the port; nothing is converted silently.",
        "Convert it: `array.astype(np.float32)`, `tensor.float()`.";
    INPUT_SHAPE
        "A value has another shape than the port, or episodes have different lengths.",
        "Reshape it to what the message says; an episode has one more axis in front.";
    STEP_FAILED
        "A node failed, or outputs were asked for before any step finished. The state is as it \
         was before the step.",
        "Look at the error of the node that comes with it; after correcting the input the step \
         can be repeated.";
    FUSION_UNPROVED
        "Merged nodes gave other values than separate ones, or could not be compared, so that \
         they were not merged.",
        "Nothing needs to be done: they run separately and no result is affected.";
    OPTION_INVALID
        "An option has a value that is impossible here, or two options together ask for \
         nothing.",
        "The hint says which values make sense.";
    INPUT_NOT_SETTABLE
        "The value is computed by another node, or starts from the bundle's initial values, and \
         cannot be given.",
        "Leave it out; give the pipeline's inputs only.";
    INPUT_DEVICE
        "The tensor is sparse, or its memory does not hold its elements, so that it cannot be \
         read.",
        "`tensor.to_dense()`, `.contiguous()` or `.clone()` first.";
    VALUE_UNREADABLE
        "A value between nodes was asked for before a step finished, or it lies inside of \
         merged nodes.",
        "Run a step first, or load the bundle without `fuse`.";
    INPUT_BOOL
        "A bool input holds bytes other than 0 and 1, as raw memory of other types does.",
        "Make it with a comparison, such as `values != 0`.";

    COMPARE_SHAPE_DIFFERS
        "The two tensors cannot be compared element by element. Broadcasting would hide faults \
         and is not done.",
        "Find out which side has the wrong shape; look for a lost batch axis or a transposed \
         tensor.";
    COMPARE_DTYPE_DIFFERS
        "The two tensors have different dtypes, so that equal numbers may be different values.",
        "Convert one of them on purpose, or correct the export.";
    TOLERANCE_INVALID
        "A tolerance is negative, infinite or not a number, or is given in a form that is not \
         known.",
        "Give finite numbers of at least 0: `atol=1e-5,rtol=1e-3`, `dict(atol=..., rtol=...)`.";
    COMPARE_MISSING
        "One side has a tensor that the other does not have: a renamed or lost output.",
        "Use the same names on both sides; for models, export both with the same outputs.";
    COMPARE_OUTSIDE
        "The values are farther apart than the tolerance allows.",
        "See \"My export is disproved\". The line `passes with atol` says how far; a tolerance \
         is to be widened only when you know what the value is for.";
    COMPARE_NOTHING
        "No value has a counterpart, or every compared output was zero. Nothing is shown by \
         that.",
        "Give models with values of the same names, or inputs that reach the outputs.";
    COMPARE_UNDECIDED
        "Stored measurements were summed up under another tolerance, and do not say how many \
         values the new one would let pass.",
        "Check again without `--rejudge`.";
}
