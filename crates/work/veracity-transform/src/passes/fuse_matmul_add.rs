//! A product of two matrices with a bias becomes one `Gemm`, and a matrix that is transposed first
//! is read as it was.
//!
//! Needs: both factors are known to have two axes, the product has no other reader, and the bias
//! has a shape that spreads over the product without making it larger. More axes are left alone:
//! `Gemm` has two.

use veracity_onnx::{Node, NodeId, Patch};
use veracity_tensor::DType;

use super::support::{Match, read_once, size};
use crate::{Class, Found, Pass, View};

/// Turns products with a bias, and products of transposed matrices, into `Gemm`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseMatMulAdd;

impl Pass for FuseMatMulAdd {
    fn name(&self) -> &'static str {
        "fuse-matmul-add"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "turns MatMul with Add, and products of transposed matrices, into Gemm"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            if node.is("Add") {
                found.settle(id, with_bias(view, id, node));
            } else if node.is("Gemm") || node.is("MatMul") {
                found.settle(id, of_transposed(view, id, node));
            }
        }
    }
}

fn with_bias(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(left), Some(right), Some(value)) = (node.input(0), node.input(1), node.output(0))
    else {
        return Ok(None);
    };
    if left == right {
        return Ok(None);
    }
    let product = |value: &str| view.producer_of(value, "MatMul");
    let ((product_id, product), given, bias) = match (product(left), product(right)) {
        (Some(found), None) => (found, left, right),
        // Of two products the one that the other spreads over.
        (Some(found), Some(_)) if spreads(view, right, left).is_ok() => (found, left, right),
        (_, Some(found)) => (found, right, left),
        (None, None) => return Ok(None),
    };
    read_once(view, given)?;
    is_matrix_product(view, product)?;
    spreads(view, bias, given)?;
    let (Some(one), Some(two)) = (product.input(0), product.input(1)) else { return Ok(None) };
    let gemm = Node::new("Gemm", [one, two, bias], [value]).named(product.name());
    let reason = format!("{value:?} is a product of matrices and a bias");
    // The bias may be computed after the product.
    Ok(Some(Patch::because(reason).remove(product_id).change(id, gemm)))
}

/// Refuses a product that `Gemm` does not compute.
fn is_matrix_product(view: &View<'_>, product: &Node) -> Result<(), String> {
    for name in product.inputs() {
        match view.rank(name) {
            Some(2) => {}
            Some(rank) => return Err(format!("{name:?} has {rank} axes, not 2")),
            None => return Err(format!("{name:?} is not known to have 2 axes")),
        }
    }
    let dtype = product.inputs().iter().find_map(|name| view.dtype(name));
    if !matches!(dtype, Some(DType::F16 | DType::F32 | DType::F64)) {
        return Err("the product is not known to be of a float type".to_owned());
    }
    if view.opset() < 7 { Err("Gemm before opset 7 has other rules".to_owned()) } else { Ok(()) }
}

/// Refuses a bias that would make the product larger, or might.
fn spreads(view: &View<'_>, bias: &str, product: &str) -> Result<(), String> {
    let Some(dims) = view.dims(bias) else {
        return Err(format!("the shape of {bias:?} is not known"));
    };
    if dims.len() > 2 {
        return Err(format!("{bias:?} has more than 2 axes"));
    }
    let (_, node) = view.producer_of(product, "MatMul").ok_or("there is no product")?;
    let sizes = [node.input(0), node.input(1)].map(|name| view.dims(name?));
    let of_product = |from_end: usize| {
        let counted = 1 - from_end;
        sizes[counted]?.get(counted).cloned()
    };
    for (from_end, dim) in dims.iter().rev().enumerate() {
        let same = of_product(from_end).is_some_and(|other| match (size(dim), size(&other)) {
            (Some(one), Some(two)) => one == two,
            (None, None) => *dim == other && *dim != veracity_onnx::Dim::Unknown,
            _ => false,
        });
        if size(dim) != Some(1) && !same {
            return Err(format!("{bias:?} is not known to spread over the product"));
        }
    }
    Ok(())
}

/// Lets a product read a matrix that is transposed first as it was.
fn of_transposed(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let inputs = [0, 1].map(|index| {
        let value = node.input(index)?;
        let (transpose, found) = view.producer_of(value, "Transpose")?;
        Some((index, value, transpose, found))
    });
    let Some((index, value, transpose, found)) = inputs.into_iter().flatten().next() else {
        return Ok(None);
    };
    let Some(given) = found.input(0) else { return Ok(None) };
    if node.is("MatMul") {
        is_matrix_product(view, node)?;
        if view.opset() < 11 {
            return Err("Gemm before opset 11 needs a bias".to_owned());
        }
    }
    if found.ints_of("perm").is_some_and(|perm| perm != [1, 0]) {
        return Err(format!("{value:?} is not a transposed matrix"));
    }
    read_once(view, value)?;
    // A node that reads the value twice would read one of them as it was, and the other not at all.
    if node.input(0) == node.input(1) || node.input(2) == Some(value) {
        return Err(format!("{value:?} is read twice"));
    }
    let flag = ["transA", "transB"][index];
    let mut gemm = if node.is("Gemm") {
        node.clone()
    } else {
        let outputs = node.outputs().to_vec();
        Node::new("Gemm", node.inputs().to_vec(), outputs).named(node.name())
    };
    let turned = i64::from(gemm.int_of(flag).unwrap_or(0) == 0);
    gemm = gemm.with_input(index, given).int(flag, turned);
    let reason = format!("{value:?} is {given:?}, transposed");
    Ok(Some(Patch::because(reason).remove(transpose).change(id, gemm)))
}
