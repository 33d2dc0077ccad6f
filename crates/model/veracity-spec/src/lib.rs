//! Bundles: a YAML file that describes a pipeline, and the files that it names.
//!
//! [`Bundle::open`] reads the LEAPP formats 1.1, 1.2 and 1.3 and Veracity's own, which is 1.3 plus
//! a block `veracity:`. It refuses whatever is inconsistent, with every problem of the file at
//! once, each with line, column and snippet. [`Bundle::verify_files`] compares the files with
//! their recorded hashes. [`BundleWriter`] writes a bundle so that a crash at any moment leaves
//! the old one or the new one, whole. [`contract`] compares what a bundle declares with what a
//! robot declares.
//!
//! Bundles are untrusted: time and memory are bounded, and no path leads out of the folder. This
//! crate opens no model and knows no engine; whether a model has the declared ports is for others
//! to say, who find out where to point in [`Places`].

mod check;
pub mod contract;
mod hash;
mod initial_values;
mod names;
mod open;
mod paths;
mod places;
mod reorder;
mod spec;
mod value;
mod verify;
mod write;
mod yaml;

pub use check::Description;
pub use hash::{FileSums, Md5Sum, NotASum, Sha256Sum, Sum, hash_bytes, hash_file};
pub use initial_values::InitialValues;
pub use open::Bundle;
pub use paths::BundlePath;
pub use places::Places;
pub use reorder::{Reorder, ReorderMap};
pub use spec::{
    AxisNames, Backend, Configs, Direction, Edge, FileRecord, FormatVersion, MAX_BUNDLE_BYTES,
    MAX_PORT_BYTES, Model, Node, NotAPortRef, PortRef, PortSpec, Spec, VeracityBlock,
};
pub use value::{Map, Value};
pub use write::{BundleWriter, FileContent};
