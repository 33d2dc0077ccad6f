//! Layers that are linear in a constant weight, and what an affine function of their channels makes
//! of them.
//!
//! `factor * (W x + b) + shift`, channel by channel, is `(factor W) x + (factor b + shift)`. The
//! right side is the same layer with another weight and another bias; weights are never changed in
//! place, as others may read them.

use veracity_onnx::{Node, NodeId, Patch, Weight};
use veracity_tensor::DType;

use super::scaling::{Layout, rounded, scaled};
use super::support::{float_constant, read_once};
use crate::View;

/// An affine function of each channel.
pub(super) struct Affine {
    pub(super) factors: Vec<f64>,
    pub(super) shifts: Vec<f64>,
}

/// `Conv`, `ConvTranspose`, `Gemm` or `MatMul` with a constant weight.
pub(super) struct Layer<'g> {
    pub(super) id: NodeId,
    pub(super) node: &'g Node,
    /// Number of output channels.
    pub(super) channels: usize,
    dtype: DType,
    weight: &'g Weight,
    weight_name: &'g str,
    layout: Layout,
}

impl<'g> Layer<'g> {
    /// The layer that gives a value which nobody else reads, for a follower that wants to be folded
    /// into it; `None` when it is something else.
    pub(super) fn before(view: &View<'g>, value: &str) -> Result<Option<Self>, String> {
        let Some((id, node)) = view.graph().producer(value) else { return Ok(None) };
        let layer = Self::of(view, id, node)?;
        if layer.is_some() {
            read_once(view, value)?;
        }
        Ok(layer)
    }

    /// A node as a layer; `None` when it is something else.
    pub(super) fn of(view: &View<'g>, id: NodeId, node: &'g Node) -> Result<Option<Self>, String> {
        let known = ["Conv", "ConvTranspose", "Gemm", "MatMul"];
        if !known.iter().any(|op| node.is(op)) {
            return Ok(None);
        }
        let Some(name) = node.input(1) else { return Ok(None) };
        let Some((weight, dtype)) = float_constant(view, name) else {
            return Err(format!("the weight {name:?} is not a constant of a float type"));
        };
        if node.is("Gemm") && view.opset() < 7 {
            return Err("the bias of a Gemm before opset 7 has rules of its own".to_owned());
        }
        let layout = layout(node, &weight.dims())?;
        let channels = layout.channels * layout.groups;
        Ok(Some(Self { id, node, channels, dtype, weight, weight_name: name, layout }))
    }

    /// Whether the channels are the second axis of at least three, as in images.
    pub(super) fn is_convolution(&self) -> bool {
        self.node.is("Conv") || self.node.is("ConvTranspose")
    }

    /// Number of axes of what the layer gives, when it is known.
    pub(super) fn rank(&self, view: &View<'_>) -> Option<usize> {
        match self.node.op_type() {
            "Gemm" => Some(2),
            "MatMul" => {
                let (one, two) = (view.rank(self.node.input(0)?)?, self.weight.dims().len());
                // A vector on the left loses its axis.
                Some(if one == 1 { two - 1 } else { one.max(two) })
            }
            _ => Some(self.weight.dims().len()),
        }
    }

    /// A patch that folds an affine function into the layer, which then gives `output`.
    pub(super) fn fold(
        &self,
        view: &View<'_>,
        patch: Patch,
        affine: &Affine,
        output: &str,
    ) -> Result<Patch, String> {
        let (patch, node) = self.with_weight(view, patch, self.layout, &affine.factors)?;
        let (patch, node) = self.with_bias(view, patch, node, affine)?;
        Ok(patch.change(self.id, node.with_output(0, output)))
    }

    /// A patch that folds an affine function of the input channels into the layer, which then takes
    /// `source`.
    pub(super) fn take_in(
        &self,
        view: &View<'_>,
        patch: Patch,
        affine: &Affine,
        source: &str,
    ) -> Result<Patch, String> {
        let layout = self.input_layout()?;
        let shifts = if affine.shifts.iter().all(|shift| *shift == 0.0) {
            vec![0.0; self.channels]
        } else {
            self.shifts_of_inputs(layout, &affine.shifts)?
        };
        let (patch, node) = self.with_weight(view, patch, layout, &affine.factors)?;
        let added = Affine { factors: vec![1.0; self.channels], shifts };
        let (patch, node) = self.with_bias(view, patch, node.with_input(0, source), &added)?;
        Ok(patch.change(self.id, node))
    }

