//! How far work is, as one line: done, all, time so far, time left.
//!
//! There is no clock here. Whoever has one says what time it is, counted from the beginning.

use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;
use veracity_diag::progress::{Part, Progress};

use crate::plain::printable;

/// Seconds over which the speed is smoothed: what was quick a moment ago may be slow now.
const SMOOTHING_SECS: f64 = 5.0;

/// Characters of the bar.
const BAR: usize = 20;

/// Measures how fast work goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    elapsed: Duration,
    done: u64,
    /// Pieces a second; 0 before the first.
    speed: f64,
}

impl Meter {
    /// Notes that so much is done at this time. What goes backwards begins anew.
    pub fn note(&mut self, elapsed: Duration, done: u64) {
        if done < self.done || elapsed < self.elapsed {
            *self = Self { elapsed, done, speed: 0.0 };
            return;
        }
        let secs = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        if secs <= 0.0 {
            self.done = done;
            return;
        }
        let now = as_float(done - self.done) / secs;
        let weight = if self.speed > 0.0 { 1.0 - (-secs / SMOOTHING_SECS).exp() } else { 1.0 };
        self.speed += weight * (now - self.speed);
        (self.elapsed, self.done) = (elapsed, done);
    }

    /// How long it takes until `total` are done, if it goes on like this.
    pub fn left(&self, total: u64) -> Option<Duration> {
        let rest = as_float(total.saturating_sub(self.done));
        let secs = if self.speed > 0.0 { rest / self.speed } else { f64::INFINITY };
        Duration::try_from_secs_f64(secs).ok()
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate is shown in two digits")]
fn as_float(count: u64) -> f64 {
    count as f64
}

/// How far work is, in a line of at most `width` columns.
pub fn line(
    progress: &Progress,
    elapsed: Duration,
    left: Option<Duration>,
    width: usize,
) -> String {
    let Progress { what, done, total, part } = *progress;
    let what = printable(what);
    let time = short(elapsed);
    let (bar, text) = match total {
        None => {
            let part = part.map(named).unwrap_or_default();
            let one = what.strip_suffix('s').filter(|_| done == 1);
            (None, format!("{part}{done} {}, {time}", one.unwrap_or(&what)))
        }
        Some(total) => {
            let done = done.min(total);
            let left = match left {
                Some(left) if done < total => format!(", about {} left", short(left)),
                _ => String::new(),
            };
            (Some(bar(done, total)), format!("{done}/{total} {what}, {time}{left}"))
        }
    };
    match bar {
        Some(bar) if BAR + 3 + text.width() <= width => format!("[{bar}] {text}"),
        _ => fitted(&text, width),
    }
}

/// What is under way, before what is counted.
fn named(Part { what, at, of, name }: Part) -> String {
    format!("{what} {at} of {of} ({name}): ")
}

fn bar(done: u64, total: u64) -> String {
    let share = u128::from(done) * BAR as u128 / u128::from(total.max(1));
    let full = usize::try_from(share).unwrap_or(BAR).min(BAR);
    "#".repeat(full) + &"-".repeat(BAR - full)
}

/// A line that is longer than the terminal could not be erased.
fn fitted(text: &str, width: usize) -> String {
    let mut fitting = text.to_owned();
    while fitting.width() > width && fitting.pop().is_some() {}
    fitting
}

/// A time for people: `7 s`, `2:05`, `1:02:05`.
fn short(time: Duration) -> String {
    let secs = time.as_secs();
    let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
    match (hours, minutes) {
        (0, 0) => format!("{secs} s"),
        (0, _) => format!("{minutes}:{secs:02}"),
        _ => format!("{hours}:{minutes:02}:{secs:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn steady_work_has_as_much_time_left_as_it_takes() {
        let mut meter = Meter::default();
        assert_eq!(meter.left(100), None);
        for second in 1..=10 {
            meter.note(secs(second), 4 * second);
        }
        assert_eq!(meter.left(100).map(|left| left.as_secs_f64().round()), Some(15.0));
        assert_eq!(meter.left(40), Some(Duration::ZERO));
        assert_eq!(meter.left(7), Some(Duration::ZERO), "what is done is done");
    }

    #[test]
    fn a_change_of_speed_is_followed_slowly() {
        let mut meter = Meter::default();
        for second in 1..=20 {
            meter.note(secs(second), 10 * second);
        }
        meter.note(secs(21), 200);
        let one_pause = meter.left(300).unwrap().as_secs_f64();
        assert!((10.0..15.0).contains(&one_pause), "{one_pause}");
        for second in 22..60 {
            meter.note(secs(second), 200 + (second - 21));
        }
        let slow = meter.left(338).unwrap().as_secs_f64();
        assert!((90.0..110.0).contains(&slow), "{slow}");
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_does_no_harm() {
        let mut meter = Meter::default();
        meter.note(secs(1), 10);
        meter.note(secs(1), 20);
        assert!(meter.left(40).is_some());
        meter.note(secs(0), 20);
        assert_eq!(meter.left(40), None);
        meter.note(secs(5), 3);
        assert_eq!(meter.left(40), None, "another count has begun");
    }

    #[test]
    fn a_line_says_what_is_known_and_fits() {
        let left = Some(secs(125));
        for (counts, elapsed, left, width, expected) in [
            (
                (30, Some(120)),
                42,
                left,
                80,
                "[#####---------------] 30/120 samples, 42 s, about 2:05 left",
            ),
            ((30, Some(120)), 42, None, 80, "[#####---------------] 30/120 samples, 42 s"),
            ((120, Some(120)), 3725, left, 80, "[####################] 120/120 samples, 1:02:05"),
            ((130, Some(120)), 1, left, 80, "[####################] 120/120 samples, 1 s"),
            ((0, Some(0)), 1, None, 80, "[--------------------] 0/0 samples, 1 s"),
            ((7, None), 61, left, 80, "7 samples, 1:01"),
            ((30, Some(120)), 42, left, 40, "30/120 samples, 42 s, about 2:05 left"),
            ((30, Some(120)), 42, left, 12, "30/120 sampl"),
        ] {
            let (done, total) = counts;
            let progress = Progress { what: "samples", done, total, part: None };
            let found = line(&progress, secs(elapsed), left, width);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn work_without_a_total_says_which_part_is_under_way() {
        let part = Some(Part { what: "pass", at: 3, of: 14, name: "fold-constants" });
        let progress = Progress { what: "rewrites", done: 412, total: None, part };
        let found = line(&progress, secs(12), None, 80);
        assert_eq!(found, "pass 3 of 14 (fold-constants): 412 rewrites, 12 s");
    }
}
