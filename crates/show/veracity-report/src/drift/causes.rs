//! What makes the layers wrong that are.

use veracity_results::{CauseKind, DriftReport, Verdict};

use super::layers::Layer;

/// Why one layer is off.
pub(super) struct LayerCause<'l> {
    /// Its name.
    pub(super) layer: &'l str,
    /// What kind of fault it is.
    pub(super) cause: &'static str,
    /// What was seen.
    pub(super) detail: String,
}

/// A cause for each layer that exceeds the tolerance. Error that only arrives is called that.
pub(super) fn causes<'l>(report: &DriftReport, layers: &'l [Layer<'_>]) -> Vec<LayerCause<'l>> {
    let exceeding = layers.iter().filter(|layer| layer.exceeds);
    exceeding.map(|layer| cause(report, layer)).collect()
}

fn cause<'l>(report: &DriftReport, layer: &'l Layer<'_>) -> LayerCause<'l> {
    let found = layer.values.iter().find_map(|row| row.cause.as_ref());
    let guilty = layer.values.iter().find(|row| row.verdict != Verdict::Proved);
    let (cause, detail) = match (found, guilty) {
        (Some(cause), _) => (name(cause.kind), cause.detail.clone()),
        (None, Some(row)) => {
            let detail = row.problem.clone().unwrap_or_else(|| row.op_type.clone());
            (name(CauseKind::Unknown), detail)
        }
        (None, None) => {
            let detail = match &report.origin {
                Some(origin) => format!("right on right inputs; the first fault is {origin}"),
                None => "right on right inputs; no operator brings in more than its budget".into(),
            };
            ("propagated", detail)
        }
    };
    LayerCause { layer: &layer.name, cause, detail }
}

/// The name of a kind, as it stands in JSON.
pub(super) fn name(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::WeightBitMismatch => "weight_bit_mismatch",
        CauseKind::AttributeMismatch => "attribute_mismatch",
        CauseKind::OperatorMismatch => "operator_mismatch",
        CauseKind::PrecisionLoss => "precision_loss",
        CauseKind::LayoutMismatch => "layout_mismatch",
        CauseKind::Fusion => "fusion",
        CauseKind::Nondeterminism => "nondeterminism",
        CauseKind::OpImplementation => "op_implementation",
        CauseKind::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for kind in [
            CauseKind::WeightBitMismatch,
            CauseKind::AttributeMismatch,
            CauseKind::OperatorMismatch,
            CauseKind::PrecisionLoss,
            CauseKind::LayoutMismatch,
            CauseKind::Fusion,
            CauseKind::Nondeterminism,
            CauseKind::OpImplementation,
            CauseKind::Unknown,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), name(kind));
        }
    }
}
