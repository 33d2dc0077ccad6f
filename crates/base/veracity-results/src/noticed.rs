//! What was noticed while recording, and how much of the recording was kept.

use std::cmp::Reverse;

use veracity_diag::{Diagnostic, Severity, codes};

use crate::{NodeProof, Proof};

impl Proof {
    /// How many of the findings are warnings.
    pub fn warnings(&self) -> usize {
        self.findings.iter().filter(|found| found.severity == Severity::Warning).count()
    }

    /// How many of the findings are warnings that no verdict rests on.
    pub fn other_warnings(&self) -> usize {
        let is_other = |found: &&Diagnostic| {
            found.severity == Severity::Warning && !self.assumptions.contains(found)
        };
        self.findings.iter().filter(is_other).count()
    }

    /// The findings about one node.
    pub fn findings_of<'p>(&'p self, node: &'p str) -> impl Iterator<Item = &'p Diagnostic> {
        self.findings.iter().filter(move |found| found.place.node.as_deref() == Some(node))
    }

    /// The findings that no node gives as the reason for its verdict, the worst first. Assumptions
    /// are told as such.
    pub fn untold_findings(&self) -> Vec<&Diagnostic> {
        let told = |found: &Diagnostic| {
            self.assumptions.contains(found) || self.nodes.iter().any(|node| node.tells(found))
        };
        let mut untold: Vec<&Diagnostic> =
            self.findings.iter().filter(|found| !told(found)).collect();
        untold.sort_by_key(|found| Reverse(found.severity));
        untold
    }

    /// Kept and seen passes of the node that most passes were seen of, when not all were kept.
    pub fn passes_kept(&self) -> Option<(usize, usize)> {
        let kept = self.nodes.iter().filter_map(NodeProof::passes_kept);
        kept.max_by_key(|(kept, seen)| (*seen, Reverse(*kept)))
    }
}

impl NodeProof {
    /// Kept and seen passes, when not all that were seen were kept.
    pub fn passes_kept(&self) -> Option<(usize, usize)> {
        self.passes.filter(|seen| *seen > self.samples).map(|seen| (self.samples, seen))
    }

    /// Whether a reason of the node repeats this finding.
    fn tells(&self, found: &Diagnostic) -> bool {
        let code = found.code.to_string();
        self.reasons.iter().any(|reason| {
            reason.code == codes::RECORDED_WRONG
                && reason.message.starts_with(&code)
                && reason.message.ends_with(&found.message)
        })
    }
}

#[cfg(test)]
mod tests {
    use veracity_diag::Place;

    use super::*;
    use crate::Verdict;

    fn node(samples: usize, passes: Option<usize>, reason: &str) -> NodeProof {
        NodeProof {
            node: "gate".into(),
            verdict: Verdict::Proved,
            samples,
            passes,
            fresh: 0,
            tried: 0,
            adequacy: None,
            ports: Vec::new(),
            reasons: vec![Diagnostic::error(codes::RECORDED_WRONG, reason)],
            assumptions: Vec::new(),
            fresh_note: None,
        }
    }

    #[test]
    fn passes_are_told_when_not_all_were_kept() {
        for (samples, passes, told) in
            [(5, Some(6), Some((5, 6))), (5, Some(5), None), (5, None, None), (0, Some(0), None)]
        {
            assert_eq!(node(samples, passes, "").passes_kept(), told, "{samples} {passes:?}");
        }
    }

    #[test]
    fn a_reason_repeats_a_finding_of_the_same_code_and_words() {
        let found = Diagnostic::error(codes::MISSED_INPUT, "a tensor changes")
            .at(Place::file("me/walk.py").with_position(7, 1));
        for (reason, tells) in [
            ("VER0912 at me/walk.py:7: a tensor changes", true),
            ("VER0912 at me/walk.py:7: a number changes", false),
            ("VER0918 at me/walk.py:7: a tensor changes", false),
        ] {
            assert_eq!(node(1, None, reason).tells(&found), tells, "{reason}");
        }
    }
}
