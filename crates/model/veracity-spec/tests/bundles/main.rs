//! Reading, refusing, verifying and writing whole bundles.
//!
//! One test binary, so that it is linked once. The modules are marked as tests for the lints.

#[cfg(test)]
mod bad_bundles;
#[cfg(test)]
mod common;
#[cfg(test)]
mod files;
#[cfg(test)]
#[cfg(unix)]
mod kill_while_writing;
#[cfg(test)]
mod leapp_files;
#[cfg(test)]
mod refused_fast;
#[cfg(test)]
mod round_trip;
