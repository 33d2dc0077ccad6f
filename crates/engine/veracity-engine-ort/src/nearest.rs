//! Finds the name that was probably meant.

/// Longest name, in bytes, that is compared: the work grows with the square of it.
const MAX_LENGTH: usize = 64;

/// Most names that are compared. Files are not trusted, and a hint is not worth waiting for.
const MAX_CANDIDATES: usize = 64;

/// The candidate that is nearest to `wanted`, if it is near enough to be a slip of the pen: at most
/// a third of its characters differ.
pub(crate) fn nearest<'a, S: AsRef<str>>(wanted: &str, candidates: &'a [S]) -> Option<&'a str> {
    let allowed = (wanted.chars().count() / 3).max(1);
    candidates
        .iter()
        .take(MAX_CANDIDATES)
        .filter(|candidate| wanted.len().max(candidate.as_ref().len()) <= MAX_LENGTH)
        .map(|candidate| (edits(wanted, candidate.as_ref()), candidate.as_ref()))
        .filter(|&(edits, _)| edits <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements that make one name of the other.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, wanted) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, &candidate) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(wanted != candidate);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_suggested() {
        let candidates = ["observation", "action", "h"];
        for (wanted, expected) in [
            ("observations", Some("observation")),
            ("actoin", Some("action")),
            ("H", Some("h")),
            ("reward", None),
            ("", Some("h")),
        ] {
            assert_eq!(nearest(wanted, &candidates), expected, "{wanted:?}");
        }
        assert_eq!(nearest("x", &[] as &[&str]), None);
        let long = "x".repeat(MAX_LENGTH + 1);
        assert_eq!(nearest(&long, &[&long]), None);
    }
}
