//! Elements that change their place, and shapes at the edge: scalars and tensors of nothing.

use veracity_engine::Engine;
use veracity_onnx::Node;
use veracity_tensor::Tensor;

use crate::Case;
use crate::trial::Trial;
use crate::values::tensor;

pub(super) const CASES: &[Case] = &[
    Case { id: "concat", run: concat },
    Case { id: "slice_with_steps", run: slice },
    Case { id: "gather", run: gather },
    Case { id: "reshape_with_an_inferred_axis", run: reshape },
    Case { id: "transpose", run: transpose },
    Case { id: "argmax_gives_int64", run: argmax },
    Case { id: "topk_gives_values_and_int64_indices", run: topk },
    Case { id: "scalars", run: scalars },
    Case { id: "empty_tensors", run: empty_tensors },
    Case { id: "empty_output", run: empty_output },
];

/// 0 to 5 in two rows.
fn two_by_three() -> Tensor {
    tensor([2, 3], &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0])
}

fn concat(engine: &dyn Engine) -> Result<(), String> {
    let (a, b) = (two_by_three(), tensor([2, 1], &[8.0_f32, 9.0]));
    let y = tensor([2, 4], &[0.0_f32, 1.0, 2.0, 8.0, 3.0, 4.0, 5.0, 9.0]);
    Trial::new(&[("a", &a), ("b", &b)], &[("y", &y)])
        .node(Node::new("Concat", ["a", "b"], ["y"]).int("axis", 1))
        .check(engine)
}

fn slice(engine: &dyn Engine) -> Result<(), String> {
    let y = tensor([1, 2], &[3.0_f32, 5.0]);
    Trial::new(&[("x", &two_by_three())], &[("y", &y)])
        .constant("starts", &tensor([2], &[1_i64, 0]))
        .constant("ends", &tensor([2], &[2, i64::MAX]))
        .constant("axes", &tensor([2], &[0_i64, 1]))
        .constant("steps", &tensor([2], &[1_i64, 2]))
        .node(Node::new("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"]))
        .check(engine)
}

fn gather(engine: &dyn Engine) -> Result<(), String> {
    let indices = tensor([2], &[2_i64, 0]);
    let y = tensor([2, 2], &[2.0_f32, 0.0, 5.0, 3.0]);
    Trial::new(&[("x", &two_by_three()), ("i", &indices)], &[("y", &y)])
        .node(Node::new("Gather", ["x", "i"], ["y"]).int("axis", 1))
        .check(engine)
}

fn reshape(engine: &dyn Engine) -> Result<(), String> {
    let y = tensor([3, 2], &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
    Trial::new(&[("x", &two_by_three())], &[("y", &y)])
        .constant("shape", &tensor([2], &[3_i64, -1]))
        .node(Node::new("Reshape", ["x", "shape"], ["y"]))
        .check(engine)
}

fn transpose(engine: &dyn Engine) -> Result<(), String> {
    let y = tensor([3, 2], &[0.0_f32, 3.0, 1.0, 4.0, 2.0, 5.0]);
    Trial::new(&[("x", &two_by_three())], &[("y", &y)])
        .node(Node::new("Transpose", ["x"], ["y"]).ints("perm", [1, 0]))
        .check(engine)
}

fn argmax(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([2, 3], &[0.1_f32, 0.9, 0.5, 7.0, -1.0, 2.0]);
    Trial::new(&[("x", &x)], &[("y", &tensor([2], &[1_i64, 0]))])
        .node(Node::new("ArgMax", ["x"], ["y"]).int("axis", 1).int("keepdims", 0))
        .check(engine)
}

fn topk(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([2, 4], &[0.1_f32, 0.9, 0.5, 0.2, -3.0, -1.0, -2.0, -4.0]);
    let values = tensor([2, 2], &[0.9_f32, 0.5, -1.0, -2.0]);
    let indices = tensor([2, 2], &[1_i64, 2, 1, 2]);
    Trial::new(&[("x", &x)], &[("values", &values), ("indices", &indices)])
        .constant("k", &tensor([1], &[2_i64]))
        .node(Node::new("TopK", ["x", "k"], ["values", "indices"]))
        .check(engine)
}

fn scalars(engine: &dyn Engine) -> Result<(), String> {
    let [a, b, sum] = [1.5_f32, 2.0, 3.5].map(|value| tensor([], &[value]));
    Trial::new(&[("a", &a), ("b", &b)], &[("sum", &sum)])
        .node(Node::new("Add", ["a", "b"], ["sum"]))
        .check(engine)
}

fn empty_tensors(engine: &dyn Engine) -> Result<(), String> {
    let empty = tensor::<f32>([0, 3], &[]);
    Trial::new(&[("nothing", &empty), ("x", &two_by_three())], &[("y", &two_by_three())])
        .node(Node::new("Concat", ["nothing", "x"], ["y"]).int("axis", 0))
        .check(engine)
}

fn empty_output(engine: &dyn Engine) -> Result<(), String> {
    let empty = tensor::<f32>([0, 3], &[]);
    Trial::new(&[("x", &empty)], &[("y", &empty)])
        .node(Node::new("Relu", ["x"], ["y"]))
        .check(engine)
}
