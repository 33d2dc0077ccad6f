//! Every kind of finding, with its number.
//!
//! A number is never reused and never changes its meaning: people put them into scripts. The
//! hundreds name the subject: 0 files, 1 YAML, 2 containment and hashes, 3 bundle contract,
//! 4 tensor data, 5 ONNX files, 6 engines, 7 running, 8 comparing, 9 tracing, 10 exporting, 11 proving,
//! 12 drift, 13 transforming, 14 pictures, robots and pages.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Stable number of a kind of finding, shown as `VERnnnn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transparent))]
pub struct Code(#[cfg_attr(feature = "schema", schemars(with = "String"))] u16);

impl Code {
    /// What this kind of finding is, in one phrase.
    pub fn title(self) -> &'static str {
        TABLE.iter().find(|(code, _)| *code == self).map_or("unknown code", |(_, title)| title)
    }

    /// The number alone.
    pub(crate) fn number(self) -> u16 {
        self.0
    }

    /// Every code with its title, by number.
    pub fn all() -> &'static [(Code, &'static str)] {
        TABLE
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VER{:04}", self.0)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.strip_prefix("VER")
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a diagnostic code")))
    }
}

macro_rules! codes {
    ($($number:literal $name:ident $title:literal;)*) => {
        $(
            #[doc = concat!("VER", stringify!($number), ": ", $title, ".")]
            pub const $name: Code = Code($number);
        )*
        const TABLE: &[(Code, &str)] = &[$(($name, $title)),*];
    };
}

