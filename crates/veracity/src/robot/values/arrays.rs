//! Recordings brought into a form in which they can be compared.

use veracity_spec::{AxisNames, PortSpec};
use veracity_tensor::{Shape, Tensor};

/// The axis that has names, else the last; none for names of all elements.
pub(super) fn named_axis(port: &PortSpec) -> Option<usize> {
    let dims = port.shape.dims();
    let last = dims.len().checked_sub(1);
    match port.element_names.as_deref() {
        Some([AxisNames::Named(names)]) if dims.last() != Some(&names.len()) => None,
        Some(axes) if axes.len() > 1 => {
            let is_named = |axis: &AxisNames| matches!(axis, AxisNames::Named(_));
            axes.iter().position(is_named).or(last)
        }
        _ => last,
    }
}

/// The passes as rows of all elements, when no axis is meant.
pub(super) fn flattened(tensor: &Tensor, axis: Option<usize>) -> Tensor {
    let dims = tensor.shape().dims();
    let passes = dims.first().copied().unwrap_or(1);
    let flat = Shape::new([passes, dims.iter().skip(1).product()]);
    match (axis, flat) {
        (None, Some(flat)) => Tensor::from_bytes(tensor.dtype(), flat, tensor.bytes())
            .expect("the same elements in another shape"),
        _ => tensor.clone(),
    }
}

/// The first passes.
pub(super) fn first(tensor: &Tensor, count: usize) -> Tensor {
    let mut dims = tensor.shape().dims().to_vec();
    let bytes = tensor.bytes().len() / dims[0].max(1) * count;
    dims[0] = count;
    let shape = Shape::new(dims).expect("not larger than it was");
    Tensor::from_bytes(tensor.dtype(), shape, &tensor.bytes()[..bytes]).expect("cut to fit")
}

/// The elements of every pass in another order along an axis of the port.
pub(super) fn along(tensor: &Tensor, axis: Option<usize>, take: &[usize]) -> Tensor {
    let dims = tensor.shape().dims();
    let inner: usize = axis.map_or(1, |axis| dims[axis + 2..].iter().product());
    let step = inner * tensor.dtype().size();
    let mut moved = tensor.clone();
    if tensor.bytes().is_empty() {
        return moved;
    }
    let groups = moved.bytes_mut().chunks_exact_mut(step * take.len());
    for (target, source) in groups.zip(tensor.bytes().chunks_exact(step * take.len())) {
        for (part, &from) in target.chunks_exact_mut(step).zip(take) {
            part.copy_from_slice(&source[from * step..][..step]);
        }
    }
    moved
}
