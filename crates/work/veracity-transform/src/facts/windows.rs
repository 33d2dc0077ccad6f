//! Operators that slide windows over the axes behind batch and channels, or sample them.

use veracity_onnx::Dim;
use veracity_tensor::DType;

use super::call::{Call, one};
use super::{Fact, dims};

/// Since when `Resize` takes sizes.
const RESIZE_SIZES_SINCE: i64 = 11;

/// How a window moves along one axis.
struct Window {
    kernel: usize,
    stride: usize,
    dilation: usize,
    begin: i64,
    end: i64,
}

impl Window {
    /// Elements that the window spans.
    fn span(&self) -> Option<i64> {
        let gaps = self.kernel.checked_sub(1)?.checked_mul(self.dilation)?;
        i64::try_from(gaps.checked_add(1)?).ok()
    }
}

/// How the windows of a node move, axis by axis; `None` when something about them is not known.
fn windows(call: &Call<'_>, kernel: &[usize]) -> Option<Vec<Window>> {
    let count = kernel.len();
    let list = |name: &str, default: i64, count: usize| match call.node.ints_of(name) {
        None | Some([]) => Some(vec![default; count]),
        Some(all) => Some(all.to_vec()).filter(|all| all.len() == count),
    };
    let (strides, dilations) = (list("strides", 1, count)?, list("dilations", 1, count)?);
    let pads = list("pads", 0, 2 * count)?;
    let positive = |number: i64| usize::try_from(number).ok().filter(|&number| number > 0);
    (0..count)
        .map(|axis| {
            Some(Window {
                kernel: kernel[axis],
                stride: positive(strides[axis])?,
                dilation: positive(dilations[axis])?,
                begin: pads[axis],
                end: pads[axis + count],
            })
        })
        .collect()
}

/// The size of the windows: an attribute, or the sizes of the weights.
fn kernel(call: &Call<'_>, weights: Option<usize>) -> Option<Vec<usize>> {
    if let Some(kernel) = call.node.ints_of("kernel_shape").filter(|kernel| !kernel.is_empty()) {
        return kernel.iter().map(|&size| usize::try_from(size).ok()).collect();
    }
    dims::sizes(call.dims(weights?)?.get(2..)?)
}

/// Number of places of a window.
fn places(call: &Call<'_>, dim: &Dim, window: &Window) -> Dim {
    let counted = |size: usize| -> Option<usize> {
        match call.node.string_of("auto_pad") {
            None | Some("NOTSET" | "") => {}
            Some("VALID") => return covered(call, size, &Window { begin: 0, end: 0, ..*window }),
            Some(_) => return Some(size.div_ceil(window.stride)),
        }
        covered(call, size, window)
    };
    match dim {
        Dim::Fixed(size) => counted(*size).map_or(Dim::Unknown, Dim::Fixed),
        other if keeps(call, window) => other.clone(),
        _ => Dim::Unknown,
    }
}

fn covered(call: &Call<'_>, size: usize, window: &Window) -> Option<usize> {
    let padded = i64::try_from(size).ok()?.checked_add(window.begin)?.checked_add(window.end)?;
    let way = usize::try_from(padded.checked_sub(window.span()?)?).ok()?;
    // Engines have disagreed about a last window that does not fit.
    if way % window.stride != 0 && call.flag("ceil_mode", false) {
        return None;
    }
    Some(way / window.stride + 1)
}

/// Whether an axis of any size keeps it.
fn keeps(call: &Call<'_>, window: &Window) -> bool {
    let padding = window.begin.checked_add(window.end).and_then(|pads| pads.checked_add(1));
    match call.node.string_of("auto_pad") {
        _ if window.stride != 1 => false,
        None | Some("NOTSET" | "") => padding.is_some() && padding == window.span(),
        Some("VALID") => window.span() == Some(1),
        Some(_) => true,
    }
}

/// The axes behind batch and channels, each with its places.
fn slid(call: &Call<'_>, kernel: Option<Vec<usize>>, inner: &[Dim]) -> Vec<Dim> {
    let fitting = kernel.filter(|kernel| kernel.len() == inner.len());
    match fitting.and_then(|kernel| windows(call, &kernel)) {
        Some(all) => {
            inner.iter().zip(&all).map(|(dim, window)| places(call, dim, window)).collect()
        }
        None => dims::unknown(inner.len()),
    }
}

/// `Conv` and `ConvInteger`.
pub(super) fn conv(call: &Call<'_>, dtype: Option<DType>) -> Vec<Fact> {
    let sizes = || {
        let [batch, _, inner @ ..] = call.dims(0)? else { return None };
        let channels = call.dims(1).and_then(<[Dim]>::first).cloned().unwrap_or(Dim::Unknown);
        let mut sizes = vec![batch.clone(), channels];
        sizes.extend(slid(call, kernel(call, Some(1)), inner));
        Some(sizes)
    };
    one(dtype.or_else(|| call.dtype(0)), sizes())
}

