//! What a log of rewrites holds, what leads back from a result, and what is refused.

use std::collections::BTreeMap;

use veracity_diag::{Code, Result, codes};
use veracity_onnx::{Graph, GraphBuilder, Model, Node, Patch, Weight};
use veracity_results::RewriteLog;
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::passes::{HoldConstants, RemoveDeadCode, RemoveNoOps};
use veracity_transform::{
    Class, Elements, Found, Limits, LogOptions, Pass, Pipeline, Recorded, Transformed, Trusting,
    View, elements_path, log_path, model_sha256, read_log, record, replay, reverse, transform,
};

use crate::support::{Kind, answers, file_answers, inputs, replays_and_reverses};

/// `Mul(x, w)` with a large `w` becomes `Div(x, 1/w)`: a pass that makes weights.
#[derive(Clone, Copy)]
pub(crate) struct Invert;

impl Pass for Invert {
    fn name(&self) -> &'static str {
        "invert"
    }

    fn class(&self) -> Class {
        Class::Approximate
    }

    fn about(&self) -> &'static str {
        "for tests"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Mul") {
            let (Some(x), Some(w), Some(y)) = (node.input(0), node.input(1), node.output(0)) else {
                continue;
            };
            let Some(weight) = view.constant(w) else {
                found.decline(id, "its factor is not constant");
                continue;
            };
            let inverse: Vec<f64> = weight.floats().unwrap().iter().map(|one| 1.0 / one).collect();
            let name = view.fresh(&format!("{w}_inverse"));
            let new = Weight::from_floats(DType::F32, &weight.dims(), &inverse).unwrap();
            let patch = Patch::because("the inverse")
                .remove(id)
                .insert(Node::new("Div", [x, &name], [y]).named("divided"))
                .weight(name, new)
                .drop_weight(w);
            found.propose(id, patch);
        }
    }
}

pub(crate) const SIZE: usize = 200;

pub(crate) fn tensor(first: f32) -> Tensor {
    let mut all = vec![2.0_f32; SIZE];
    all[0] = first;
    Tensor::from_slice(Shape::from([SIZE]), &all).unwrap()
}

/// `m = Mul(Identity(x), w)`, `s = Add(m, kept)`, `y = Sub(s, c)` and something dead; large weights.
pub(crate) fn model() -> Model {
    let note = |node: Node, text: &str| node.with_metadata("pkg.torch.onnx.name", text);
    GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [SIZE])
        .initializer("w", &tensor(1.0))
        .initializer("kept", &tensor(3.0))
        .node(Node::new("Constant", [""; 0], ["c"]).tensor("value", &tensor(4.0)).named("const"))
        .node(Node::new("Relu", ["x"], ["a"]).named("relu"))
        .node(note(Node::new("Identity", ["a"], ["b"]).named("same"), "identity"))
        .node(note(Node::new("Mul", ["b", "w"], ["m"]), "product").with_metadata("other", "1"))
        .node(Node::new("Add", ["m", "kept"], ["s"]).named("sum"))
        .node(Node::new("Sub", ["s", "c"], ["y"]).named("difference"))
        .node(Node::new("Mul", ["x", "x"], ["dead"]).named("dead"))
        .output("y", DType::F32, [SIZE])
        .finish()
        .unwrap()
}

pub(crate) fn pipeline() -> Pipeline {
    let passes: Vec<Box<dyn Pass>> = vec![
        Box::new(HoldConstants),
        Box::new(RemoveNoOps),
        Box::new(Invert),
        Box::new(RemoveDeadCode),
    ];
    Pipeline::new(passes)
}

pub(crate) fn run(model: &Model) -> Transformed {
    let graph = Graph::new(model.clone()).unwrap();
    transform(graph, &pipeline(), Limits::default(), &mut Trusting).unwrap()
}

pub(crate) fn made() -> Recorded {
    let model = model();
    record(&model, &pipeline(), &run(&model), LogOptions::default()).unwrap()
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().first_error().code
}

pub(crate) fn notes(model: &Model) -> BTreeMap<String, BTreeMap<String, String>> {
    let nodes = model.nodes().into_iter();
    nodes.map(|node| (node.outputs[0].clone(), node.metadata.into_iter().collect())).collect()
}

#[test]
fn a_log_replays_and_leads_back() {
    replays_and_reverses(&model(), &pipeline(), &run(&model()));
}

