//! Rewrites of tests, right and wrong.

use veracity_onnx::{Node, NodeId, Patch, Weight};
use veracity_tensor::{DType, Tensor};
use veracity_transform::{Found, View};

fn first<'g>(view: &View<'g>, operator: &'static str) -> (NodeId, &'g Node) {
    view.nodes_of(operator).next().unwrap()
}

fn weight(view: &View<'_>, name: &str) -> Vec<f64> {
    view.constant(name).unwrap().floats().unwrap()
}

fn floats(dims: &[usize], elements: &[f64]) -> Weight {
    Weight::from_floats(DType::F32, dims, elements).unwrap()
}

fn settle(found: &mut Found, at: NodeId, patch: Patch) {
    found.propose(at, patch);
}

pub(crate) fn becomes(view: &View<'_>, found: &mut Found, was: &'static str, is: &str) {
    let (id, node) = first(view, was);
    let other = Node::new(is, [node.input(0).unwrap()], [node.output(0).unwrap()]);
    settle(found, id, Patch::because("the same").remove(id).insert(other));
}

pub(crate) fn other_epsilon(view: &View<'_>, found: &mut Found) {
    let (id, node) = first(view, "BatchNormalization");
    let other = node.clone().float("epsilon", 1e-5);
    settle(found, id, Patch::because("nearly 0").change(id, other));
}

pub(crate) fn zeroed(view: &View<'_>, found: &mut Found, operator: &'static str, input: usize) {
    let (id, node) = first(view, operator);
    let old = view.constant(node.input(input).unwrap()).unwrap();
    let mut elements = old.floats().unwrap();
    let channel = elements.len() / old.dims()[0];
    elements[channel..2 * channel].fill(0.0);
    let patch = Patch::because("small")
        .weight("other", floats(&old.dims(), &elements))
        .change(id, node.clone().with_input(input, "other"));
    settle(found, id, patch);
}

pub(crate) fn dropped_residual(view: &View<'_>, found: &mut Found) {
    let (id, node) = first(view, "Add");
    let patch = Patch::because("small").remove(id).replace("s", node.input(1).unwrap());
    settle(found, id, patch);
}

#[derive(Clone, Copy)]
pub(crate) struct Fold {
    pub(crate) scale_bias: bool,
    pub(crate) shift: f64,
    pub(crate) in_place: bool,
}

impl Fold {
    pub(crate) const RIGHT: Self = Self { scale_bias: true, shift: 0.0, in_place: false };
}

/// Folds the batch norm into the convolution before it.
pub(crate) fn fold(view: &View<'_>, found: &mut Found, how: Fold) {
    let ((conv, node), (norm, _)) = (first(view, "Conv"), first(view, "BatchNormalization"));
    let (scale, shift) = (weight(view, "scale"), weight(view, "shift"));
    let (mean, variance) = (weight(view, "mean"), weight(view, "variance"));
    let bias = node.input(2).map_or_else(|| vec![0.0; 4], |name| weight(view, name));
    let factor: Vec<f64> = scale
        .iter()
        .zip(&variance)
        .map(|(scale, variance)| scale / (variance + f64::from(1e-3_f32)).sqrt())
        .collect();
    let old = view.constant("w").unwrap();
    let mut elements = old.floats().unwrap();
    for (channel, factor) in elements.chunks_mut(27).zip(&factor) {
        for element in channel.iter_mut() {
            *element *= factor;
        }
    }
    let shifts: Vec<f64> = (0..4)
        .map(|at| {
            let own = if how.scale_bias { bias[at] * factor[at] } else { bias[at] };
            own - mean[at] * factor[at] + shift[at] + how.shift
        })
        .collect();
    let patch = Patch::because("folded")
        .weight("w2", floats(&old.dims(), &elements))
        .weight("b2", floats(&[4], &shifts));
    let patch = if how.in_place {
        let changed = Node::new("Conv", ["x", "w2", "b2"], ["c"]);
        patch.change(conv, changed).remove(norm).insert(Node::new("Identity", ["c"], ["y"]))
    } else {
        patch.remove(conv).remove(norm).insert(Node::new("Conv", ["x", "w2", "b2"], ["y"]))
    };
    settle(found, norm, patch);
}

pub(crate) fn fold_last_axis(view: &View<'_>, found: &mut Found) {
    let ((product, _), (norm, _)) = (first(view, "MatMul"), first(view, "BatchNormalization"));
    let (scale, shift) = (weight(view, "scale"), weight(view, "shift"));
    let (mean, variance) = (weight(view, "mean"), weight(view, "variance"));
    let factor: Vec<f64> = (0..4).map(|at| scale[at] / (variance[at] + 1e-3).sqrt()).collect();
    let mut elements = weight(view, "w");
    for (at, element) in elements.iter_mut().enumerate() {
        *element *= factor[at % 4];
    }
    let shifts: Vec<f64> = (0..4).map(|at| shift[at] - mean[at] * factor[at]).collect();
    let patch = Patch::because("folded")
        .weight("w2", floats(&[5, 4], &elements))
        .weight("b2", floats(&[4], &shifts))
        .remove(product)
        .remove(norm)
        .insert(Node::new("MatMul", ["x", "w2"], ["c2"]))
        .insert(Node::new("Add", ["c2", "b2"], ["y"]));
    settle(found, norm, patch);
}