/// Pools; the second output of `MaxPool` says where the largest stood.
pub(super) fn pool(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let [batch, channels, inner @ ..] = call.dims(0)? else { return None };
        let mut sizes = vec![batch.clone(), channels.clone()];
        sizes.extend(slid(call, kernel(call, None), inner));
        Some(sizes)
    };
    let sizes = sizes();
    vec![Fact::new(call.dtype(0), sizes.clone()), Fact::new(Some(DType::I64), sizes)]
}

/// Pools over everything.
pub(super) fn global(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let [batch, channels, inner @ ..] = call.dims(0)? else { return None };
        let mut sizes = vec![batch.clone(), channels.clone()];
        sizes.extend(inner.iter().map(|_| Dim::Fixed(1)));
        Some(sizes)
    };
    one(call.dtype(0), sizes())
}

/// `ConvTranspose` with sizes that follow from explicit pads.
pub(super) fn conv_transpose(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let [batch, _, inner @ ..] = call.dims(0)? else { return None };
        let group = usize::try_from(call.int_or("group", 1)).ok()?;
        let channels = call.dims(1).and_then(|dims| dims.get(1));
        let channels = channels.map_or(Dim::Unknown, |dim| dims::times(dim, group));
        let mut sizes = vec![batch.clone(), channels];
        sizes.extend(spread(call, inner).unwrap_or_else(|| dims::unknown(inner.len())));
        Some(sizes)
    };
    one(call.dtype(0), sizes())
}

fn spread(call: &Call<'_>, inner: &[Dim]) -> Option<Vec<Dim>> {
    let plain = matches!(call.node.string_of("auto_pad"), None | Some("NOTSET" | ""));
    if !plain || call.node.ints_of("output_shape").is_some() {
        return None;
    }
    let kernel = kernel(call, Some(1)).filter(|kernel| kernel.len() == inner.len())?;
    let windows = windows(call, &kernel)?;
    let extra = call.node.ints_of("output_padding").unwrap_or_default();
    let size = |(axis, (dim, window)): (usize, (&Dim, &Window))| {
        let places = i64::try_from(dims::size(dim)?).ok()?.checked_sub(1)?;
        let way = places.checked_mul(i64::try_from(window.stride).ok()?)?;
        let size = way + window.span()? + extra.get(axis).copied().unwrap_or(0);
        usize::try_from(size.checked_sub(window.begin)?.checked_sub(window.end)?).ok()
    };
    let found = inner.iter().zip(&windows).enumerate().map(size);
    Some(found.map(|size| size.map_or(Dim::Unknown, Dim::Fixed)).collect())
}

/// `GridSample`: batch and channels of the image, places of the grid.
pub(super) fn grid_sample(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let [batch, channels, ..] = call.dims(0)? else { return None };
        let [_, places @ .., _] = call.dims(1)? else { return None };
        Some([&[batch.clone(), channels.clone()], places].concat())
    };
    one(call.dtype(0), sizes())
}

/// `Resize` to given sizes, or by factors that give whole numbers.
pub(super) fn resize(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0)?;
        let plain =
            matches!(call.node.string_of("keep_aspect_ratio_policy"), None | Some("stretch" | ""))
                && call.node.ints_of("axes").is_none()
                && call.opset >= RESIZE_SIZES_SINCE;
        let crops =
            call.node.string_of("coordinate_transformation_mode") == Some("tf_crop_and_resize");
        let unknown = dims::unknown(given.len());
        if !plain || crops {
            return Some(unknown);
        }
        let asked = if call.has(3) { call.elements(3) } else { None };
        if let Some(asked) = asked.filter(|asked| asked.len() == given.len()) {
            return Some(asked.iter().map(super::Element::to_dim).collect());
        }
        let scales =
            if call.has(3) { None } else { call.weight(2).and_then(veracity_onnx::Weight::floats) };
        let Some(scales) = scales.filter(|scales| scales.len() == given.len()) else {
            return Some(unknown);
        };
        Some(given.iter().zip(&scales).map(|(dim, &scale)| scaled(dim, scale)).collect())
    };
    one(call.dtype(0), sizes())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole")]
fn scaled(dim: &Dim, scale: f64) -> Dim {
    if scale.total_cmp(&1.0).is_eq() {
        return dim.clone();
    }
    let size = dims::size(dim).and_then(|size| u32::try_from(size).ok());
    match size.map(|size| f64::from(size) * scale) {
        Some(size) if size.fract() == 0.0 && (0.0..=f64::from(1_u32 << 24)).contains(&size) => {
            Dim::Fixed(size as usize)
        }
        _ => Dim::Unknown,
    }
}