    /// Number of input channels.
    pub(super) fn input_channels(&self) -> Result<usize, String> {
        self.input_layout().map(|layout| layout.channels * layout.groups)
    }

    /// Where the input channels lie in the weight.
    fn input_layout(&self) -> Result<Layout, String> {
        let Layout { blocks, channels, inner, .. } = self.layout;
        let turned = self.node.int_of("transB").unwrap_or(0) != 0;
        match (self.node.op_type(), self.weight.dims()[..].split_at_checked(2)) {
            ("Conv", Some(([_, within], kernel))) => {
                let groups = usize::try_from(self.node.int_of("group").unwrap_or(1)).unwrap_or(0);
                let inner = kernel.iter().product();
                Ok(Layout { blocks: channels, channels: *within, inner, groups })
            }
            ("Gemm", _) if turned => {
                Ok(Layout { blocks: channels, channels: inner, inner: 1, groups: 1 })
            }
            ("Gemm" | "MatMul", Some((_, []))) => {
                Ok(Layout { blocks: 1, channels: blocks, inner: channels, groups: 1 })
            }
            (operator, _) => Err(format!("{operator} is not folded into from its input")),
        }
    }

    /// What constants that are added to the input channels add to each output channel.
    fn shifts_of_inputs(&self, layout: Layout, shifts: &[f64]) -> Result<Vec<f64>, String> {
        let elements = self.weight.floats().ok_or("the elements of a weight cannot be read")?;
        let Layout { blocks, channels, inner, groups } = layout;
        if elements.is_empty() || groups == 0 || blocks % groups != 0 {
            return Err("the shape of a weight does not fit its channels".to_owned());
        }
        let alpha =
            if self.node.is("Gemm") { self.node.float_of("alpha").unwrap_or(1.0) } else { 1.0 };
        let mut sums = vec![0.0; self.channels];
        for (index, element) in elements.iter().enumerate() {
            let (block, within) = (index / (channels * inner), index / inner % channels);
            let shift = shifts[block / (blocks / groups) * channels + within];
            let output = if blocks == 1 && !self.is_convolution() { index % inner } else { block };
            sums[output] += element * shift * f64::from(alpha);
        }
        Ok(sums)
    }

    /// The node with channels of its weight multiplied.
    fn with_weight(
        &self,
        view: &View<'_>,
        patch: Patch,
        layout: Layout,
        factors: &[f64],
    ) -> Result<(Patch, Node), String> {
        let node = self.node.clone();
        if factors.iter().all(|factor| factor.to_bits() == 1.0_f64.to_bits()) {
            return Ok((patch, node));
        }
        let weight = scaled(self.weight, layout, factors)?;
        let name = view.fresh(&folded_name(self.weight_name));
        Ok((patch.weight(&name, weight), node.with_input(1, name)))
    }

    /// The node with the bias that it has after folding.
    fn with_bias(
        &self,
        view: &View<'_>,
        mut patch: Patch,
        mut node: Node,
        affine: &Affine,
    ) -> Result<(Patch, Node), String> {
        let (bias_name, bias) = self.folded_bias(view, affine)?;
        if let Some(bias) = bias {
            if node.is("MatMul") {
                node = self.as_gemm(view, &node)?;
            }
            if node.is("Gemm") {
                node = node.without("beta");
            }
            let name = view.fresh(&bias_name);
            node = node.with_input(2, &name);
            patch = patch.weight(name, bias);
        }
        Ok((patch, node))
    }