pub(crate) fn reciprocal(view: &View<'_>, found: &mut Found) {
    let (id, _) = first(view, "Div");
    let by = weight(view, "by")[0];
    let patch = Patch::because("the reciprocal")
        .weight("times", floats(&[], &[1.0 / by]))
        .remove(id)
        .insert(Node::new("Mul", ["x", "times"], ["y"]));
    settle(found, id, patch);
}

/// `[x, ones] @ [w; b]`
pub(crate) fn bias_column(view: &View<'_>, found: &mut Found, filled: f64) {
    let (id, _) = first(view, "Gemm");
    let elements: Vec<f64> = weight(view, "w").into_iter().chain(weight(view, "b")).collect();
    let patch = Patch::because("a column")
        .weight("wb", floats(&[9, 4], &elements))
        .weight("ones", floats(&[3, 1], &[filled; 3]))
        .remove(id)
        .insert(Node::new("Concat", ["x", "ones"], ["xo"]).int("axis", 1))
        .insert(Node::new("MatMul", ["xo", "wb"], ["y"]));
    settle(found, id, patch);
}

pub(crate) fn merged(view: &View<'_>, found: &mut Found, swapped: bool) {
    let mut nodes = view.nodes_of("MatMul");
    let ((q, _), (k, _)) = (nodes.next().unwrap(), nodes.next().unwrap());
    let (one, two) = (weight(view, "wq"), weight(view, "wk"));
    let rows = one.chunks(4).zip(two.chunks(4));
    let elements: Vec<f64> = rows.flat_map(|(one, two)| [one, two].concat()).collect();
    let sizes = Tensor::from_slice([2], &[4_i64, 4]).unwrap();
    let outputs = if swapped { ["k", "q"] } else { ["q", "k"] };
    let patch = Patch::because("one product")
        .weight("wqk", floats(&[8, 8], &elements))
        .weight("sizes", Weight::new(sizes))
        .remove(q)
        .remove(k)
        .insert(Node::new("MatMul", ["x", "wqk"], ["qk"]))
        .insert(Node::new("Split", ["qk", "sizes"], outputs).int("axis", 1));
    settle(found, q, patch);
}

/// Skips over the first transposition, which stays because others read it.
pub(crate) fn composed(view: &View<'_>, found: &mut Found, wrong: bool) {
    let (id, _) = view.graph().producer("y").unwrap();
    let perm = if wrong { [2, 1, 0] } else { [1, 0, 2] };
    let node = Node::new("Transpose", ["x"], ["y"]).ints("perm", perm);
    settle(found, id, Patch::because("one transposition").change(id, node));
}

pub(crate) fn skipped_add(view: &View<'_>, found: &mut Found) {
    let (id, _) = first(view, "Add");
    settle(found, id, Patch::because("plus nothing").remove(id).replace("b", "a"));
}

pub(crate) fn shared_twin(view: &View<'_>, found: &mut Found, twin: &str) {
    let (id, _) = view.graph().producer(twin).unwrap();
    settle(found, id, Patch::because("a twin").remove(id).replace(twin, "a"));
}

pub(crate) fn held(view: &View<'_>, found: &mut Found, number: f64) {
    let (id, _) = first(view, "Constant");
    let patch = Patch::because("held").remove(id).weight("half", floats(&[], &[number]));
    settle(found, id, patch);
}

pub(crate) fn other_index(view: &View<'_>, found: &mut Found) {
    let (id, node) = first(view, "Gather");
    let index = Tensor::from_slice([2], &[0_i64, 2]).unwrap();
    let patch = Patch::because("the same")
        .weight("other", Weight::new(index))
        .change(id, node.clone().with_input(1, "other"));
    settle(found, id, patch);
}

pub(crate) fn other_type(view: &View<'_>, found: &mut Found) {
    let (id, _) = first(view, "Relu");
    let patch = Patch::because("wider")
        .remove(id)
        .insert(Node::new("Relu", ["x"], ["r"]))
        .insert(Node::new("Cast", ["r"], ["y"]).int("to", 11));
    settle(found, id, patch);
}

pub(crate) fn other_shape(view: &View<'_>, found: &mut Found) {
    let (id, _) = first(view, "Relu");
    let patch = Patch::because("turned")
        .remove(id)
        .insert(Node::new("Relu", ["x"], ["r"]))
        .insert(Node::new("Transpose", ["r"], ["y"]));
    settle(found, id, patch);
}

pub(crate) fn unfit(view: &View<'_>, found: &mut Found) {
    let (id, _) = first(view, "Gemm");
    let patch = Patch::because("turned")
        .remove(id)
        .insert(Node::new("Gemm", ["x", "w", "b"], ["y"]).int("transB", 1));
    settle(found, id, patch);
}

pub(crate) fn joined_layer_norm(view: &View<'_>, found: &mut Found) {
    let mut patch = Patch::because("a layer norm").weight("ones", floats(&[32], &[1.0; 32]));
    let mut last = NodeId(0);
    for (id, _) in view.graph().nodes() {
        patch = patch.remove(id);
        last = id;
    }
    let node = Node::new("LayerNormalization", ["x", "ones"], ["y"]).float("epsilon", 1e-5);
    settle(found, last, patch.insert(node));
}

pub(crate) fn joined_hard_swish(view: &View<'_>, found: &mut Found) {
    let ((one, _), (two, _)) = (first(view, "HardSigmoid"), first(view, "Mul"));
    let node = Node::new("HardSwish", ["x"], ["y"]);
    settle(found, two, Patch::because("a hard swish").remove(one).remove(two).insert(node));
}
