//! The loop: wait, write the inputs, step, keep the outputs.

use std::time::Duration;

use veracity::progress::Stage;
use veracity::results::StepTiming;
use veracity::{Pacer, Result, Runner, StepClock};

use super::outputs::Outputs;
use crate::commands::feed::Feed;

/// Runs every step of `feed`, one every `period` if there is one.
pub(super) fn drive(
    runner: &mut Runner,
    feed: &Feed,
    period: Option<Duration>,
    mut outputs: Option<&mut Outputs>,
) -> Result<StepTiming> {
    let mut stage = Stage::new("steps", usize::try_from(feed.steps()).unwrap_or(usize::MAX));
    let mut clock = StepClock::new();
    let mut pacer = period.map(Pacer::new);
    for step in 0..feed.steps() {
        if let Some(pacer) = &pacer {
            pacer.wait();
        }
        clock.time(|| feed.step(step, runner))?;
        if let Some(pacer) = &mut pacer {
            pacer.done();
        }
        if let Some(outputs) = &mut outputs {
            outputs.keep(step, runner)?;
        }
        stage.advance(1);
    }
    let free = || StepTiming { latency: clock.latency(), ..StepTiming::default() };
    Ok(pacer.as_ref().map_or_else(free, |pacer| pacer.timing(&clock)))
}
