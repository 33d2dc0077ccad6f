//! How long steps took.

use serde::{Deserialize, Serialize};

/// Distribution of step times, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Steps measured.
    pub steps: u64,
    /// Half of the steps took at most this.
    pub p50_secs: f64,
    /// 99 in 100 took at most this.
    pub p99_secs: f64,
    /// 999 in 1000 took at most this.
    pub p999_secs: f64,
    /// The slowest.
    pub max_secs: f64,
    /// The average.
    pub mean_secs: f64,
}

/// What a timed run found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepTiming {
    /// Distribution of step times.
    pub latency: Latency,
    /// The period that steps had to keep, if a rate was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_secs: Option<f64>,
    /// Steps that were not finished when the next one was due.
    pub missed_deadlines: u64,
}
