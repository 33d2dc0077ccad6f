//! The cases, by subject.

mod binding;
mod dtypes;
mod elementwise;
mod layout;
mod loading;
mod merged;
mod networks;
mod ports;

use crate::Case;

pub(crate) fn all() -> Vec<Case> {
    let subjects = [
        dtypes::CASES,
        elementwise::CASES,
        layout::CASES,
        networks::CASES,
        ports::CASES,
        binding::CASES,
        loading::CASES,
        merged::CASES,
    ];
    subjects.concat()
}
