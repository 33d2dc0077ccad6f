//! What to measure, and with how many threads.

use veracity_results::Tolerance;

/// What to measure. Build with [`MeasureOptions::new`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MeasureOptions {
    /// The tolerance that pairs are counted against.
    pub tolerance: Tolerance,
    /// Threads to use; 0 takes what the machine offers. Never changes the result.
    pub threads: usize,
    /// Whether to count distances in units in the last place by power of two.
    pub ulp_histogram: bool,
    /// Whether to find exact percentiles of the absolute error. Reads large tensors again.
    pub percentiles: bool,
}

impl MeasureOptions {
    /// Statistics only, with every core.
    pub fn new(tolerance: Tolerance) -> Self {
        Self { tolerance, threads: 0, ulp_histogram: false, percentiles: false }
    }

    /// Uses that many threads; 0 takes what the machine offers.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Counts distances in units in the last place.
    #[must_use]
    pub fn with_ulp_histogram(mut self) -> Self {
        self.ulp_histogram = true;
        self
    }

    /// Finds exact percentiles.
    #[must_use]
    pub fn with_percentiles(mut self) -> Self {
        self.percentiles = true;
        self
    }
}
