//! A progress bar that appears only when there is something to wait for.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes less than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two updates. Drawing between steps must not show in their times.
const INTERVAL: Duration = Duration::from_millis(100);

/// Counts steps on stderr, when that is a terminal and the work takes long enough.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    done: u64,
    /// Whether the bar is where it belongs: on stderr, or nowhere when it is not wanted.
    placed: bool,
    next_update: Instant,
}

impl Progress {
    /// A bar for `steps` steps that stays hidden for a while, or for good when `quiet`.
    pub(crate) fn new(steps: u64, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} steps, {eta}");
        bar.set_style(style.expect("the template is valid"));
        Self { bar, done: 0, placed: quiet, next_update: Instant::now() + PATIENCE }
    }

    /// Notes one step.
    pub(crate) fn advance(&mut self) {
        self.done += 1;
        let now = Instant::now();
        if now < self.next_update {
            return;
        }
        self.next_update = now + INTERVAL;
        if !self.placed {
            self.placed = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(self.done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
