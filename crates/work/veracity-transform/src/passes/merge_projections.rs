//! Products of one value with several constant matrices become one product that is split.
//!
//! Where queries, keys and values are projected from the same value, one product with the matrices
//! side by side computes them all; `Split` hands the parts out under their old names. A bias that
//! each of them adds is put together in the same way. The numbers are the same sums of the same
//! products. Only proposed where it takes more nodes out than it puts in.
//!
//! Runs when asked for: the matrices are copied, `Split` copies on most engines, and a quantizer
//! then finds one scale for what were several matrices. What is gained depends on the engine.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::{Node, NodeId, Patch, Weight};
use veracity_tensor::{DType, Shape, Tensor};

use crate::{Class, Found, Pass, View};

/// Makes one projection of several that read the same value.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeProjections;

impl Pass for MergeProjections {
    fn name(&self) -> &'static str {
        "merge-projections"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "makes one projection of several that read the same value"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        let mut seen = BTreeSet::new();
        for (_, node) in view.graph().nodes().filter(|(_, node)| is_product(node)) {
            let Some(x) = node.input(0).filter(|x| seen.insert(x.to_string())) else { continue };
            for group in groups(view, x, found).into_values().filter(|group| group.len() > 1) {
                let anchor = group[0].ids[0];
                found.settle(anchor, merged(view, x, &group));
            }
        }
    }
}

fn is_product(node: &Node) -> bool {
    node.is("MatMul") || node.is("Gemm")
}

/// One product of `x` with a constant matrix, and the bias that is added.
struct Projection<'g> {
    ids: Vec<NodeId>,
    product: &'g Node,
    matrix: &'g Weight,
    bias: Option<&'g Weight>,
    value: &'g str,
    /// Columns of the matrix.
    width: usize,
}

/// What projections must share to become one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    op_type: String,
    dtype: &'static str,
    has_bias: bool,
    /// Rows of the matrix.
    depth: usize,
    transposed: bool,
    /// `alpha` and `beta` of `Gemm`, as bits.
    factors: [u32; 2],
}

fn groups<'g>(view: &View<'g>, x: &str, found: &mut Found) -> BTreeMap<Kind, Vec<Projection<'g>>> {
    let graph = view.graph();
    let mut groups: BTreeMap<Kind, Vec<Projection<'g>>> = BTreeMap::new();
    let readers = graph.readers(x).filter_map(|id| Some((id, graph.node(id)?)));
    for (id, node) in readers.filter(|(_, node)| is_product(node) && node.input(0) == Some(x)) {
        match projection(view, id, node) {
            Ok((kind, projection)) => groups.entry(kind).or_default().push(projection),
            Err(reason) => found.decline(id, reason),
        }
    }
    groups
}

fn projection<'g>(
    view: &View<'g>,
    id: NodeId,
    node: &'g Node,
) -> Result<(Kind, Projection<'g>), String> {
    let matrix = node.input(1).and_then(|name| view.constant(name));
    let matrix = matrix.ok_or("the matrix is not constant")?;
    let &[rows, columns] = matrix.dims().as_slice() else {
        return Err("the matrix does not have two axes".to_owned());
    };
    let dtype = matrix.dtype().ok_or("the matrix has a type of its own")?;
    let value = node.only_output().ok_or("it gives nothing")?;
    let gemm = node.is("Gemm");
    if gemm && node.int_of("transA").unwrap_or(0) != 0 {
        return Err("the value is transposed".to_owned());
    }
    let transposed = gemm && node.int_of("transB").unwrap_or(0) != 0;
    let (depth, width) = if transposed { (columns, rows) } else { (rows, columns) };
    let mut found = Projection { ids: vec![id], product: node, matrix, bias: None, value, width };
    if gemm {
        found.bias = node.input(2).map(|name| bias(view, name, width)).transpose()?;
    } else if let Some((next, sum)) = view.only_reader(value).filter(|(_, next)| next.is("Add")) {
        let other = sum.inputs().iter().find(|name| *name != value);
        if let Some(found_bias) = other.and_then(|name| bias(view, name, width).ok()) {
            found.bias = Some(found_bias);
            found.value = sum.only_output().ok_or("it gives nothing")?;
            found.ids.push(next);
        }
    }
    let factor = |name| if gemm { node.float_of(name).unwrap_or(1.0).to_bits() } else { 0 };
    let kind = Kind {
        op_type: node.op_type().to_owned(),
        dtype: dtype.name(),
        has_bias: found.bias.is_some(),
        depth,
        transposed,
        factors: [factor("alpha"), factor("beta")],
    };
    Ok((kind, found))
}

