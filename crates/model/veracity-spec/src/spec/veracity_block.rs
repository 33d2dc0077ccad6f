//! The top-level block `veracity:`, which other readers ignore.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{BundlePath, FileSums, FormatVersion, Map, Sha256Sum, Value};

/// What Veracity adds to a bundle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VeracityBlock {
    /// Version of this block.
    pub schema: FormatVersion,
    /// Every file of the bundle except the YAML itself.
    pub files: BTreeMap<BundlePath, FileRecord>,
    /// Recorded inputs and outputs.
    pub samples: Option<BundlePath>,
    /// What was proved.
    pub proof: Option<BundlePath>,
    /// A signature, carried along.
    pub signature: Option<Value>,
    /// Other keys.
    pub extra: Map,
}

impl VeracityBlock {
    /// The version of the block that is written.
    pub const SCHEMA: FormatVersion = FormatVersion { major: 1, minor: 0 };
}

impl Default for VeracityBlock {
    fn default() -> Self {
        Self {
            schema: Self::SCHEMA,
            files: BTreeMap::new(),
            samples: None,
            proof: None,
            signature: None,
            extra: Map::new(),
        }
    }
}

/// What a file of the bundle must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FileRecord {
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 of the content.
    pub sha256: Sha256Sum,
}

impl From<FileSums> for FileRecord {
    fn from(sums: FileSums) -> Self {
        Self { size: sums.size, sha256: sums.sha256 }
    }
}
