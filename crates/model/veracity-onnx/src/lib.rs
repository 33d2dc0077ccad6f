//! ONNX graphs: read, look into, build, mark and cut, merge, write.
//!
//! The only crate that knows protobuf, and none of its types show. Reading maps the file and copies
//! no weights, so that a model of hundreds of megabytes opens in milliseconds. Files are not
//! trusted: what does not parse, nests too deep, would take far more memory than it has bytes, or
//! points out of its folder is refused.

mod build;
mod capture;
mod edit;
mod elements;
mod external;
mod generated;
mod limits;
mod look;
mod map;
mod merge;
mod model;
mod node;
mod order;
mod parts;
mod ports;
mod slice;
mod substitute;
#[cfg(test)]
mod text;
mod value;
mod walk;
mod whole;
mod widen;
mod write;
mod write_external;

pub use build::{Function, GraphBuilder, Node};
pub use capture::NodeFacts;
pub use edit::{Applied, Branch, Functions, Graph, NodeId, Patch, Weight, Window};
pub use external::ExternalFile;
pub use merge::{Edge, PortRef, Stage, merge};
pub use model::Model;
pub use ports::{DeclaredPort, check_ports};
pub use slice::{BodyValue, PROBED_AXES};
pub use substitute::{Attribute, tensor_text};
pub use value::{Dim, ValueInfo};

// Weights are stored little-endian and handed on as they are.
const _: () = assert!(cfg!(target_endian = "little"), "big-endian machines are not supported");
