//! What a misspelt name probably meant.

/// Longest name for which a suggestion is looked for, and how many names are looked at: keeps the
/// search cheap however hostile the file that the names come from.
const MAX_SUGGESTED: usize = 64;
const MAX_CANDIDATES: usize = 256;

/// The candidate nearest to `name`, if it is near enough to be what was meant.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    if name.len() > MAX_SUGGESTED {
        return None;
    }
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
            let limit = (name.len().max(other.len()) / 3).max(1);
            if name.len().abs_diff(other.len()) > limit {
                return None;
            }
            let distance = edit_distance(&name, &other);
            (distance <= limit).then_some((distance, candidate))
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn edit_distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, &from) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &to) in right.iter().enumerate() {
            let replaced = above[column] + usize::from(from != to);
            let mut best = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && from == right[column - 1] && left[row - 1] == to {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        (before, above) = (above, current);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_only_when_it_is_near() {
        let names = ["float16", "float32", "int64", "bool"];
        for (typed, expected) in [
            ("flaot32", Some("float32")),
            ("Float32", Some("float32")),
            ("float3", Some("float32")),
            ("boll", Some("bool")),
            ("complex128", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), expected, "{typed:?}");
        }
        let long = "x".repeat(MAX_SUGGESTED + 1);
        assert_eq!(nearest(&long, [long.as_str()]), None);
    }
}
