//! Inputs and outputs in a robot's order.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use tempfile::TempDir;
use veracity_diag::codes;
use veracity_onnx::{GraphBuilder, Node as Op};
use veracity_runtime::{Fusion, InputId, OutputId, RunOptions, Runner};
use veracity_spec::{
    AxisNames, Backend, Bundle, BundleWriter, Direction, FileContent, Model, Node, PortSpec,
    Reorder, ReorderMap, Spec,
};
use veracity_tensor::{DType, Tensor};

use crate::common::{Ort, accumulator, chain, key, pair, step};

fn entry(port: &str, direction: Direction, axis: Option<usize>, take: &[usize]) -> Reorder {
    Reorder { port: key(port), direction, axis, take: take.into(), bundle: None, robot: None }
}

fn options(entries: Vec<Reorder>) -> RunOptions {
    RunOptions::new().with_reorder(ReorderMap { entries, ..ReorderMap::default() })
}

/// One node whose ports have three axes: `y = x + x`.
fn doubled() -> (TempDir, Bundle) {
    let wide = |name: &str| {
        let mut port = PortSpec::new(name, DType::F32, [2, 3, 2]);
        port.element_names = Some(vec![
            AxisNames::Unnamed,
            AxisNames::named(["a", "b", "c"]),
            AxisNames::named(["x", "y"]),
        ]);
        port
    };
    let model = GraphBuilder::new("double", 20)
        .input("x", DType::F32, [2_usize, 3, 2])
        .node(Op::new("Add", ["x", "x"], ["y"]))
        .output("y", DType::F32, [2_usize, 3, 2])
        .finish()
        .unwrap();
    let node = Node {
        name: "double".into(),
        inputs: vec![wide("x")],
        outputs: vec![wide("y")],
        model: Some(Model::unhashed(Backend::Onnx, "double.onnx".parse().unwrap())),
        ..Node::default()
    };
    let spec = Spec {
        nodes: vec![node],
        pipeline_inputs: vec![key("double/x")],
        pipeline_outputs: vec![key("double/y")],
        ..Spec::default()
    };
    let folder = TempDir::new().unwrap();
    let bytes = FileContent::Bytes(model.to_bytes().unwrap());
    let writer = BundleWriter::new(spec).file("double.onnx".parse().unwrap(), bytes);
    let bundle = writer.write(folder.path().join("bundle")).unwrap();
    (folder, bundle)
}

fn counting() -> Vec<f32> {
    (0_u8..12).map(f32::from).collect()
}

/// What the node gives for counting inputs.
fn given(options: &RunOptions) -> Vec<f32> {
    let (_folder, bundle) = doubled();
    let mut runner = Runner::load(&bundle, &Ort, options).unwrap();
    let input = Tensor::from_slice([2, 3, 2], &counting()).unwrap();
    step(&mut runner, "double/x", input, "double/y")
}

#[test]
fn inputs_come_and_outputs_go_in_the_order_of_the_map() {
    let take = [2, 0, 1];
    let input = entry("double/x", Direction::Input, Some(1), &take);
    let output = entry("double/y", Direction::Output, Some(1), &take);
    let element =
        |outer: usize, middle: usize, inner: usize| counting()[outer * 6 + middle * 2 + inner];
    let mut expected = Vec::new();
    for outer in 0..2 {
        for middle in take {
            expected.extend((0..2).map(|inner| 2.0 * element(outer, middle, inner)));
        }
    }
    assert_eq!(given(&options(vec![input.clone()])), expected);
    assert_eq!(given(&options(vec![output])), expected);
    let back = entry("double/y", Direction::Output, Some(1), &[1, 2, 0]);
    let twice: Vec<f32> = counting().iter().map(|value| 2.0 * value).collect();
    assert_eq!(given(&options(vec![input, back])), twice, "the inverse undoes it");
}

