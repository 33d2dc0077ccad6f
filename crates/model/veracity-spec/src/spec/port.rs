//! One input or output of a node.

use serde::Serialize;
use veracity_tensor::{DType, Shape};

use crate::Map;

/// Most bytes that one port may take. Buffers for every port are made when a bundle is loaded, two
/// for feedback, so a shape is a request for memory. The largest seen in practice are caches of
/// vision-language models, at a few hundred megabytes.
pub const MAX_PORT_BYTES: u64 = 512 << 20;

/// Most bytes that all ports of a bundle may take together.
pub const MAX_BUNDLE_BYTES: u64 = 4 << 30;

/// What a bundle declares about an input or output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortSpec {
    /// Unique among the inputs, or among the outputs, of its node.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: Shape,
    /// What the values mean, such as `state/joint/position`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Names along the axes. One entry for each axis; a single entry is for the last axis, or for
    /// all elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_names: Option<Vec<AxisNames>>,
    /// Time between two elements of the temporal axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporal_period_ms: Option<f64>,
    /// Other keys.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map,
}

impl PortSpec {
    /// A port without any meaning attached.
    pub fn new(name: impl Into<String>, dtype: DType, shape: impl Into<Shape>) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: shape.into(),
            kind: None,
            element_names: None,
            temporal_period_ms: None,
            extra: Map::new(),
        }
    }

    /// Bytes that the values take.
    pub fn bytes(&self) -> u64 {
        (self.shape.elements() as u64).saturating_mul(self.dtype.size() as u64)
    }

    /// Why the element names do not fit the shape, if so. LEAPP never compares the two.
    pub fn element_names_problem(&self) -> Option<String> {
        let axes = self.element_names.as_ref()?;
        let dims = self.shape.dims();
        if let [AxisNames::Named(names)] = axes.as_slice() {
            let fits = names.len() == self.shape.elements() || dims.last() == Some(&names.len());
            return (!fits).then(|| format!("{} names for shape {}", names.len(), self.shape));
        }
        if axes.len() != dims.len() {
            return Some(format!("names for {} axes, but the shape is {}", axes.len(), self.shape));
        }
        if axes.iter().filter(|axis| **axis == AxisNames::Temporal).count() > 1 {
            return Some("more than one axis is temporal".to_owned());
        }
        axes.iter().zip(dims).enumerate().find_map(|(index, (axis, &size))| match axis {
            AxisNames::Named(names) if names.len() != size => {
                Some(format!("{} names for axis {index} of size {size}", names.len()))
            }
            _ => None,
        })
    }
}

/// Names along one axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisNames {
    /// The elements have no names.
    Unnamed,
    /// The elements follow each other in time.
    Temporal,
    /// One name for each element.
    Named(Vec<String>),
}

impl AxisNames {
    /// What stands in the file for a temporal axis.
    pub(crate) const TEMPORAL: &'static str = "__temporal_axis__";

    /// Names along one axis.
    pub fn named<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::Named(names.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_names_fit_an_axis_or_all_elements() {
        use AxisNames::{Temporal, Unnamed};

        let abc = || AxisNames::named(["a", "b", "c"]);
        for (dims, names, fits) in [
            (vec![1, 3], vec![abc()], true),
            (vec![3, 1], vec![abc()], true),
            (vec![3], vec![abc()], true),
            (vec![1, 3], vec![Unnamed, abc()], true),
            (vec![4, 3], vec![Temporal, abc()], true),
            (vec![1, 4], vec![abc()], false),
            (vec![], vec![abc()], false),
            (vec![1, 4], vec![Unnamed, abc()], false),
            (vec![3, 3, 3], vec![Unnamed, abc()], false),
            (vec![3, 3], vec![Temporal, Temporal], false),
        ] {
            let mut port = PortSpec::new("p", DType::F32, Shape::new(dims.clone()).unwrap());
            port.element_names = Some(names.clone());
            assert_eq!(port.element_names_problem().is_none(), fits, "{dims:?} {names:?}");
        }
    }
}