/// A constant with one number for each column.
fn bias<'g>(view: &View<'g>, name: &str, width: usize) -> Result<&'g Weight, String> {
    let found = view.constant(name).ok_or_else(|| format!("the bias {name:?} is not constant"))?;
    if found.dims() != [width] {
        return Err(format!("the bias {name:?} is not one number for each column"));
    }
    Ok(found)
}

fn merged(view: &View<'_>, x: &str, group: &[Projection<'_>]) -> Result<Option<Patch>, String> {
    let first = &group[0];
    let gemm = first.product.is("Gemm");
    let (with_bias, transposed) = (first.bias.is_some(), is_transposed(first));
    let added = 2 + usize::from(with_bias && !gemm);
    if group.iter().map(|one| one.ids.len()).sum::<usize>() <= added {
        return Err(format!("{} projections in one would not be fewer nodes", group.len()));
    }
    let axis = usize::from(!transposed);
    let matrix = beside(group.iter().map(|one| one.matrix), axis)?;
    let names: Vec<&str> = group.iter().map(|one| one.value).collect();
    let base = format!("{x}.projected");
    let matrix_name = view.fresh(&format!("{base}.weight"));
    let whole = view.fresh(&base);
    let mut patch = Patch::because(format!("{} are projections of {x:?}", names.join(", ")));
    patch = group.iter().flat_map(|one| one.ids.iter()).fold(patch, |patch, &id| patch.remove(id));
    let mut product = first.product.clone().with_input(1, &matrix_name);
    patch = patch.weight(&matrix_name, matrix);
    if with_bias {
        let name = view.fresh(&format!("{base}.bias"));
        patch = patch.weight(&name, beside(group.iter().filter_map(|one| one.bias), 0)?);
        if gemm {
            product = product.with_input(2, name).with_output(0, &whole);
            patch = patch.insert(product);
        } else {
            let plain = view.fresh(&format!("{base}.plain"));
            patch = patch.insert(product.with_output(0, &plain));
            patch = patch.insert(Node::new("Add", [plain, name], [whole.clone()]));
        }
    } else {
        patch = patch.insert(product.with_output(0, &whole));
    }
    let widths: Vec<i64> = group.iter().map(|one| one.width.cast_signed() as i64).collect();
    Ok(Some(split(view, patch, &whole, &names, &widths)?))
}

fn is_transposed(projection: &Projection<'_>) -> bool {
    projection.product.is("Gemm") && projection.product.int_of("transB").unwrap_or(0) != 0
}

/// Adds the node that hands the parts out; sizes are an input since opset 13.
fn split(
    view: &View<'_>,
    patch: Patch,
    whole: &str,
    names: &[&str],
    widths: &[i64],
) -> Result<Patch, String> {
    let outputs = names.iter().copied();
    if view.opset() < 13 {
        let node = Node::new("Split", [whole], outputs).int("axis", -1);
        return Ok(patch.insert(node.ints("split", widths)));
    }
    let sizes = view.fresh(&format!("{whole}.widths"));
    let tensor = Tensor::from_slice([widths.len()], widths).map_err(|error| error.to_string())?;
    let node = Node::new("Split", [whole, sizes.as_str()], outputs).int("axis", -1);
    Ok(patch.weight(sizes.clone(), Weight::new(tensor)).insert(node))
}

/// Constants put together along an axis: the only one, or one of two.
fn beside<'w>(weights: impl Iterator<Item = &'w Weight>, axis: usize) -> Result<Weight, String> {
    let tensors: Option<Vec<Tensor>> = weights.map(Weight::tensor).collect();
    let tensors = tensors.ok_or("the elements of a matrix cannot be read")?;
    let first = tensors.first().ok_or("there is no matrix")?;
    let (dtype, mut dims): (DType, Vec<usize>) = (first.dtype(), first.shape().dims().to_vec());
    let sizes = tensors.iter().map(|tensor| tensor.shape().dims()[axis]);
    dims[axis] = sizes.sum();
    let rows: usize = dims[..axis].iter().product();
    let mut bytes = Vec::with_capacity(tensors.iter().map(|tensor| tensor.bytes().len()).sum());
    for row in 0..rows {
        for tensor in &tensors {
            let width = tensor.bytes().len() / rows;
            bytes.extend_from_slice(&tensor.bytes()[row * width..(row + 1) * width]);
        }
    }
    let shape = Shape::new(dims).ok_or("the matrices together are too large")?;
    let joined = Tensor::from_bytes(dtype, shape, &bytes).map_err(|error| error.to_string())?;
    Ok(Weight::new(joined))
}
