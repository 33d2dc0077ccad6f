//! Elements of short integer tensors through the operators that shapes are computed with.

use veracity_tensor::DType;

use super::call::Call;
use super::{Element, MOST_ELEMENTS};

/// The elements of an operator with two operands, one of which may be stretched.
pub(super) fn binary(call: &Call<'_>, op: &str) -> Option<Vec<Element>> {
    let dtype = call.any_dtype()?;
    let (one, two) = pair(call, 0, 1)?;
    let both = one.iter().zip(&two);
    Some(both.map(|(one, two)| fitting(combined(op, one, two), dtype, op)).collect())
}

/// The elements of `Where`.
pub(super) fn chosen(call: &Call<'_>) -> Option<Vec<Element>> {
    let (flags, one) = pair(call, 0, 1)?;
    let (_, two) = pair(call, 0, 2)?;
    let count = flags.len().max(one.len()).max(two.len());
    let at = |all: &[Element], index: usize| all.get(index.min(all.len().checked_sub(1)?)).cloned();
    let pick = |index| {
        let (one, two) = (at(&one, index)?, at(&two, index)?);
        Some(match at(&flags, index)? {
            Element::Known(0) => two,
            Element::Known(_) => one,
            _ if one == two => one,
            _ => Element::Unknown,
        })
    };
    let fits = [&flags, &one, &two].iter().all(|all| all.len() == count || all.len() == 1);
    if fits { (0..count).map(pick).collect() } else { None }
}

/// The elements of `Cast`. A name goes through only where every size fits.
pub(super) fn cast(call: &Call<'_>, to: DType) -> Option<Vec<Element>> {
    let elements = call.elements(0)?.iter();
    match to {
        DType::I64 => Some(elements.cloned().collect()),
        DType::I32 => Some(
            elements
                .map(|element| match element {
                    Element::Known(_) => fitting(element.clone(), to, "Cast"),
                    _ => Element::Unknown,
                })
                .collect(),
        ),
        _ => None,
    }
}

/// The product of all elements.
pub(super) fn product(elements: &[Element]) -> Element {
    elements.iter().fold(Element::Known(1), |product, one| combined("Mul", &product, one))
}

/// Two operands, the shorter one stretched. Only scalars and lists are known element by element.
fn pair(call: &Call<'_>, one: usize, two: usize) -> Option<(Vec<Element>, Vec<Element>)> {
    if call.rank(one)? > 1 || call.rank(two)? > 1 {
        return None;
    }
    let (one, two) = (call.elements(one)?, call.elements(two)?);
    let stretched = |all: &[Element], count: usize| match all {
        [only] => vec![only.clone(); count],
        all => all.to_vec(),
    };
    let count = if one.len() == 1 { two.len() } else { one.len() };
    let fits = (one.len() == count || one.len() == 1) && (two.len() == count || two.len() == 1);
    (fits && count <= MOST_ELEMENTS).then(|| (stretched(one, count), stretched(two, count)))
}

fn combined(op: &str, one: &Element, two: &Element) -> Element {
    use Element::{Known, Named, Unknown};
    let number = match (op, one, two) {
        ("Equal", Known(one), Known(two)) => Some(i64::from(one == two)),
        // A size is never negative.
        ("Equal", Named(_), Known(number)) | ("Equal", Known(number), Named(_)) if *number < 0 => {
            Some(0)
        }
        ("Equal", Named(one), Named(two)) if one == two => Some(1),
        ("Add", Known(one), Known(two)) => one.checked_add(*two),
        ("Sub", Known(one), Known(two)) => one.checked_sub(*two),
        ("Mul", Known(one), Known(two)) => one.checked_mul(*two),
        ("Mul", Known(0), _) | ("Mul", _, Known(0)) => Some(0),
        ("Div", Known(one), Known(two)) => one.checked_div(*two),
        ("Mod", Known(one), Known(two)) => floor_mod(*one, *two),
        ("Max", Known(one), Known(two)) => Some(*one.max(two)),
        ("Min", Known(one), Known(two)) => Some(*one.min(two)),
        ("Add" | "Sub", same, Known(0))
        | ("Add", Known(0), same)
        | ("Mul" | "Div", same, Known(1))
        | ("Mul", Known(1), same) => return same.clone(),
        _ => None,
    };
    number.map_or(Unknown, Known)
}

/// The remainder with the sign of the divisor, as `Mod` without `fmod` gives it.
fn floor_mod(one: i64, two: i64) -> Option<i64> {
    let rest = one.checked_rem(two)?;
    Some(if rest != 0 && (rest < 0) != (two < 0) { rest + two } else { rest })
}

/// The element, unless its type cannot hold it: then it wraps around, which nobody asks a shape for.
fn fitting(element: Element, dtype: DType, op: &str) -> Element {
    match element {
        Element::Known(number)
            if dtype == DType::I32 && op != "Equal" && i32::try_from(number).is_err() =>
        {
            Element::Unknown
        }
        other => other,
    }
}