#[test]
fn a_record_tells_what_went_what_came_and_where_values_are() {
    let log = made().log;
    assert_eq!((log.nodes_before, log.nodes_after), (7, 4));
    assert!(log.settled && log.rounds == 1);
    let passes: Vec<&str> = log.records.iter().map(|one| one.pass.as_str()).collect();
    assert_eq!(passes, ["hold-constants", "remove-no-ops", "invert", "remove-dead-code"]);
    let constant = &log.records[0];
    assert_eq!(constant.weights[0].weight.name, "c");
    assert!(constant.values.is_empty(), "the value is still there, as a weight");
    let same = &log.records[1];
    assert_eq!(same.values["b"].as_deref(), Some("a"));
    assert_eq!((same.standing.as_slice(), same.rerouted.as_slice()), (&[1][..], &[3][..]));
    let inverse = &log.records[2];
    assert_eq!(inverse.reason, "the inverse");
    assert_eq!((inverse.removed[0].op_type.as_str(), inverse.removed[0].id), ("Mul", 3));
    assert_eq!((inverse.added[0].name.as_str(), inverse.added[0].id), ("divided", 7));
    assert_eq!(inverse.values, [("w".to_owned(), None)].into());
    let new = &inverse.weights[0];
    assert_eq!((new.weight.dtype.as_str(), new.weight.dims.as_slice()), ("float32", &[SIZE][..]));
    assert_eq!((new.from[0].name.as_str(), &new.from[0].sha256), ("w", &inverse.dropped[0].sha256));
    let declined = &log.declined;
    assert!(declined.is_empty(), "what was declined is dead by now: {declined:?}");
}

#[test]
fn the_side_file_holds_what_neither_model_has() {
    let made = made();
    let weights = 2 * SIZE * size_of::<f32>();
    assert!(made.elements.size() > weights);
    assert!(made.elements.size() < weights + SIZE * 4, "what both have is not kept again");
}

#[test]
fn nodes_say_where_they_come_from() {
    let notes = notes(&made().model);
    let list = |value: &str, key: &str| notes[value].get(key).cloned().unwrap_or_default();
    assert_eq!(list("a", "veracity.from"), r#"["relu","same"]"#, "it stands for the identity");
    assert_eq!(list("a", "veracity.rewrites"), "[1]");
    assert_eq!(list("m", "veracity.from"), r#"["m"]"#, "a node without name goes by its output");
    assert_eq!(list("m", "veracity.rewrites"), "[1,2]");
    assert!(notes["s"].is_empty(), "nobody touched it");
    assert_eq!(list("m", "pkg.torch.onnx.name"), "product", "notes of others live on");
    assert_eq!(list("m", "other"), "1");
}

#[test]
fn the_model_names_its_original_its_log_and_its_passes() {
    let made = made();
    let keys: BTreeMap<String, String> = made.model.metadata().into_iter().collect();
    assert_eq!(keys["veracity.original.sha256"], model_sha256(&model()));
    assert_eq!(keys["veracity.log.sha256"], veracity_transform::log_sha256(&made.log));
    assert_eq!(keys["veracity.signature"], pipeline().signature());
    assert_eq!(made.log.result_sha256, model_sha256(&made.model));
}

#[test]
fn without_notes_the_result_is_the_graph() {
    let made = record(&model(), &pipeline(), &run(&model()), LogOptions { provenance: false });
    let plain = run(&model()).graph.to_model().unwrap();
    assert_eq!(made.unwrap().model.to_bytes().unwrap(), plain.to_bytes().unwrap());
}

#[test]
fn names_of_the_first_original_survive_a_second_transformation() {
    let first = made().model;
    let graph = Graph::new(first.clone()).unwrap();
    let sum = graph.producer("s").unwrap().0;
    let product = graph.producer("m").unwrap().0;
    let node = Node::new("Sum", ["a", "kept"], ["s"]).named("fused");
    let patch = Patch::because("test").remove(sum).remove(product).insert(node);
    let pass: Box<dyn Pass> = Box::new(Once(patch));
    let pipeline = Pipeline::new(vec![pass]);
    let done = transform(graph, &pipeline, Limits::default(), &mut Trusting).unwrap();
    let second = record(&first, &pipeline, &done, LogOptions::default()).unwrap();
    let notes = notes(&second.model);
    assert_eq!(notes["s"]["veracity.from"], r#"["m","sum"]"#);
    assert_eq!(notes["s"]["pkg.torch.onnx.name"], "product", "no other node had the key");
    replays_and_reverses(&first, &pipeline, &done);
}

/// Proposes one patch as long as its first node is there.
struct Once(Patch);

impl Pass for Once {
    fn name(&self) -> &'static str {
        "once"
    }

    fn class(&self) -> Class {
        Class::ChangesComputation
    }

    fn about(&self) -> &'static str {
        "for tests"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        let first = self.0.touched().next().unwrap();
        if view.graph().node(first).is_some_and(|node| node.op_type() != "Tanh") {
            found.propose(first, self.0.clone());
        }
    }
}

#[test]
fn outputs_that_take_over_a_name_and_changed_nodes_replay() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Sigmoid", ["a"], ["b"]).named("old"))
        .node(Node::new("Identity", ["b"], ["y"]))
        .node(Node::new("Neg", ["b"], ["z"]))
        .output("y", DType::F32, [2_usize])
        .output("z", DType::F32, [2_usize])
        .finish()
        .unwrap();
    let graph = Graph::new(model.clone()).unwrap();
    let sigmoid = graph.producer("b").unwrap().0;
    let tanh = Node::new("Tanh", ["a"], ["b"]).named("new");
    let passes: Vec<Box<dyn Pass>> =
        vec![Box::new(Once(Patch::because("test").change(sigmoid, tanh))), Box::new(RemoveNoOps)];
    let pipeline = Pipeline::new(passes);
    let done = transform(graph, &pipeline, Limits::default(), &mut Trusting).unwrap();
    replays_and_reverses(&model, &pipeline, &done);
    let made = record(&model, &pipeline, &done, LogOptions::default()).unwrap();
    let fields: Vec<&str> =
        made.log.records[0].changed[0].fields.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields, ["operator", "name"]);
    assert_eq!(made.log.records[1].values["b"].as_deref(), Some("y"));
    let notes = notes(&made.model);
    assert_eq!(notes["y"]["veracity.from"], r#"["old","y"]"#);
    assert_eq!(notes["z"]["veracity.rewrites"], "[1]");
}

