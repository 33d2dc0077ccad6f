//! The rewrite that broke a model is found, with what it needs to break it, and written down.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/rewriter.rs"]
mod rewriter;
mod support;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rewriter::Rewriter;
use veracity_diag::codes;
use veracity_diag::progress::{Listener, Part, Progress, listen};
use veracity_onnx::{Graph, GraphBuilder, Model, Node, Patch, Weight};
use veracity_tensor::{DType, Tensor};
use veracity_transform::bisect::{bisect, bisect_tool, rerun, write_repro};
use veracity_transform::judge::CheckOptions;
use veracity_transform::passes::{HoldConstants, RemoveDeadCode, RemoveNoOps};
use veracity_transform::{Class, Found, Limits, Pass, Pipeline, Trusting, View, transform};

const MATCHES: usize = 53;

/// `x`, halved and doubled 53 times, with something for other passes in between.
fn halves() -> Model {
    let two = Tensor::from_slice([0_usize; 0], &[2.0_f32]).unwrap();
    let mut builder =
        GraphBuilder::new("graph", 17).input("x", DType::F32, [4_usize]).initializer("two", &two);
    let mut value = "x".to_owned();
    for number in 0..MATCHES {
        let [a, b, c] = ["a", "b", "c"].map(|name| format!("{name}{number}"));
        builder = builder
            .node(Node::new("Div", [value.as_str(), "two"], [&a]))
            .node(Node::new("Identity", [&a], [&b]))
            .node(Node::new("Mul", [b.as_str(), "two"], [&c]));
        value = c;
    }
    let last = Node::new("Neg", [value], ["y"]);
    builder.node(last).output("y", DType::F32, [4_usize]).finish().unwrap()
}

/// Multiplies by a half instead of dividing by two; wrong in match 37.
fn planted(view: &View<'_>, found: &mut Found) {
    for (id, node) in view.nodes_of("Div") {
        let (given, value) = (node.input(0).unwrap(), node.output(0).unwrap());
        let half = if value == "a37" { 0.25 } else { 0.5 };
        let name = format!("half of {value}");
        let patch = Patch::because("the reciprocal")
            .weight(&name, Weight::from_floats(DType::F32, &[], &[half]).unwrap())
            .remove(id)
            .insert(Node::new("Mul", [given, &name], [value]));
        found.propose(id, patch);
    }
}

