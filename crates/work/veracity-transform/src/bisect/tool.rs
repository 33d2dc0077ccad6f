//! Searches another optimiser as a black box.

use std::cell::RefCell;
use std::collections::BTreeSet;

use veracity_diag::progress::{Part, Stage};
use veracity_diag::{Diagnostic, Result, codes};

use super::ddmin;

/// What a search over the parts of another optimiser found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolBisection {
    /// The smallest set of names without which the result is right, in the order given.
    pub culprits: Vec<String>,
    /// Results that were made and compared.
    pub models: usize,
}

/// Finds the smallest set of `names` that must be left out for the result to be right. `is_wrong`
/// makes a model without some names and says whether it is wrong.
///
/// Refused when the result is right with everything in, or wrong with everything left out.
pub fn bisect_tool(
    names: &[String],
    is_wrong: &mut dyn FnMut(&BTreeSet<&str>) -> Result<bool>,
) -> Result<ToolBisection> {
    let mut models = 0;
    let stage = RefCell::new(Stage::endless("models"));
    let step = |at: usize, name: &'static str| {
        stage.borrow_mut().enter(Part { what: "step", at, of: 3, name });
    };
    let mut right_without = |left_out: &[String]| {
        models += 1;
        stage.borrow_mut().advance(1);
        let left_out: BTreeSet<&str> = left_out.iter().map(String::as_str).collect();
        is_wrong(&left_out).map(|wrong| !wrong)
    };
    step(1, "with everything");
    if right_without(&[])? {
        let message = "the optimiser's result agrees with the model";
        return Err(Diagnostic::error(codes::BISECT_NOTHING, message).into());
    }
    step(2, "without all that can be left out");
    if !right_without(names)? {
        let message =
            format!("the result is wrong even without all {} names that were given", names.len());
        return Err(Diagnostic::error(codes::TOOL_ALWAYS_WRONG, message)
            .hint("name more of what the optimiser can leave out")
            .into());
    }
    step(3, "which part of that");
    let culprits = ddmin(names.to_vec(), &mut right_without)?;
    Ok(ToolBisection { culprits, models })
}
