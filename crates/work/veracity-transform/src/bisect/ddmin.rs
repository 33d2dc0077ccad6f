//! Delta debugging: the smallest part of a list that still shows something.

use veracity_diag::Result;

/// The smallest part of `items` for which `shows` holds, in the sense that no single item can be
/// left out. It must hold for all of them. One item among many is found in about twice the
/// logarithm of their number.
pub fn ddmin<T: Clone>(
    mut items: Vec<T>,
    shows: &mut dyn FnMut(&[T]) -> Result<bool>,
) -> Result<Vec<T>> {
    let mut pieces = 2;
    while items.len() > 1 {
        let size = items.len().div_ceil(pieces);
        let parts: Vec<Vec<T>> = items.chunks(size).map(<[T]>::to_vec).collect();
        if let Some(part) = first(parts.iter().cloned(), shows)? {
            items = part;
            pieces = 2;
            continue;
        }
        let rests = (0..parts.len()).map(|left_out| {
            let kept = parts.iter().enumerate().filter(|(at, _)| *at != left_out);
            kept.flat_map(|(_, part)| part.iter().cloned()).collect::<Vec<T>>()
        });
        // Of two parts the rest of one is the other, which was tried.
        let rest = if parts.len() > 2 { first(rests, shows)? } else { None };
        if let Some(rest) = rest {
            items = rest;
            pieces = (pieces - 1).max(2);
        } else if size == 1 {
            break;
        } else {
            pieces = (pieces * 2).min(items.len());
        }
    }
    Ok(items)
}

fn first<T>(
    parts: impl Iterator<Item = Vec<T>>,
    shows: &mut dyn FnMut(&[T]) -> Result<bool>,
) -> Result<Option<Vec<T>>> {
    for part in parts {
        if shows(&part)? {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_part_is_found() {
        for needed in [vec![5], vec![0, 31], vec![3, 4, 30], vec![], (0..32).collect()] {
            let mut runs = 0;
            let mut shows = |part: &[i32]| {
                runs += 1;
                Ok(needed.iter().all(|one| part.contains(one)))
            };
            let found = ddmin((0..32).collect(), &mut shows).unwrap();
            // One item is left even when none is needed.
            let expected = if needed.is_empty() { 1 } else { needed.len() };
            assert_eq!(found.len(), expected, "{needed:?}: {found:?}");
            assert!(needed.iter().all(|one| found.contains(one)), "{needed:?}: {found:?}");
            assert!(needed.len() != 1 || runs <= 10, "{runs} runs for one item");
        }
    }
}