fn pipeline(find: fn(&View<'_>, &mut Found)) -> Pipeline {
    let class = Class::ExactBits;
    let planted: Box<dyn Pass> = Box::new(Rewriter { name: "planted", class, find });
    Pipeline::new(vec![
        Box::new(HoldConstants),
        planted,
        Box::new(RemoveNoOps),
        Box::new(RemoveDeadCode),
    ])
}

fn graph(model: Model) -> Graph {
    Graph::new(model).unwrap()
}

fn logarithm(number: usize) -> usize {
    number.next_power_of_two().trailing_zeros() as usize
}

#[test]
fn a_bug_in_match_37_of_53_is_found_in_few_runs() {
    let (pipeline, options) = (pipeline(planted), CheckOptions::default());
    let graph = graph(halves());
    let found = bisect(&graph, &pipeline, Limits::default(), support::ort(), &options).unwrap();
    assert_eq!((found.culprit.pass, found.culprit.index), ("planted", 37));
    assert!(found.rewrites > MATCHES);
    assert!(found.others.is_empty(), "{:?}", found.others);
    assert!(found.reason.contains("\"y\""), "{}", found.reason);
    let allowed = logarithm(pipeline.passes().len()) + logarithm(MATCHES) + 2;
    assert!(found.models <= allowed, "{} models, {allowed} allowed", found.models);

    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("repro");
    let record =
        write_repro(&target, &found.before, &found.culprit, support::ort(), &options).unwrap();
    assert_eq!((record.pass.as_str(), record.index), ("planted", 37));
    assert!(record.reason.contains("a37"), "{}", record.reason);
    for (name, ops) in [("before.onnx", ["Div"]), ("after.onnx", ["Mul"])] {
        let model = Model::read(target.join(name)).unwrap();
        let found: Vec<String> = model.op_types().into_keys().collect();
        assert_eq!(found, ops, "no more than the rewrite");
    }
    let again = rerun(&target, support::ort(), &options).unwrap();
    assert!(again.shows && again.repeats, "{again:?}");
    write_repro(&target, &found.before, &found.culprit, support::ort(), &options).unwrap();
    std::fs::write(target.join("mine.txt"), "").unwrap();
    let refused = write_repro(&target, &found.before, &found.culprit, support::ort(), &options);
    assert_eq!(refused.unwrap_err().first_error().code, codes::REPRO_FOLDER_TAKEN);
}

/// What was told to whoever waited: what is counted, how many, and which part of how many.
#[derive(Default)]
struct Told(RefCell<Vec<(&'static str, u64, String)>>);

impl Listener for Told {
    fn heard(&self, progress: &Progress) {
        let part = progress.part.map_or_else(String::new, |Part { what, at, of, name }| {
            format!("{what} {at} of {of} ({name})")
        });
        self.0.borrow_mut().push((progress.what, progress.done, part));
    }
}

#[test]
fn whoever_waits_is_told_which_pass_runs_and_how_many_rewrites_there_are() {
    let told = Rc::new(Told::default());
    let pipeline = pipeline(planted);
    let done = listen(Rc::clone(&told) as Rc<dyn Listener>, || {
        transform(graph(halves()), &pipeline, Limits::default(), &mut Trusting).unwrap()
    });
    let told = told.0.take();
    assert!(told.iter().all(|(what, ..)| *what == "rewrites"));
    assert!(told.is_sorted_by_key(|(_, count, _)| *count), "a count that grows: {told:?}");
    assert_eq!(told.last().unwrap().1, done.rewrites.len() as u64);
    let passes = told.iter().map(|(.., part)| part.as_str()).collect::<Vec<_>>();
    for part in ["pass 1 of 4 (hold-constants)", "pass 2 of 4 (planted)", "round 2, pass 1 of 4"] {
        assert!(passes.iter().any(|found| found.starts_with(part)), "{part}: {passes:?}");
    }
}

#[test]
fn whoever_waits_is_told_which_step_of_a_search_it_is() {
    let told = Rc::new(Told::default());
    let (pipeline, options) = (pipeline(planted), CheckOptions::default());
    listen(Rc::clone(&told) as Rc<dyn Listener>, || {
        let graph = graph(halves());
        bisect(&graph, &pipeline, Limits::default(), support::ort(), &options).unwrap();
    });
    let told = told.0.take();
    assert!(told.iter().all(|(what, ..)| *what == "models"), "rewrites inside are not told");
    let mut steps: Vec<&str> = told.iter().map(|(.., part)| part.as_str()).collect();
    steps.dedup();
    let expected = [
        "step 1 of 4 (everything)",
        "step 2 of 4 (which pass)",
        "step 3 of 4 (which rewrite)",
        "step 4 of 4 (what it needs)",
    ];
    assert_eq!(steps, expected);
}

/// Either of two rectifiers may go, but not both.
fn either(view: &View<'_>, found: &mut Found) {
    for (id, node) in view.nodes_of("Relu") {
        let (given, value) = (node.input(0).unwrap(), node.output(0).unwrap());
        let node = Node::new("Identity", [given], [value]);
        found.propose(id, Patch::because("there is another one").remove(id).insert(node));
    }
}

#[test]
fn rewrites_that_are_only_wrong_together_are_found_together() {
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [4_usize])
        .node(Node::new("Abs", ["x"], ["p"]))
        .node(Node::new("Relu", ["p"], ["q"]))
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Relu", ["a"], ["b"]))
        .node(Node::new("Relu", ["b"], ["c"]))
        .node(Node::new("Add", ["c", "q"], ["y"]))
        .output("y", DType::F32, [4_usize])
        .finish()
        .unwrap();
    let class = Class::ExactBits;
    let pass: Box<dyn Pass> = Box::new(Rewriter { name: "either", class, find: either });
    let pipeline = Pipeline::new(vec![pass]);
    let options = CheckOptions::default();
    let found =
        bisect(&graph(model), &pipeline, Limits::default(), support::ort(), &options).unwrap();
    assert_eq!(found.culprit.value, "c");
    let others: Vec<&str> = found.others.iter().map(|one| one.value.as_str()).collect();
    assert_eq!(others, ["a", "b"], "and not the one that is right");
}

#[test]
fn nothing_is_found_where_nothing_differs() {
    let right = |view: &View<'_>, found: &mut Found| {
        for (id, node) in view.nodes_of("Relu") {
            let other = node.clone().named("the same");
            if node.name().is_empty() {
                found.propose(id, Patch::because("a name").change(id, other));
            }
        }
    };
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [4_usize])
        .node(Node::new("Relu", ["x"], ["y"]))
        .output("y", DType::F32, [4_usize])
        .finish()
        .unwrap();
    let options = CheckOptions::default();
    let refused =
        bisect(&graph(model), &pipeline(right), Limits::default(), support::ort(), &options);
    assert_eq!(refused.unwrap_err().first_error().code, codes::BISECT_NOTHING);
}

#[test]
fn the_parts_of_another_optimiser_are_searched_by_name() {
    let names: Vec<String> = (0..40).map(|number| format!("pass {number}")).collect();
    for needed in [vec!["pass 7"], vec!["pass 3", "pass 33"]] {
        let mut wrong =
            |left_out: &BTreeSet<&str>| Ok(!needed.iter().all(|name| left_out.contains(name)));
        let found = bisect_tool(&names, &mut wrong).unwrap();
        assert_eq!(found.culprits, needed);
        assert!(needed.len() > 1 || found.models <= 14, "{} models", found.models);
    }
}

#[test]
fn another_optimiser_that_is_right_or_always_wrong_is_refused() {
    let names = ["one".to_owned()];
    for (answer, code) in [(false, codes::BISECT_NOTHING), (true, codes::TOOL_ALWAYS_WRONG)] {
        let refused = bisect_tool(&names, &mut |_| Ok(answer)).unwrap_err();
        assert_eq!(refused.first_error().code, code);
    }
}
