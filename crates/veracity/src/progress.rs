//! A line that says how far long work is, for fronts that have a terminal.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use veracity_diag::progress::{Listener, Part, Progress, Stage, listen};
use veracity_report::progress::{Meter, line};

/// Work that takes less than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two updates: writing must not show in what is measured.
const INTERVAL: Duration = Duration::from_millis(100);

/// Takes the line away, and puts the cursor where it began.
const ERASE: &str = "\r\x1b[2K";

/// One line on a terminal, which is gone when the work is done.
pub struct Line<W: Write> {
    state: RefCell<State<W>>,
}

struct State<W> {
    terminal: W,
    width: usize,
    clock: Box<dyn Fn() -> Duration>,
    what: &'static str,
    /// When this count began.
    began: Duration,
    next: Duration,
    meter: Meter,
    is_shown: bool,
}

impl<W: Write> Line<W> {
    /// A line of at most `width` columns on a terminal.
    pub fn new(terminal: W, width: usize) -> Self {
        let started = Instant::now();
        Self::with_clock(terminal, width, Box::new(move || started.elapsed()))
    }

    fn with_clock(terminal: W, width: usize, clock: Box<dyn Fn() -> Duration>) -> Self {
        let began = clock();
        let (meter, next) = (Meter::default(), began + PATIENCE);
        // The last column stays free: a full line would begin another one.
        let width = width.saturating_sub(1);
        let state = State { terminal, width, clock, what: "", began, next, meter, is_shown: false };
        Self { state: RefCell::new(state) }
    }
}

impl<W: Write> Listener for Line<W> {
    fn heard(&self, progress: &Progress) {
        self.state.borrow_mut().heard(progress);
    }

    fn ended(&self) {
        self.state.borrow_mut().ended();
    }
}

impl<W: Write> State<W> {
    fn heard(&mut self, progress: &Progress) {
        let now = (self.clock)();
        if self.what != progress.what {
            (self.what, self.began, self.meter) = (progress.what, now, Meter::default());
        }
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let elapsed = now.saturating_sub(self.began);
        self.meter.note(elapsed, progress.done);
        let left = progress.total.and_then(|total| self.meter.left(total));
        let text = line(progress, elapsed, left, self.width);
        self.is_shown = true;
        // A terminal that is gone has nobody in front of it.
        let _ = write!(self.terminal, "{ERASE}{text}").and_then(|()| self.terminal.flush());
    }

    fn ended(&mut self) {
        self.what = "";
        if std::mem::take(&mut self.is_shown) {
            // As above.
            let _ = write!(self.terminal, "{ERASE}").and_then(|()| self.terminal.flush());
        }
    }
}

/// Does work with a line on a terminal; without one, only the work.
pub fn shown_on<T>(terminal: Option<(impl Write + 'static, usize)>, work: impl FnOnce() -> T) -> T {
    match terminal {
        Some((terminal, width)) => listen(Rc::new(Line::new(terminal, width)), work),
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What a terminal was sent.
    type Sent = Rc<RefCell<Vec<u8>>>;

    /// A terminal that keeps what it was sent, and a clock that is set by hand.
    fn line(width: usize) -> (Line<Kept>, Sent, Rc<Cell<u64>>) {
        let (kept, time) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(0)));
        let clock = Rc::clone(&time);
        let clock = Box::new(move || Duration::from_millis(clock.get()));
        (Line::with_clock(Kept(Rc::clone(&kept)), width, clock), kept, time)
    }

    struct Kept(Sent);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn samples(done: u64) -> Progress {
        Progress { what: "samples", done, total: Some(100), part: None }
    }

    fn taken(kept: &RefCell<Vec<u8>>) -> String {
        String::from_utf8(kept.take()).unwrap()
    }

    #[test]
    fn quick_work_shows_nothing_and_erases_nothing() {
        let (line, kept, time) = line(80);
        for done in 0..99 {
            time.set(10 * done);
            line.heard(&samples(done));
        }
        line.ended();
        assert_eq!(taken(&kept), "");
    }

    #[test]
    fn slow_work_shows_a_line_now_and_then_which_is_gone_in_the_end() {
        let (line, kept, time) = line(80);
        line.heard(&samples(0));
        for (now, done, expected) in [
            (1000, 10, "\r\x1b[2K[##------------------] 10/100 samples, 1 s, about 9 s left"),
            (1050, 11, ""),
            (2000, 20, "\r\x1b[2K[####----------------] 20/100 samples, 2 s, about 8 s left"),
        ] {
            time.set(now);
            line.heard(&samples(done));
            assert_eq!(taken(&kept), expected);
        }
        line.ended();
        assert_eq!(taken(&kept), "\r\x1b[2K");
        line.ended();
        assert_eq!(taken(&kept), "", "what is gone is not erased again");
    }

    #[test]
    fn each_count_has_its_own_time() {
        let (line, kept, time) = line(80);
        time.set(60_000);
        line.heard(&samples(100));
        time.set(61_000);
        line.heard(&Progress { what: "ticks", done: 0, total: None, part: None });
        assert!(taken(&kept).ends_with("0 ticks, 0 s"));
    }

    #[test]
    fn a_narrow_terminal_gets_a_short_line() {
        let (line, kept, time) = line(16);
        time.set(2000);
        line.heard(&samples(50));
        assert_eq!(taken(&kept).chars().skip("\r\x1b[2K".len()).count(), 15);
    }
}
