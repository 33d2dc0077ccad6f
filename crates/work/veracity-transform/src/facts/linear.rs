//! Products of matrices, and what is made of them.

use veracity_onnx::Dim;
use veracity_tensor::DType;

use super::call::{Call, one};
use super::{Fact, dims};

/// `MatMul` and `MatMulInteger`.
pub(super) fn matmul(call: &Call<'_>, dtype: Option<DType>) -> Vec<Fact> {
    let sizes = || product(call.dims(0)?, call.dims(1)?);
    let dtype = dtype.or_else(|| call.dtype(0)).or_else(|| call.dtype(1));
    one(dtype, sizes())
}

/// Sizes of a product: of stacks of matrices, or of vectors, which count as one row or column.
fn product(one: &[Dim], two: &[Dim]) -> Option<Vec<Dim>> {
    let (_, rows) = one.split_last()?;
    let (batch_one, row) = match rows.split_last() {
        Some((row, batch)) => (batch, Some(row)),
        None => (&[][..], None),
    };
    let (batch_two, column) = match two {
        [] => return None,
        [_] => (&[][..], None),
        [batch @ .., _, column] => (batch, Some(column)),
    };
    let mut sizes = dims::broadcast(batch_one, batch_two);
    sizes.extend(row.into_iter().chain(column).cloned());
    Some(sizes)
}

/// `Gemm`.
pub(super) fn gemm(call: &Call<'_>) -> Vec<Fact> {
    let side = |input: usize, transposed: &str, other: usize| match call.dims(input) {
        Some([rows, columns]) => {
            let sides = [rows, columns];
            sides[if call.flag(transposed, false) { other } else { 1 - other }].clone()
        }
        _ => Dim::Unknown,
    };
    let dtype = call.dtype(0).or_else(|| call.dtype(1));
    one(dtype, Some(vec![side(0, "transA", 1), side(1, "transB", 0)]))
}

/// `Einsum` without an ellipsis.
pub(super) fn einsum(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let equation: String =
            call.node.string_of("equation")?.chars().filter(|letter| *letter != ' ').collect();
        if equation.contains('.') {
            return None;
        }
        let (terms, result) = match equation.split_once("->") {
            Some((terms, result)) => (terms, result.to_owned()),
            None => (equation.as_str(), lonely(&equation)),
        };
        let mut found: Vec<(char, Dim)> = Vec::new();
        for (input, term) in terms.split(',').enumerate() {
            let given = call.dims(input)?;
            if term.chars().count() != given.len() {
                return None;
            }
            for (letter, dim) in term.chars().zip(given) {
                match found.iter_mut().find(|(known, _)| *known == letter) {
                    Some((_, known)) => *known = dims::stretched(known, dim),
                    None => found.push((letter, dim.clone())),
                }
            }
        }
        let size = |letter| Some(found.iter().find(|(known, _)| *known == letter)?.1.clone());
        result.chars().map(size).collect()
    };
    one(call.any_dtype(), sizes())
}

/// The letters that stand once, sorted: what an equation without a result gives.
fn lonely(equation: &str) -> String {
    let letters = || equation.chars().filter(|letter| letter.is_alphabetic());
    let mut once: Vec<char> =
        letters().filter(|one| letters().filter(|two| one == two).count() == 1).collect();
    once.sort_unstable();
    once.into_iter().collect()
}

/// `LSTM`, `GRU` and `RNN`: all states, the last ones, and the last cells of an `LSTM`.
pub(super) fn recurrent(call: &Call<'_>) -> Vec<Fact> {
    let directions = match call.node.string_of("direction") {
        None | Some("forward" | "reverse") => Dim::Fixed(1),
        Some("bidirectional") => Dim::Fixed(2),
        Some(_) => Dim::Unknown,
    };
    let hidden = match (call.node.int_of("hidden_size"), call.dims(2)) {
        (Some(size), _) => usize::try_from(size).map_or(Dim::Unknown, Dim::Fixed),
        (None, Some([_, _, hidden])) => hidden.clone(),
        _ => Dim::Unknown,
    };
    let (first, second) = match call.dims(0) {
        Some([first, second, _]) => (first.clone(), second.clone()),
        _ => (Dim::Unknown, Dim::Unknown),
    };
    let (all, last) = if call.flag("layout", false) {
        (
            vec![first.clone(), second, directions.clone(), hidden.clone()],
            vec![first, directions, hidden],
        )
    } else {
        (
            vec![first, directions.clone(), second.clone(), hidden.clone()],
            vec![directions, second, hidden],
        )
    };
    let dtype = call.dtype(0);
    let last = Fact::new(dtype, Some(last));
    vec![Fact::new(dtype, Some(all)), last.clone(), last]
}
