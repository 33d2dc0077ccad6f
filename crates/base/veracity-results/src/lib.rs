//! What a run found, as plain serialisable types with a schema version.
//!
//! These types hold no behaviour beyond small accessors: they are what `--format json` prints, what
//! Python receives and what reports are made from, so a file from last year must still be readable.

mod adequacy;
mod audit;
mod comparison;
mod difference;
mod drift;
mod drift_groups;
mod measurement;
mod model_diff;
mod noticed;
mod number;
mod over_time;
mod pipeline;
mod proof;
mod repro;
mod rewrite_checks;
mod rewrites;
mod rows;
mod timing;

pub use adequacy::{Adequacy, PlantedFault};
pub use audit::{AuditReport, Explanation, MappedValue, PassCount, TouchedNodes};
pub use comparison::{Comparison, ComparisonRow, Coverage, Verdict};
pub use difference::{
    Change, Errors, Judged, PortDifference, PortSide, ProofDifference, Section, Sides,
};
pub use drift::{
    AgainstFloat64, Cause, CauseKind, DRIFT_SCHEMA_VERSION, DriftElement, DriftReport, DriftRow,
    ErrorFigures, GraphRecord, ProgramStatus, ProgramValue, Unmapped,
};
pub use drift_groups::{DriftCounts, DriftGroup, ModuleGroup};
pub use measurement::{
    Measurement, NonFinite, Percentiles, Tolerance, ULP_BIN_COUNT, Worst, ulp_bin_label,
};
pub use model_diff::{
    MODEL_DIFF_SCHEMA_VERSION, ModelDiff, NodeDifference, WeightDifference, WeightOutline,
};
pub use over_time::{ErrorOverTime, MOST_PIECES};
pub use pipeline::{Pipeline, PipelineEdge, PipelineNode, PipelinePort, PortName};
pub use proof::{
    Basis, Divergence, Environment, InputCoverage, ModelSubject, NodeProof, Origin,
    PROOF_SCHEMA_VERSION, PortProof, Proof, Reference, Role, RolloutPort, RolloutProof,
    SampleProof, SessionRecord, Subject, TolerancePart, TolerancePolicy,
};
pub use repro::{REPRO_SCHEMA_VERSION, ReproRecord, ReproRun};
pub use rewrite_checks::{
    CheckedLog, CumulativeCheck, REWRITE_CHECKS_SCHEMA_VERSION, RewriteCheck, RewriteChecks,
};
pub use rewrites::{
    ChangedNode, DeclinedMatch, FieldChange, NewWeight, NodeRecord, PassParameter, PassRecord,
    REWRITES_SCHEMA_VERSION, RejectedRewrite, RewriteLog, RewriteRecord, WeightRecord,
    WeightSource,
};
pub use rows::{Part, ProofRow};
pub use timing::{Latency, StepTiming};

/// Version of the JSON that these types make. The major part changes when old readers break.
pub const SCHEMA_VERSION: &str = "1.0";
