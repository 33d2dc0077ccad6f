//! Computes single operators on constants, to the very bits that engines give.
//!
//! That is possible for integers, bools and everything that only moves elements. Of the operators
//! on floating-point numbers only those are computed whose result the standard of arithmetic fixes:
//! one addition, subtraction, multiplication, division or root, rounded once. Sums of many numbers,
//! exponentials and the like come out a little different from engine to engine; they are refused,
//! and so is what gives NaN, whose bits nothing fixes.

mod arithmetic;
mod cast;
mod join;
mod layout;
mod logic;
mod make;
mod operand;
mod strided;

use veracity_onnx::{Node, Weight};

use operand::Operand;

/// Why something is not computed here, for people.
pub(crate) type Computed = Result<Vec<Weight>, String>;

/// A node with its operands.
struct Call<'c> {
    node: &'c Node,
    opset: i64,
    weights: &'c [Option<&'c Weight>],
}

impl<'c> Call<'c> {
    /// An operand, which must be there.
    fn operand(&self, index: usize) -> Result<Operand<'c>, String> {
        Operand::new(self.weight(index)?)
            .ok_or_else(|| "the elements of a constant are not at hand".to_owned())
    }

    fn weight(&self, index: usize) -> Result<&'c Weight, String> {
        self.weights
            .get(index)
            .copied()
            .flatten()
            .ok_or_else(|| format!("input {index} is left out"))
    }

    fn has(&self, index: usize) -> bool {
        self.weights.get(index).is_some_and(Option::is_some)
    }

    /// Integers of an operand.
    fn ints(&self, index: usize) -> Result<Vec<i64>, String> {
        self.weight(index)?.ints().ok_or_else(|| format!("input {index} does not hold integers"))
    }

    /// A list that was an attribute before an operator version and is an input since.
    fn list(&self, attribute: &str, input: usize, since: i64) -> Result<Option<Vec<i64>>, String> {
        if self.opset < since {
            return Ok(self.node.ints_of(attribute).map(<[i64]>::to_vec));
        }
        if self.has(input) { self.ints(input).map(Some) } else { Ok(None) }
    }

    fn flag(&self, attribute: &str) -> bool {
        self.node.int_of(attribute).is_some_and(|flag| flag != 0)
    }
}

/// What a node of the default domain gives for constants, or why that is not computed here. An
/// input that is left out is `None`. `shape` are the sizes of its first output.
pub(crate) fn evaluate(
    node: &Node,
    opset: i64,
    weights: &[Option<&Weight>],
    shape: &[usize],
) -> Computed {
    let call = Call { node, opset, weights };
    match node.op_type() {
        // The same elements in the same order, in the shape that was inferred.
        "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" => layout::reshape(&call, shape),
        "Transpose" => layout::transpose(&call),
        "Expand" => layout::expand(&call, shape),
        "Slice" => layout::slice(&call),
        "Split" => layout::split(&call),
        "Concat" => join::concat(&call),
        "Gather" => join::gather(&call),
        "Tile" => join::tile(&call),
        "Pad" => join::pad(&call, shape),
        "ConstantOfShape" => make::constant_of_shape(&call, shape),
        "Range" => make::range(&call, shape),
        "Trilu" => make::triangle(&call),
        "Cast" => cast::cast(&call, node.dtype_of("to")),
        "CastLike" => cast::cast(&call, call.weight(1)?.dtype()),
        "Add" | "Sub" | "Mul" | "Div" | "Mod" => arithmetic::binary(&call, shape),
        "Max" | "Min" if weights.len() == 2 => arithmetic::binary(&call, shape),
        "Neg" | "Abs" | "Sqrt" => arithmetic::unary(&call),
        "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" => {
            logic::compare(&call, shape)
        }
        "And" | "Or" | "Xor" => logic::combine(&call, shape),
        "Not" => logic::not(&call),
        "Where" => logic::choose(&call, shape),
        other => Err(refusal(other)),
    }
}

fn refusal(operator: &str) -> String {
    if is_random(operator) {
        return format!("{operator} gives something else each time");
    }
    format!("{operator} is rounded in different ways by different engines, or not computed here")
}

/// Whether an operator gives something else each time.
pub(crate) fn is_random(operator: &str) -> bool {
    matches!(
        operator,
        "Bernoulli"
            | "Multinomial"
            | "RandomNormal"
            | "RandomNormalLike"
            | "RandomUniform"
            | "RandomUniformLike"
    )
}