    /// The bias after folding, unless there is none and none is needed.
    fn folded_bias(
        &self,
        view: &View<'_>,
        affine: &Affine,
    ) -> Result<(String, Option<Weight>), String> {
        let old = match self.node.input(2) {
            None => None,
            Some(name) => Some((name, self.bias(view, name)?)),
        };
        if old.is_none() && affine.shifts.iter().all(|shift| *shift == 0.0) {
            return Ok((String::new(), None));
        }
        let name = old
            .as_ref()
            .map_or_else(|| format!("{}_bias", self.weight_name), |(name, _)| folded_name(name));
        let old = old.map_or_else(|| vec![0.0; self.channels], |(_, bias)| bias);
        let pairs = affine.factors.iter().zip(&affine.shifts).zip(old);
        let folded: Vec<f64> = pairs.map(|((factor, shift), old)| factor * old + shift).collect();
        Ok((name, Some(rounded(self.dtype, &folded)?)))
    }

    /// The bias that the layer has, one for each channel, in float64.
    fn bias(&self, view: &View<'_>, name: &str) -> Result<Vec<f64>, String> {
        let Some((weight, _)) = float_constant(view, name) else {
            return Err(format!("the bias {name:?} is not a constant of a float type"));
        };
        let elements = weight.floats().ok_or("the elements of a bias cannot be read")?;
        let dims = weight.dims();
        let (last, front) = dims.split_last().map_or((1, &[][..]), |(last, front)| (*last, front));
        let gemm = self.node.is("Gemm");
        let right = front.iter().all(|dim| *dim == 1) && (gemm || front.is_empty());
        if !right || !(last == self.channels || (gemm && last == 1)) {
            return Err(format!("the bias {name:?} is not one number for each channel"));
        }
        let beta = if gemm { self.node.float_of("beta").unwrap_or(1.0) } else { 1.0 };
        let all = elements.iter().cycle().take(self.channels);
        Ok(all.map(|one| one * f64::from(beta)).collect())
    }

    /// A product as the operator that can have a bias.
    fn as_gemm(&self, view: &View<'_>, node: &Node) -> Result<Node, String> {
        let rank = node.input(0).and_then(|value| view.rank(value));
        if rank != Some(2) || self.weight.dims().len() != 2 {
            return Err("a product that is not known to have 2 axes has no bias".to_owned());
        }
        if view.opset() < 7 {
            return Err("products before opset 7 have no bias".to_owned());
        }
        Ok(Node::new("Gemm", node.inputs().to_vec(), node.outputs().to_vec()).named(node.name()))
    }
}

/// `w`, `w_folded` and `w_folded_1` all become a name like `w_folded`.
fn folded_name(name: &str) -> String {
    let plain = match name.rsplit_once('_') {
        Some((front, last)) if last.bytes().all(|byte| byte.is_ascii_digit()) => front,
        _ => name,
    };
    format!("{}_folded", plain.strip_suffix("_folded").unwrap_or(name))
}

/// Where the output channels lie in the weight of a layer.
fn layout(node: &Node, dims: &[usize]) -> Result<Layout, String> {
    let inner = |from: usize| dims[from..].iter().product();
    let plain = Layout { blocks: 1, channels: 0, inner: 1, groups: 1 };
    let groups = usize::try_from(node.int_of("group").unwrap_or(1)).unwrap_or(0);
    match (node.op_type(), dims) {
        ("Conv", [channels, _, ..]) => Ok(Layout { channels: *channels, inner: inner(1), ..plain }),
        ("ConvTranspose", [blocks, channels, ..]) if groups > 0 && blocks % groups == 0 => {
            Ok(Layout { blocks: *blocks, channels: *channels, inner: inner(2), groups })
        }
        ("Gemm", [channels, inner]) if node.int_of("transB").unwrap_or(0) != 0 => {
            Ok(Layout { channels: *channels, inner: *inner, ..plain })
        }
        ("Gemm", [blocks, channels]) => {
            Ok(Layout { blocks: *blocks, channels: *channels, ..plain })
        }
        ("MatMul", [front @ .., channels]) if !front.is_empty() => {
            Ok(Layout { blocks: front.iter().product(), channels: *channels, ..plain })
        }
        _ => Err(format!("the weight {:?} has no output channels", node.inputs().get(1))),
    }
}
