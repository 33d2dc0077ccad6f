//! How the errors of each output are spread: in units in the last place, and by percentiles.

use std::fmt::Write as _;

use veracity_results::{Measurement, Part, PortProof, Proof, Verdict};

use super::super::escape::escape;
use super::super::facts::facts;
use super::super::histogram::histogram;
use super::super::words::{class, number};
use super::checks;
use crate::plain::{apart, enough};

/// A card for each output that was measured; nothing where all of them are equal to the bit.
pub(super) fn spread(proof: &Proof) -> String {
    let mut html = String::new();
    let mut equal = 0;
    for (index, row) in proof.rows().iter().enumerate() {
        let Part::Port(_, port) = row.part else { continue };
        let measured = checks::measurements(row);
        if measured.is_empty() {
            continue;
        }
        if row.verdict == Verdict::Proved && measured.iter().all(|one| one.differing == 0) {
            equal += 1;
            continue;
        }
        let target = checks::id(index);
        let name = escape(row.name);
        let class = class(row.verdict);
        let _ = write!(
            html,
            "<div class=\"card\">\n<h3 class=\"{class}\"><a href=\"#{target}\">{name}</a></h3>\n"
        );
        html += &bars(&measured, row.name);
        html += &facts(&details(port));
        html += "</div>\n";
    }
    if !html.is_empty() {
        html = format!("<div class=\"cards\">\n{html}</div>\n");
    }
    let equal = match equal {
        0 => return html,
        1 => "1 output is equal in every bit on every sample".to_owned(),
        _ => format!("{equal} outputs are equal in every bit on every sample"),
    };
    html + &format!("<p class=\"quiet\">{equal}.</p>\n")
}

/// Distances of all samples together.
fn bars(measured: &[&Measurement], name: &str) -> String {
    let bins = measured.iter().map(|one| one.ulp_histogram.len()).max().unwrap_or(0);
    let sum = |bin: usize| {
        measured.iter().map(|one| one.ulp_histogram.get(bin).copied().unwrap_or(0)).sum::<u64>()
    };
    let counts: Vec<u64> = (0..bins).map(sum).collect();
    histogram(&format!("Errors of {name} in units in the last place"), &counts)
}

/// What is known about the sample that is off most.
fn details(port: &PortProof) -> Vec<(&'static str, String)> {
    let measured = port.samples.iter().filter_map(|one| Some((one, one.measurement.as_ref()?)));
    let worst = measured.max_by(|(_, left), (_, right)| left.max_abs.total_cmp(&right.max_abs));
    let Some((sample, worst)) = worst else { return Vec::new() };
    let mut details = vec![("largest on", sample.label.clone())];
    if let Some(percentiles) = worst.percentiles {
        details.extend(percentiles.named().map(|(name, value)| (name, number(value))));
    }
    details.push(("largest", number(worst.max_abs)));
    if let Some(at) = &worst.worst {
        let (index, (reference, candidate)) = (&at.index, apart(at.reference, at.candidate));
        details.push(("at", format!("{index:?}: {reference} in the source, {candidate} here")));
    }
    if worst.non_finite.mismatching > 0 {
        let amount = worst.non_finite.mismatching;
        details.push(("not finite", format!("{amount} on one side only")));
    }
    if worst.outside > 0 {
        details.push(("would pass with atol", enough(worst.min_atol)));
    }
    details
}
