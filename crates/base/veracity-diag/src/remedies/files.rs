//! Files, YAML, containment and hashes, the contract of a bundle, tensor data.

use super::{Remedy, remedies};

remedies! {
    FILE_NOT_FOUND
        "A path that was given, or that a bundle or a model names, leads to nothing: a typing \
         error, another current folder, a file that was not copied along.",
        "Check the path in the message. Of a bundle or a model with external data copy the \
         whole folder.";
    FILE_UNREADABLE
        "The file is there and the system refuses to read it: permissions, a folder where a \
         file should be, a failing disk.",
        "The message holds what the system said. Check permissions and the kind of the file.";
    FILE_UNWRITABLE
        "The system refuses to write: the folder does not exist or is read-only, the disk is \
         full, or something that is not ours stands in the way.",
        "Choose another place for the result, or make room. What was there before is untouched.";
    FILE_TOO_LARGE
        "The file is larger than its kind may be, and is refused before memory is asked for. A \
         protobuf file ends at 2 GiB; a description or a proof of hundreds of megabytes is \
         damaged.",
        "Of a model put the weights into a file beside it (external data). Of anything else \
         make sure that it is the file you mean.";
    USAGE
        "Options or arguments contradict each other, or one that is needed is missing.",
        "`veracity COMMAND --help` lists what goes together. In Python the docstring does.";

    YAML_SYNTAX
        "The text breaks a rule of YAML: indentation, a colon without a space, a quote that \
         does not end.",
        "Correct it at the line and column of the message.";
    YAML_NOT_UTF8
        "The file was saved in another encoding, or is no text at all.",
        "Save it as UTF-8. If it is a model, give the bundle's folder or its `.yaml` file \
         instead.";
    YAML_DUPLICATE_KEY
        "The same key stands twice in one mapping. Other readers take the last one without a \
         word.",
        "Remove one of the two, or rename it.";
    YAML_TOO_COMPLEX
        "Nesting, aliases or the number of nodes go beyond what a bundle needs; such files can \
         take all memory.",
        "Write the values out instead of repeating them by aliases. A file that an exporter \
         wrote should be exported again.";
    YAML_WRONG_KIND
        "A value is text where a number is expected, a single value where a list is, and so on.",
        "The message says what is expected. Quotes make text: `'1.3'`; brackets make a list: \
         `[1, 48]`.";
    YAML_MISSING_KEY
        "A key that every such file has is not there, often because of wrong indentation.",
        "Add it, or indent it under the key that it belongs to. The hint names the nearest key \
         that is there.";
    YAML_UNKNOWN_ANCHOR
        "`*name` refers to `&name`, which does not stand before it.",
        "Define the anchor before its first use, or write the value out.";
    YAML_NOT_ONE_DOCUMENT
        "The file is empty, or `---` divides it into several documents.",
        "Keep one document in the file.";
    YAML_UNKNOWN_KEY
        "A robot file has a key that is not known. A typing error would otherwise be a check \
         that never happens.",
        "Take the nearest name from the hint; all keys are in the page on robots.";
    YAML_UNSUPPORTED
        "Tags, merge keys (`<<`), keys that are no text, or an alias inside of the value that \
         it names: YAML has them, bundles do not.",
        "Write plain mappings, lists, texts and numbers.";
    YAML_TOO_MANY_PROBLEMS
        "The file has more problems than are shown; usually one of the first causes the rest.",
        "Correct the first ones, then check again.";

    PATH_LEAVES_BUNDLE
        "A path in a bundle or a model climbs out of its folder with `..`. A bundle that reads \
         files of its host is not safe to load.",
        "Copy the file into the folder and name it by its path from there.";
    PATH_ABSOLUTE
        "A path starts at the root of a disk, so that the bundle works on one machine only.",
        "Copy the file into the folder and name it by its path from there.";
    PATH_SYMLINK_LEAVES_BUNDLE
        "A file of the bundle is a symbolic link to something outside.",
        "Replace the link by a copy, for example with `cp -rL`.";
    PATH_NOT_A_FILE
        "The path is empty, a folder, a device or a pipe.",
        "Name a regular file.";
    HASH_MISMATCH
        "The file is not the one that was exported: it was edited, replaced, cut off while \
         copying, or the description is from another export.",
        "If the change was meant, `veracity seal BUNDLE` and then `veracity check BUNDLE \
         --save`. If not, copy or export the bundle again.";
    HASH_MISSING
        "The description names a file without its hash, as older bundles do for initial values \
         and external data, or a file is used that it does not list.",
        "`veracity seal BUNDLE` records what is there. Do so only with files whose origin you \
         know.";
    HASH_MALFORMED
        "A hash has the wrong length or letters that are no hexadecimal digits.",
        "Correct it, or let `veracity seal BUNDLE` write it.";
    FILE_SIZE_MISMATCH
        "The file has another size than was recorded: it was cut off, or it is another one.",
        "Copy it again; after a deliberate change `veracity seal BUNDLE`.";
    BUNDLE_NOT_FOUND
        "There is no `.yaml` file at this path, or none that describes a bundle.",
        "Give the folder that `compile_graph` wrote, or the `.yaml` file in it.";
    BUNDLE_AMBIGUOUS
        "The folder holds several descriptions, and nothing says which is meant.",
        "Give the path of one `.yaml` file.";

    VERSION_MISSING
        "Under `system information` there is no `leapp config version`, so that nobody knows \
         how to read the rest.",
        "Write `leapp config version: '1.3'` there, if the file follows that format.";
    VERSION_UNSUPPORTED
        "The bundle has a format that this version does not know: 1.1 to 1.3 are. A newer minor \
         version is read as 1.3, with a warning.",
        "Export it again, or use a version of Veracity that knows the format.";
    NODE_NAME_INVALID
        "A name is empty, longer than 256 characters, holds a slash or a control character, or \
         is one that LEAPP keeps for itself.",
        "Rename it in the annotation, and export again.";
    DUPLICATE_PORT
        "Two inputs or two outputs of a node have one name, or the pipeline lists a port twice.",
        "Rename one of them, or remove the second entry.";
    DTYPE_UNKNOWN
        "A dtype is none of the thirteen that bundles know, or a model without types was \
         brought along and none was given.",
        "Correct the name (the hint has the nearest), or state the `dtype` of the port.";
    SHAPE_INVALID
        "A shape holds something else than sizes: a name, a negative number, or nothing. Shapes \
         are fixed at export.",
        "Write the sizes, such as `[1, 48]`; `[]` is a single number. For a model with open \
         axes give the shape of the port.";
    SHAPE_TOO_LARGE
        "A port, or all of them together, would take more memory than is allowed. Mostly a size \
         is wrong.",
        "Correct the size. Data that is really that large does not belong into a control loop.";
    BACKEND_UNKNOWN
        "The kind of a model is neither `onnx`, `jit` nor `pt2`, or a model file is given \
         without its kind.",
        "State one of the three. Engines and plans of other tools cannot be run.";
    MODEL_ABSENT
        "A node was recorded without a backend (`export_with=None`, `dry_run`, `non_traced`), \
         so that there is nothing to run.",
        "Export it with a backend, or bring a model along with `backend_params={\"model_path\": \
         ...}`.";
    EDGE_MALFORMED
        "One end of an edge is not of the form `node/port`.",
        "Write it as `policy/action`.";
    EDGE_UNKNOWN_END
        "An edge names a node or port that is not there, often after a rename, or names an \
         input where an output is meant.",
        "Correct the name; the hint has the nearest.";
    EDGE_MISMATCH
        "What one node gives has another shape or dtype than what the next one takes.",
        "Convert it inside of one of the two nodes, and export again.";
    EDGE_TWICE
        "Two edges lead to one input; only one value can arrive.",
        "Remove one of the edges, or give the node a second input.";
    FLOW_CYCLE
        "Within one tick each node of a circle would have to run before the other.",
        "One of the edges is for the next tick: move it to `feedback_flow`, with an initial \
         value.";
    FLOW_ORDER
        "Nodes run in the order in which they are listed, and this edge leads from a later one \
         to an earlier one.",
        "List the source first, or move the edge to `feedback_flow` if the value is for the \
         next tick.";
    FEEDBACK_FORWARD
        "The target runs after the source within the same tick, so that nothing would be \
         delayed, whatever the edge is called.",
        "Move it to `data_flow`. For a real delay the value has to pass a node that runs after \
         the target.";
    PIPELINE_PORT_UNKNOWN
        "`inputs` or `outputs` of `pipeline` name a port that no node has.",
        "Correct or remove the entry.";
    INPUT_UNFED
        "An input gets its value neither from an edge nor from the caller.",
        "Add it to `inputs` of `pipeline`, or draw an edge to it.";
    OUTPUT_UNROUTED
        "An output is read by nobody. LEAPP refuses such bundles.",
        "Add it to `outputs` of `pipeline`.";
    INITIAL_VALUE_UNKNOWN
        "The file of initial values holds a name that is no input of the bundle, or an input \
         without feedback.",
        "Rename or remove the entry; names are `node/port`.";
    INITIAL_VALUE_MISMATCH
        "An initial value has another shape or dtype than its input.",
        "Store it as the port is declared.";
    INITIAL_VALUE_MISSING
        "A feedback input starts from zeros because nothing else is stated. That is rarely what \
         the Python code started from.",
        "Export again from the first step on, or name a file in `initial_values` of `pipeline`.";
    ELEMENT_NAMES_MISMATCH
        "The number of names is not the size of the axis, or names are not one list for each \
         axis.",
        "Give a name for every element of the axis, and `None` for axes without names.";
    FREQUENCY_INVALID
        "A rate or period is zero, negative or not finite.",
        "State steps per second, or milliseconds, above 0.";
    PIPELINE_INPUT_ALSO_FED
        "A port is an input of the pipeline and the end of an edge. The edge would overwrite \
         what the caller gives.",
        "Remove one of the two.";
    BUNDLE_EMPTY
        "No node was recorded: the annotated code did not run between `start` and `stop`, or \
         ran in another process.",
        "Run it inside of the session.";

    NPY_MALFORMED
        "The data is no npy array: another format with this ending, a damaged header, pickled \
         objects, or bytes after the end.",
        "Write it anew with `numpy.save` from an array of numbers.";
    NPZ_MALFORMED
        "The archive is damaged, holds something else than arrays, or one name twice.",
        "Write it anew with `numpy.savez`.";
    SAFETENSORS_MALFORMED
        "The header or the offsets of the file contradict its size, or it was cut off.",
        "Copy or write it anew.";
    DTYPE_UNSUPPORTED
        "The tensor has a type that is not handled here: complex numbers, strings, objects, \
         float8.",
        "Convert it first; the hint lists the types that are known.";
    TENSOR_TOO_LARGE
        "More elements than memory could hold are announced or asked for.",
        "If the file is sound, work on fewer steps or a smaller batch.";
    TENSOR_SIZE_MISMATCH
        "The bytes do not fill the announced shape, or fill more than that.",
        "Write the data with the shape that it has.";
    TENSOR_FILE_KIND
        "The ending of the file name says which format it has, and this one says nothing.",
        "Name it `.npz`, `.safetensors` or, for a single tensor, `.npy`.";
    TENSOR_OUT_OF_BOUNDS
        "Shape and strides describe elements that lie outside of the memory.",
        "Make the array contiguous before handing it over.";
    BOOL_INVALID
        "A byte of a bool tensor is neither 0 nor 1; engines disagree about what that means.",
        "Make it with a comparison, such as `values != 0`.";
}
