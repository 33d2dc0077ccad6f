//! How long steps take, and when they are due.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use veracity_results::{Latency, StepTiming};

/// Longest step that is told apart from longer ones.
const LONGEST_NANOS: u64 = 3_600 * 1_000_000_000;

/// How long before a step is due its thread stops sleeping.
const SPIN: Duration = Duration::from_micros(100);

/// Collects step times. Recording allocates nothing.
#[derive(Debug)]
pub struct StepClock {
    nanos: Histogram<u64>,
}

impl Default for StepClock {
    fn default() -> Self {
        Self::new()
    }
}

impl StepClock {
    /// An empty clock.
    #[expect(clippy::missing_panics_doc, reason = "the constants are valid")]
    pub fn new() -> Self {
        let nanos = Histogram::new_with_bounds(1, LONGEST_NANOS, 3);
        Self { nanos: nanos.expect("the bounds are constant and valid") }
    }

    /// Notes one step.
    pub fn record(&mut self, elapsed: Duration) {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(LONGEST_NANOS);
        self.nanos.saturating_record(nanos);
    }

    /// Runs and notes one step.
    pub fn time<T>(&mut self, step: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = step();
        self.record(start.elapsed());
        result
    }

    /// The distribution so far, exact to one part in a thousand.
    pub fn latency(&self) -> Latency {
        let secs = |quantile| secs_from_nanos(self.nanos.value_at_quantile(quantile));
        if self.nanos.is_empty() {
            return Latency::default();
        }
        Latency {
            steps: self.nanos.len(),
            p50_secs: secs(0.5),
            p99_secs: secs(0.99),
            p999_secs: secs(0.999),
            max_secs: secs_from_nanos(self.nanos.max()),
            mean_secs: self.nanos.mean() * 1e-9,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an hour in nanoseconds fits a float64 exactly")]
fn secs_from_nanos(nanos: u64) -> f64 {
    nanos as f64 * 1e-9
}

/// Keeps steps at a fixed rate and counts those that were late.
#[derive(Debug)]
pub struct Pacer {
    period: Duration,
    due: Instant,
    missed: u64,
}

impl Pacer {
    /// The first step is due now.
    pub fn new(period: Duration) -> Self {
        Self { period, due: Instant::now(), missed: 0 }
    }

    /// Waits until the next step is due: sleeps most of the time, then spins, because a sleeping
    /// thread is woken up to a tenth of a millisecond late.
    pub fn wait(&self) {
        let left = self.due.saturating_duration_since(Instant::now());
        std::thread::sleep(left.saturating_sub(SPIN));
        while Instant::now() < self.due {
            std::hint::spin_loop();
        }
    }

    /// Notes that the step is done. A step that ends after the next one was due is a miss; the
    /// next one is then due at once, and lost time is not made up for.
    pub fn done(&mut self) {
        self.due += self.period;
        let now = Instant::now();
        if now > self.due {
            self.missed += 1;
            self.due = now;
        }
    }

    /// What was seen, together with the step times of `clock`.
    pub fn timing(&self, clock: &StepClock) -> StepTiming {
        StepTiming {
            latency: clock.latency(),
            period_secs: Some(self.period.as_secs_f64()),
            missed_deadlines: self.missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_come_from_the_recorded_steps() {
        let mut clock = StepClock::new();
        (1..=1000).for_each(|micros| clock.record(Duration::from_micros(micros)));
        let latency = clock.latency();
        let near = |found: f64, micros: f64| (found * 1e6 - micros).abs() <= micros * 2e-3;
        assert_eq!(latency.steps, 1000);
        assert!(near(latency.p50_secs, 500.0), "{latency:?}");
        assert!(near(latency.p99_secs, 990.0), "{latency:?}");
        assert!(near(latency.max_secs, 1000.0), "{latency:?}");
    }

    #[test]
    fn a_late_step_is_counted_once() {
        let mut pacer = Pacer::new(Duration::from_millis(1));
        std::thread::sleep(Duration::from_millis(5));
        pacer.done();
        assert_eq!(pacer.timing(&StepClock::new()).missed_deadlines, 1);
    }

    #[test]
    fn no_steps_have_no_latency() {
        assert_eq!(StepClock::new().latency(), Latency::default());
    }
}
