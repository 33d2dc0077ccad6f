//! `veracity transform`, `audit`, `reverse`, `bisect`, `passes`, and `diff` of models.

use veracity::tensor::DType;
use veracity_onnx::{GraphBuilder, Model, Node};

use crate::bundle::{floats, write_recorded_policy};
use crate::support::{Desk, Said, python_environment};

/// `y = relu(identity(x * w))`, and something that nobody reads.
fn model() -> Model {
    GraphBuilder::new("net", 20)
        .input("x", DType::F32, [3_usize, 2])
        .initializer("w", &floats([2, 1], &[2.0, 1.0]))
        .node(Node::new("MatMul", ["x", "w"], ["product"]).named("multiply"))
        .node(Node::new("Identity", ["product"], ["same"]).named("hand_on"))
        .node(Node::new("Relu", ["same"], ["y"]).named("rectify"))
        .node(Node::new("Neg", ["x"], ["unread"]).named("nobody"))
        .output("y", DType::F32, [3_usize, 1])
        .finish()
        .unwrap()
}

fn desk() -> Desk {
    let desk = Desk::new();
    model().write(desk.path("net.onnx")).unwrap();
    std::fs::write(desk.path("text.onnx"), "not a model").unwrap();
    desk
}

/// Runs with the ONNX Runtime of the project's Python environment.
fn run(desk: &Desk, arguments: &str) -> Said {
    let mut command = desk.command(arguments);
    command.env("VIRTUAL_ENV", python_environment());
    Said::from(command)
}

fn transformed() -> Desk {
    let desk = desk();
    assert_eq!(run(&desk, "transform net.onnx -o small.onnx").code, 0);
    desk
}

#[test]
fn every_rewrite_is_proved_and_the_way_back_is_there() {
    let desk = transformed();
    let small = Model::read(desk.path("small.onnx")).unwrap();
    assert_eq!(small.nodes().len(), 2);
    let said = run(&desk, "audit small.onnx --original net.onnx");
    assert!(said.stdout.contains("explained byte for byte by its log"), "{}", said.stdout);
    assert_eq!(run(&desk, "reverse small.onnx -o back.onnx").code, 0);
    let bytes = |name: &str| std::fs::read(desk.path(name)).unwrap();
    assert_eq!(bytes("back.onnx"), bytes("net.onnx"));
}

#[test]
fn questions_about_nodes_and_values_are_answered() {
    let desk = transformed();
    for (question, answer) in [
        ("--value same", "same is product now"),
        ("--value unread", "unread is gone"),
        ("--pass remove-no-ops", "-hand_on"),
        ("--why-not rectify", "no pass saw a match there"),
    ] {
        let said = run(&desk, &format!("audit small.onnx {question}"));
        assert_eq!(said.code, 0, "{question}: {}", said.stderr);
        assert!(said.stdout.contains(answer), "{question}: {}", said.stdout);
    }
}

#[test]
fn programs_get_the_log_and_the_checks() {
    let said = run(&desk(), "transform net.onnx -o small.onnx --format json").json();
    assert_eq!(said["nodes_after"], 2);
    assert_eq!(said["checks"]["verdict"], "proved");
    let passes = run(&desk(), "passes --format json").json();
    assert!(passes.as_array().unwrap().iter().any(|pass| pass["name"] == "fuse-batch-norm"));
}

#[test]
fn the_page_is_the_same_however_it_is_asked_for() {
    let desk = desk();
    assert_eq!(run(&desk, "transform net.onnx -o small.onnx --html small.html").code, 0);
    let page = desk.read("small.html");
    for expected in [
        "class=\"verdict proved\"><strong>proved</strong><span>: 2 of 2 rewrites proved",
        "same = <b>Identity</b>(product)",
        "veracity audit small.onnx --original ORIGINAL.onnx",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert_eq!(run(&desk, "report small.onnx.rewrites.json -o again.html").code, 0);
    assert!(desk.read("again.html") == page);
    let said = run(&desk, "transform net.onnx -o small.onnx --html net.onnx");
    assert!(said.stderr.contains("VER0003"), "{}", said.stderr);
}

#[test]
fn without_checks_nothing_is_called_proved() {
    let said = run(&desk(), "transform net.onnx -o small.onnx --validate off --no-log");
    assert_eq!(said.code, 0);
    assert!(said.stdout.starts_with("small.onnx: not checked"), "{}", said.stdout);
}

#[test]
fn two_models_are_compared() {
    let desk = transformed();
    let said = run(&desk, "diff net.onnx small.onnx");
    assert!(said.stdout.contains("nodes that are gone (2)"), "{}", said.stdout);
    let same = run(&desk, "diff net.onnx net.onnx");
    assert!(same.stdout.starts_with("the same:"), "{}", same.stdout);
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let said = run(&desk(), "bisect net.onnx");
    assert_eq!((said.code, said.stdout.as_str()), (0, "nothing to find: the outputs agree\n"));
}

#[test]
fn a_bundle_is_transformed_and_proved_again() {
    let desk = Desk::new();
    write_recorded_policy(&desk, 0.0);
    let said = run(&desk, "transform policy -o smaller");
    assert_eq!(said.code, 0, "{}\n{}", said.stdout, said.stderr);
    assert_eq!(run(&desk, "check smaller").code, 0);
    let page = desk.read("smaller/report.html");
    assert!(
        page.contains("class=\"verdict proved\"><strong>Proved</strong><span>: all "),
        "the proof of the new bundle"
    );
    assert!(page.contains("<h2>Changes of "), "and what was done to its models");
    assert_eq!(run(&desk, "transform policy -o policy").code, 2, "the old one stays");
}

#[test]
fn what_cannot_be_done_is_refused_with_its_code() {
    let desk = transformed();
    for (arguments, code) in [
        ("transform net.onnx -o net.onnx", "VER0707"),
        ("transform net.onnx -o a.onnx --passes fuse-batchnorm", "VER1331"),
        ("transform text.onnx -o a.onnx", "VER05"),
        ("transform gone.onnx -o a.onnx", "VER00"),
        ("audit net.onnx", "VER00"),
        ("audit small.onnx --node nobody", "VER1358"),
        ("reverse net.onnx -o a.onnx", "VER00"),
        ("bisect net.onnx --tool gone --names A", "VER1340"),
        ("diff net.onnx proof.json", "VER0707"),
    ] {
        let said = run(&desk, arguments);
        assert_eq!(said.code, 2, "{arguments}: {}", said.stdout);
        assert!(said.stderr.contains(code), "{arguments}: {}", said.stderr);
    }
    std::fs::copy(desk.path("net.onnx"), desk.path("small.onnx")).unwrap();
    let said = run(&desk, "reverse small.onnx -o a.onnx");
    assert!(said.stderr.contains("VER1337"), "{}", said.stderr);
}
