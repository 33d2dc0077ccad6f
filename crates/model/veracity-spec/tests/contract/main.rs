//! What a bundle and a robot say, held against each other.
//!
//! One test binary, so that it is linked once. The modules are marked as tests for the lints.

#[cfg(test)]
mod deploy;
#[cfg(test)]
mod metadata;
#[cfg(test)]
mod order;
#[cfg(test)]
mod reorder;
#[cfg(test)]
mod robot_files;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod support;