codes! {
    1 FILE_NOT_FOUND "a file does not exist";
    2 FILE_UNREADABLE "a file could not be read";
    3 FILE_UNWRITABLE "a file could not be written";
    4 FILE_TOO_LARGE "a file is larger than its kind may be";
    5 USAGE "the command or call was not understood";

    101 YAML_SYNTAX "the text is not valid YAML";
    102 YAML_NOT_UTF8 "the file is not UTF-8 text";
    103 YAML_DUPLICATE_KEY "a key stands twice in one mapping";
    104 YAML_TOO_COMPLEX "the YAML nests too deep, repeats too much or has too many nodes";
    105 YAML_WRONG_KIND "a value has the wrong kind (text, number, list, mapping)";
    106 YAML_MISSING_KEY "a required key is missing";
    107 YAML_UNKNOWN_ANCHOR "an alias names an anchor that does not exist";
    108 YAML_NOT_ONE_DOCUMENT "the file does not hold exactly one YAML document";
    109 YAML_UNKNOWN_KEY "a key is not known here";
    110 YAML_UNSUPPORTED "the YAML uses something that bundles do not have";
    111 YAML_TOO_MANY_PROBLEMS "the file has more problems than are listed";

    201 PATH_LEAVES_BUNDLE "a path leads out of the bundle";
    202 PATH_ABSOLUTE "a path is absolute";
    203 PATH_SYMLINK_LEAVES_BUNDLE "a symbolic link leads out of the bundle";
    204 PATH_NOT_A_FILE "a path does not name a regular file";
    205 HASH_MISMATCH "a file does not have the recorded hash";
    206 HASH_MISSING "a file of the bundle has no recorded hash";
    207 HASH_MALFORMED "a recorded hash is not a hash";
    208 FILE_SIZE_MISMATCH "a file does not have the recorded size";
    209 BUNDLE_NOT_FOUND "no bundle at this path";
    210 BUNDLE_AMBIGUOUS "a folder holds more than one bundle";

    301 VERSION_MISSING "the bundle does not say which format version it has";
    302 VERSION_UNSUPPORTED "the bundle has a format version that is not supported";
    303 NODE_NAME_INVALID "a node or port name is not usable";
    304 DUPLICATE_PORT "a node has two ports of one name";
    305 DTYPE_UNKNOWN "a dtype is not known";
    306 SHAPE_INVALID "a shape is not a list of sizes";
    307 SHAPE_TOO_LARGE "a shape holds more elements than are allowed";
    308 BACKEND_UNKNOWN "a backend is not known";
    309 MODEL_ABSENT "a node has no model to run";
    310 EDGE_MALFORMED "an edge end is not written `node/port`";
    311 EDGE_UNKNOWN_END "an edge names a node or port that does not exist";
    312 EDGE_MISMATCH "the two ends of an edge differ in shape or dtype";
    313 EDGE_TWICE "an input is fed by more than one edge";
    314 FLOW_CYCLE "`data_flow` runs in a circle";
    315 FLOW_ORDER "`data_flow` leads from a later node to an earlier one";
    316 FEEDBACK_FORWARD "`feedback_flow` leads from an earlier node to a later one";
    317 PIPELINE_PORT_UNKNOWN "the pipeline lists a port that does not exist";
    318 INPUT_UNFED "an input is neither fed by an edge nor a pipeline input";
    319 OUTPUT_UNROUTED "an output leads nowhere";
    320 INITIAL_VALUE_UNKNOWN "an initial value is for a port that does not exist";
    321 INITIAL_VALUE_MISMATCH "an initial value differs from its port in shape or dtype";
    322 INITIAL_VALUE_MISSING "a feedback input has no initial value";
    323 ELEMENT_NAMES_MISMATCH "element names do not fit the shape";
    324 FREQUENCY_INVALID "the control frequency is not a positive number";
    325 PIPELINE_INPUT_ALSO_FED "a pipeline input is also fed by an edge";
    326 BUNDLE_EMPTY "the bundle has no nodes";

    401 NPY_MALFORMED "the data is not a valid npy array";
    402 NPZ_MALFORMED "the file is not a valid npz archive";
    403 SAFETENSORS_MALFORMED "the file is not valid safetensors";
    404 DTYPE_UNSUPPORTED "a dtype is not supported here";
    405 TENSOR_TOO_LARGE "a tensor is larger than allowed";
    406 TENSOR_SIZE_MISMATCH "the data does not fill the shape exactly";
    407 TENSOR_FILE_KIND "the file name does not say which tensor format it has";
    408 TENSOR_OUT_OF_BOUNDS "strides reach outside of the data";
    409 BOOL_INVALID "a bool element is neither 0 nor 1";

    501 ONNX_MALFORMED "the file is not a valid ONNX model";
    502 ONNX_PORT_MISSING "the model lacks a port that the bundle names";
    503 ONNX_PORT_MISMATCH "a port of the model differs from the bundle in shape or dtype";
    504 ONNX_EXTERNAL_DATA "external data of the model is not where or what it should be";
    505 ONNX_UNFUSABLE "models cannot be merged";
    506 ONNX_INPUT_UNDECLARED "the model has an input that the bundle does not name";
    507 ONNX_VALUE_UNKNOWN "a value inside of the model cannot be looked at";

    601 ENGINE_NOT_FOUND "an engine's library was not found";
    602 ENGINE_UNUSABLE "an engine's library could not be used";
    603 ENGINE_UNSUPPORTED_FORMAT "no engine here runs this kind of model";
    604 ENGINE_LOAD_FAILED "the engine refused the model";
    605 ENGINE_RUN_FAILED "the engine failed while running the model";
    606 ENGINE_UNSUPPORTED "the engine does not support something that the model needs";
    607 ENGINE_BIND_MISMATCH "a buffer does not fit its port";
    608 DEVICE_UNAVAILABLE "the requested device is not available";
    609 SHIM_BUILD_FAILED "the TorchScript shim could not be built";
    610 ENGINE_OUTPUT_MISMATCH "the model returned another count, shape or dtype than declared";
    611 ENGINE_MEMORY_IN_USE "another session is using the memory";

    701 INPUT_MISSING "an input was not given";
    702 INPUT_UNKNOWN "an input is not known";
    703 INPUT_DTYPE "an input has the wrong dtype";
    704 INPUT_SHAPE "an input has the wrong shape";
    705 STEP_FAILED "a step failed; the state is as it was before";
    706 FUSION_UNPROVED "merged nodes did not give the same outputs";
    707 OPTION_INVALID "an option has an impossible value";
    708 INPUT_NOT_SETTABLE "this input is computed by the pipeline and cannot be set";
    709 INPUT_DEVICE "an input is not in memory the runtime can read";
    710 VALUE_UNREADABLE "a value at a node boundary cannot be read";
    711 INPUT_BOOL "a bool of an input is neither 0 nor 1";

    801 COMPARE_SHAPE_DIFFERS "the two tensors differ in shape";
    802 COMPARE_DTYPE_DIFFERS "the two tensors differ in dtype";
    803 TOLERANCE_INVALID "a tolerance is not a finite number of at least 0";
    804 COMPARE_MISSING "a tensor exists on one side only";
    805 COMPARE_OUTSIDE "values differ by more than the tolerance";
    806 COMPARE_NOTHING "there was nothing to compare";
    807 COMPARE_UNDECIDED "a measurement cannot decide a tolerance it was not taken with";

    901 SESSION_STATE "a call came at the wrong moment of a session";
    902 ANNOTATION_TYPE "an annotation was given something of the wrong type";
    903 ANNOTATION_NAME "an annotation was given a name that cannot be used here";
    904 TRACED_NODE_UNKNOWN "an annotation names a node that was not begun";
    905 TRACED_NODE_UNFINISHED "a node was begun and has no outputs";
    906 REENTRY_DIFFERS "a node was entered again with other ports or from another line";
    907 VALUES_MIXED "values of two unfinished nodes meet in one operation";
    908 OUTPUT_UNTRACED "an output does not depend on the node's inputs";
    909 STATE_MISMATCH "an updated state differs from the declared one";
    910 STATE_NOT_UPDATED "a declared state was never updated";
    911 FROZEN_VALUE "a value left for Python, and what Python made of it is fixed in the export";
    912 MISSED_INPUT "a value that changes from pass to pass is not an input of the node";
    913 LOOSE_GLUE "a value between two nodes was computed outside of any node";
    914 UNMARKED_USE "a node uses a value of another node that is not one of its inputs";
    915 BORN_UNSEEN "a node uses a value that was made where the recorder does not see";
    916 RANDOM_VALUE "a node draws random numbers";
    917 DELAY_VARIES "an edge is not equally old on every pass";
    918 PASS_DIFFERS "a later pass of a node computes something else than the first";
    919 UNSEEN_WRITE "memory was written where the recorder does not see";
    920 OPERATION_UNSUPPORTED "an operation cannot be recorded";
    921 CONSTANT_CHANGED "a constant changed after it was recorded";
    922 NUMPY_UNMAPPED "a NumPy function has no counterpart in torch";
    923 INPUTS_OVERLAP "two inputs share memory and one of them is written";
    924 RECORDER_FAULT "the recorder could not follow an operation";
    925 PATCH_INVALID "a function patch cannot be applied";
    926 DELAY_UNKNOWN "an edge is older than the passes that were recorded";
    927 ONE_PASS "a node was recorded once";
    928 NEVER_UNOBSERVED "every pass of a node was recorded";
    929 STATE_FOUND "a node carries a state that was not declared";
    930 STATE_LOST "a node reads what an earlier pass left behind, and it cannot be made a state";
    931 RECORDING_CHANGES "a pass that was not recorded gave other values than the recorded program";
    932 MEMORY_HANDED_OUT "memory of a node was handed to code that is not followed";
    933 CAUGHT_ERROR "an exception that depends on data is caught inside of a node";
    940 STATE_BEGINS_UNSEEN "a state begins with a value that is not known to be its first";
    941 GLUE_COMES_BACK "an input is computed from outputs of an earlier pass, outside of every node";
    942 MANY_OBJECTS "the code of a node reaches more Python objects than are looked at";

    1001 EXPORT_REFUSED "the exporter refused a node";
    1002 EXPORT_OPTION_UNKNOWN "an exporter option is not known";
    1003 EXPORT_BACKEND_UNKNOWN "an export backend is not known";
    1004 EXPORT_PORTS_DIFFER "the exported model has other ports than the node";
    1005 EXPORT_WRONG "the exported model does not compute what the node computed";
    1006 EXPORT_NOT_CHECKED "an exported model could not be checked";
    1007 FOREIGN_MODEL "a model that was brought along cannot be used";

    1101 PROOF_MISSING "the bundle has no proof";
    1102 PROOF_STALE "the proof is about other files than those of the bundle";
    1103 PROOF_NEGATIVE "the proof says that the bundle is wrong, or does not say that it is right";
    1104 PROOF_UNREADABLE "the file is not a proof that this version can read";
    1105 SAMPLES_MISSING "the bundle has no recorded values to check against";
    1106 SAMPLES_MISMATCH "the recorded values do not fit the ports of the bundle";
    1107 NODE_NOT_RUN "a node was not run, so that nothing is known about it";
    1108 OUTPUT_COUNT_DIFFERS "a model has another number of outputs than the node";
    1109 UNSTABLE "the same inputs gave different values";
    1110 ROLLOUT_NOT_RUN "the bundle was not run over time";
    1111 ROLLOUT_DIVERGES "the bundle leaves the recorded episode";
    1112 TOLERANCE_PORT_UNKNOWN "a tolerance is for a port that is not an output of the bundle";
    1113 AUTO_TOLERANCE_UNKNOWN "the bundle carries no derived tolerances";
    1114 BASELINE_WORSE "something is worse than in the baseline";
    1115 RECORDED_WRONG "while recording, the code did what its export cannot do";
    1116 DEVICE_ROUNDS "a model differs because another device recorded it";
    1117 START_UNCHECKED "a roll-out begins later than the bundle does";
    1118 RUNNER_UNPROVED "a model was proved by another engine than the one that will run it";
    1119 PROOF_ELSEWHERE "the proof is about another way of running the bundle";
    1120 PROOF_INCONSISTENT "the proof contradicts itself or its bundle";
    1121 PROOF_TOO_WIDE "the proof was judged by a wider tolerance than is allowed";
    1122 PROOF_CONDITIONAL "the proof rests on assumptions that nobody has settled";
    1123 RECORDED_OTHERWISE "ports or settings of the bundle are not those that were recorded";
    1124 OUTPUTS_MISSING "the bundle has no outputs";
    1126 TOLERANCE_SAYS_NOTHING "a tolerance would accept an output that is wrong";
    1127 OUTPUT_NEVER_MOVES "an output is the same on every sample";
    1128 CORNER_DIFFERS "an engine gives another answer on a corner of the inputs";
    1129 SAMPLES_FIND_LITTLE "the samples of a node miss many planted faults";
    1130 RUNNER_REFUSES "torch's own runner cannot run a pt2 model";
    1131 RUNNER_DIFFERS "torch's own runner gives other numbers from a pt2 model than Python";

    1201 REPRO_FOLDER_TAKEN "the folder for a repro holds something else";
    1202 REPRO_UNREADABLE "a folder is not a repro that this version can read";
    1203 REPRO_ROW_UNKNOWN "there is no such operator to write a repro of";
    1210 PAIR_INPUTS_DIFFER "the two models do not take the same inputs";
    1211 DIM_UNKNOWN "a size is given for an axis that no input has";
    1212 TOLERANCES_UNREADABLE "the file does not hold tolerances of operators";
    1213 DRIFT_UNREADABLE "the file is not a drift report that this version can read";
    1214 DRIFT_WORSE "something drifts more than in the baseline";
    1230 ZOO_UNKNOWN "the zoo has no network of this name";
    1231 WEIGHTS_MISFIT "a file of weights cannot be read, or does not fit the network";
    1232 OUTPUT_DEAD "an output is constant, about zero or not finite, so that comparing it proves nothing";
    1233 TARGET_INVALID "what is to be compared cannot be found or built";
    1234 PYTHON_MISSING "there is no Python that has torch and veracity";
    1235 PROGRAM_MISSING "a bundle holds no program of a node to compare its model with";
    1236 NODE_UNKNOWN "a bundle has no node of this name";
    1237 NODE_DRIFTS "operator by operator, a model is not what was recorded";
    1238 AGAINST_INVALID "what a module is to be compared against cannot be used";
    1240 DRIFT_END_TO_END "an output is wrong although every operator is within its budget";
    1241 DRIFT_TABLE "a table that is read by index holds other rows than the original's";
    1242 DRIFT_LIMIT "a number that values are clipped at or compared with is another one, and no input shows it";

    1301 TRANSFORMATION_INVALID "something is not a transformation, or returned no graph module";
    1302 SIGNATURE_UNDEFINED "a parameter of a transformation has no stable value to sign";
    1303 MARK_MISSING "a node does not have the mark that is to be taken off";
    1304 MARKS_UNPLACED "the marks of a reloaded graph do not fit its nodes";
    1305 BATCH_NORM_TRAINING "a batch norm in training mode cannot be folded";
    1306 MATCH_DECLINED "a match was left alone because a precondition does not hold";
    1307 NOT_REVERSIBLE_NOW "a transformation cannot be undone, as the graph was changed since";
    1308 GRAPH_UNUSABLE "a model cannot be traced, or does not run on the given inputs";
    1309 TRANSFORMATION_FAILED "a transformation raised an exception";
    1310 TRANSFORMED_DIFFERS "a transformed graph does not compute what the original computes";
    1311 CHANGE_UNMARKED "a transformation changed nodes that it did not mark";
    1312 NOT_RESTORED "undoing a transformation did not give the original back";
    1313 ORIGINAL_CHANGED "a transformation changed the model that its graph was traced from";
    1314 NOTHING_CLAIMED "a transformation does not claim to keep the computation";
    1315 TRACE_DIFFERS "a traced graph does not compute what its model computes";
    1316 RANK_DIFFERS "a graph was transformed for inputs with another number of axes";
    1317 NOTHING_TRANSFORMED "a transformation changed nothing, so that nothing is shown about it";
    1330 PATCH_BREAKS_GRAPH "a rewrite would leave a graph that cannot run";
    1331 PASS_UNKNOWN "there is no pass of this name";
    1333 REWRITE_WRONG "a rewrite does not compute what it replaced";
    1334 REWRITE_UNCHECKED "a rewrite could not be checked";
    1336 LOG_UNREADABLE "the file is not a log of rewrites that this version can read";
    1337 LOG_MISFIT "a log of rewrites is about another model";
    1339 BISECT_NOTHING "there is nothing to find: the models agree";
    1340 TOOL_FAILED "another optimiser could not be run";
    1341 FUNCTION_RECURSIVE "functions of a model call each other in a circle";
    1347 FUNCTION_VERSIONS "a function uses other versions of operators than its model";
    1348 FUNCTION_MISFIT "a call does not fit the function of the model that it calls";
    1349 BISECT_UNDECIDED "a search cannot go on, because a model cannot be compared";
    1350 TOOL_ALWAYS_WRONG "another optimiser is wrong whatever is left out";
    1354 REPLAY_DIFFERS "replaying a log of rewrites does not give the model that it is about";
    1355 LOG_CHANGED "a log of rewrites was changed since it was written";
    1356 ELEMENTS_MISSING "elements of a weight are not where they should be";
    1357 REVERSE_DIFFERS "undoing rewrites does not give the original back";
    1358 AUDIT_UNKNOWN "a log of rewrites knows no node or value of this name";

    1401 PICTURE_MISFIT "a pipeline that is to be drawn contradicts itself";
    1402 PICTURE_TOO_LARGE "a pipeline is too large for a picture";
    1403 PICTURE_UNPAINTED "a picture could not be made into pixels";
    1404 PICTURE_FORMAT "there are no pictures of this kind";
    1410 CONTRACT_INVALID "what a robot file or the metadata of a model declares contradicts itself";
    1411 ROBOT_PORT_MISSING "the robot does not declare a port of the bundle";
    1412 ROBOT_PORT_EXTRA "the robot declares a port that the bundle does not have";
    1413 ELEMENT_MISSING "the robot lacks elements that the bundle names";
    1414 ELEMENT_EXTRA "the robot names elements that the bundle does not have";
    1415 ELEMENT_ORDER "robot and bundle have the same elements in another order";
    1416 UNIT_DIFFERS "robot and bundle declare different units";
    1417 KIND_DIFFERS "robot and bundle declare different kinds";
    1418 RATE_DIFFERS "robot and bundle declare different rates";
    1419 GAIN_DIFFERS "robot and bundle declare different gains, defaults or limits";
    1420 SIZE_DIFFERS "robot and bundle declare different sizes or dtypes";
    1421 VALUES_PERMUTED "recorded values of robot and bundle agree only in another order";
    1422 VALUES_DIFFER "recorded values of robot and bundle do not agree in any order";
    1423 CONTRACT_UNCHECKED "something was not compared with the robot, as one side does not say it";
    1424 REORDER_MISFIT "a reordering map cannot be read, or does not fit the bundle";
    1425 RESULTS_UNKNOWN "the file holds no results that a page can be made of";
    1430 VIEW_UNSERVED "a page cannot be served on this machine";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_ascending() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_code_survives_json() {
        let json = serde_json::to_string(&HASH_MISMATCH).unwrap();
        assert_eq!(json, "\"VER0205\"");
        assert_eq!(serde_json::from_str::<Code>(&json).unwrap(), HASH_MISMATCH);
    }
}