#[test]
fn several_axes_and_all_elements_can_be_reordered() {
    let both = vec![
        entry("double/y", Direction::Output, Some(1), &[2, 0, 1]),
        entry("double/y", Direction::Output, Some(2), &[1, 0]),
    ];
    let expected: Vec<f32> =
        [5, 4, 1, 0, 3, 2, 11, 10, 7, 6, 9, 8_u8].map(|value| 2.0 * f32::from(value)).into();
    assert_eq!(given(&options(both)), expected);
    let reversed: Vec<usize> = (0..12).rev().collect();
    let flat = entry("double/x", Direction::Input, None, &reversed);
    let expected: Vec<f32> = counting().iter().rev().map(|value| 2.0 * value).collect();
    assert_eq!(given(&options(vec![flat])), expected);
}

#[test]
fn every_way_of_writing_and_reading_heeds_the_map() {
    let fused = RunOptions::new().with_fusion(Fusion::within_single_precision());
    let plain = RunOptions::new();
    for base in [plain, fused] {
        let mut straight = chain().load(&base);
        let (input, output) = (straight.inputs()[0].key.clone(), {
            let first = straight.outputs().next().unwrap();
            first.key.clone()
        });
        let direct = step(&mut straight, &input.to_string(), pair(1.0, 5.0), &output.to_string());
        let map = ReorderMap {
            entries: vec![
                entry(&input.to_string(), Direction::Input, Some(1), &[1, 0]),
                entry(&output.to_string(), Direction::Output, Some(1), &[1, 0]),
            ],
            ..ReorderMap::default()
        };
        let mut runner = chain().load(&base.with_reorder(map));
        let bytes: Vec<u8> = [5.0_f32, 1.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        runner.input_mut(InputId(0)).copy_from_slice(&bytes);
        runner.step().unwrap();
        let swapped: Vec<u8> = direct.iter().rev().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(runner.output_bytes(OutputId(0)).unwrap(), swapped);
        let again = step(&mut runner, &input.to_string(), pair(5.0, 1.0), &output.to_string());
        assert_eq!(again, direct.iter().rev().copied().collect::<Vec<_>>());
        let seen = runner.input_value(&input.node, &input.port).unwrap();
        assert_eq!(seen, pair(1.0, 5.0), "inside of the pipeline the bundle's order holds");
    }
}

#[test]
fn state_is_carried_in_the_order_of_the_bundle() {
    let mut straight = accumulator().load(&RunOptions::new());
    let input = straight.inputs()[0].key.to_string();
    let output = straight.outputs().next().unwrap().key.to_string();
    let map = options(vec![
        entry(&input, Direction::Input, Some(1), &[1, 0]),
        entry(&output, Direction::Output, Some(1), &[1, 0]),
    ]);
    let mut runner = accumulator().load(&map);
    for (left, right) in [(1.0, 2.0), (3.0, -4.0), (0.5, 0.0)] {
        let mut direct = step(&mut straight, &input, pair(left, right), &output);
        direct.reverse();
        assert_eq!(step(&mut runner, &input, pair(right, left), &output), direct);
    }
}

#[test]
fn a_map_that_does_not_fit_is_refused_before_anything_runs() {
    let (_folder, bundle) = doubled();
    let mut named = entry("double/x", Direction::Input, Some(1), &[1, 0, 2]);
    named.bundle = Some(["p", "q", "r"].map(str::to_owned).into());
    named.robot = Some(["q", "p", "r"].map(str::to_owned).into());
    for (what, wrong) in [
        ("another port", entry("double/z", Direction::Input, Some(1), &[1, 0, 2])),
        ("another side", entry("double/x", Direction::Output, Some(1), &[1, 0, 2])),
        ("another size", entry("double/x", Direction::Input, Some(1), &[1, 0])),
        ("no order", entry("double/x", Direction::Input, Some(1), &[1, 1, 0])),
        ("no axis", entry("double/x", Direction::Input, Some(3), &[1, 0, 2])),
        ("other names", named),
    ] {
        let refusal = Runner::load(&bundle, &Ort, &options(vec![wrong])).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::REORDER_MISFIT, "{what}");
    }
}