#[test]
fn files_hold_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.onnx");
    let made = made();
    made.write(&path).unwrap();
    let (log, elements) =
        (read_log(log_path(&path)).unwrap(), Elements::read(elements_path(&path)).unwrap());
    assert_eq!(log, made.log);
    assert!(elements == made.elements);
    let back = reverse(&Model::read(&path).unwrap(), &log, &elements).unwrap();
    assert_eq!(back.to_bytes().unwrap(), model().to_bytes().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn weights_may_lie_beside_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.onnx");
    let made = made();
    made.write_with(&path, None, |model, path| model.write_external(path, 512)).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    let inputs = inputs(&made.model, Kind::Normal);
    assert_eq!(file_answers(&path, &inputs), answers(&made.model, &inputs), "an engine reads it");
    let (log, elements) =
        (read_log(log_path(&path)).unwrap(), Elements::read(elements_path(&path)).unwrap());
    let back = reverse(&Model::read_whole(&path).unwrap(), &log, &elements).unwrap();
    assert_eq!(back.to_bytes().unwrap(), model().to_bytes().unwrap());
}

#[test]
fn what_was_changed_since_is_refused() {
    let Recorded { model: result, log, elements } = made();
    let other = result.annotated([], [("key".to_owned(), "value".to_owned())]);
    assert_eq!(code(reverse(&other, &log, &elements)), codes::LOG_MISFIT);
    assert_eq!(code(replay(&other, &log, &elements)), codes::LOG_MISFIT);
    let mut forged = log.clone();
    forged.records[2].reason = "because".to_owned();
    assert_eq!(code(reverse(&result, &forged, &elements)), codes::LOG_CHANGED);
    assert_eq!(code(replay(&model(), &forged, &elements)), codes::REPLAY_DIFFERS);
    let none = Elements::default();
    assert_eq!(code(replay(&model(), &log, &none)), codes::ELEMENTS_MISSING);
    let options = LogOptions { provenance: false };
    let plain = record(&model(), &pipeline(), &run(&model()), options).unwrap();
    let elsewhere = RewriteLog { original_sha256: "sha256:0".to_owned(), ..plain.log };
    let found = reverse(&plain.model, &elsewhere, &plain.elements);
    assert_eq!(code(found), codes::REVERSE_DIFFERS);
}

#[test]
fn files_that_are_no_logs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.json");
    assert_eq!(code(read_log(&path)), codes::FILE_NOT_FOUND);
    std::fs::write(&path, "{}").unwrap();
    assert_eq!(code(read_log(&path)), codes::LOG_UNREADABLE);
    let log = RewriteLog { schema_version: "2.0".to_owned(), ..made().log };
    std::fs::write(&path, serde_json::to_string(&log).unwrap()).unwrap();
    assert_eq!(code(read_log(&path)), codes::LOG_UNREADABLE);
}
