//! How far long work is, told to whoever wants to know.
//!
//! Work opens a [`Stage`] and counts what is done; a front that has somebody waiting listens with
//! [`listen`]. Both are about one thread, so that work that runs beside it is not mixed in. Without
//! a listener counting costs next to nothing, and nothing is ever shown from here. Of stages inside of
//! each other only the outermost is told: it knows best how much is left.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

thread_local! {
    static LISTENER: RefCell<Option<Rc<dyn Listener>>> = const { RefCell::new(None) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is counted, in the plural.
    pub what: &'static str,
    /// How many are done.
    pub done: u64,
    /// How many there are, where that is known.
    pub total: Option<u64>,
    /// Which part of the work is under way, where it has parts. It may go back to the first one.
    pub part: Option<Part>,
}

/// A part of work whose amount is not known: the third of five, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What the parts are, in the singular.
    pub what: &'static str,
    /// Which one it is, from 1.
    pub at: usize,
    /// How many there are.
    pub of: usize,
    /// What this one is called.
    pub name: &'static str,
}

/// Somebody who waits.
pub trait Listener {
    /// Is told about everything that is counted, which may be often.
    fn heard(&self, progress: &Progress);

    /// Is told when what was counted is done.
    fn ended(&self) {}
}

/// Does work while somebody listens.
pub fn listen<T>(listener: Rc<dyn Listener>, work: impl FnOnce() -> T) -> T {
    /// Puts back who listened before, even when the work ends in a panic.
    struct Before(Option<Rc<dyn Listener>>);
    impl Drop for Before {
        fn drop(&mut self) {
            LISTENER.set(self.0.take());
        }
    }
    let _before = Before(LISTENER.replace(Some(listener)));
    work()
}

/// A piece of work that is counted, until it is dropped.
#[derive(Debug)]
pub struct Stage {
    progress: Progress,
    is_outermost: bool,
}

impl Stage {
    /// Begins to count up to `total`.
    pub fn new(what: &'static str, total: usize) -> Self {
        Self::open(what, Some(total as u64))
    }

    /// Begins to count without knowing how much there is.
    pub fn endless(what: &'static str) -> Self {
        Self::open(what, None)
    }

    fn open(what: &'static str, total: Option<u64>) -> Self {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        let progress = Progress { what, done: 0, total, part: None };
        Self { progress, is_outermost: depth == 0 }
    }

    /// Counts so many more.
    pub fn advance(&mut self, more: usize) {
        self.progress.done += more as u64;
        self.tell();
    }

    /// Goes on to another part. What was counted stays.
    pub fn enter(&mut self, part: Part) {
        self.progress.part = Some(part);
        self.tell();
    }

    fn tell(&self) {
        if !self.is_outermost {
            return;
        }
        if let Some(listener) = listener() {
            listener.heard(&self.progress);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if let Some(listener) = listener().filter(|_| self.is_outermost) {
            listener.ended();
        }
    }
}

/// Who listens now; taken out while it does, as it may do work of its own.
fn listener() -> Option<Rc<dyn Listener>> {
    LISTENER.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(RefCell<Vec<(&'static str, u64, Option<u64>)>>);

    impl Listener for Log {
        fn heard(&self, progress: &Progress) {
            self.0.borrow_mut().push((progress.what, progress.done, progress.total));
        }

        fn ended(&self) {
            self.0.borrow_mut().push(("ended", 0, None));
        }
    }

    #[test]
    fn a_listener_is_told_what_is_counted_while_it_listens() {
        let log = Rc::new(Log::default());
        Stage::new("unheard", 1).advance(1);
        listen(Rc::clone(&log) as Rc<dyn Listener>, || {
            let mut stage = Stage::new("samples", 3);
            stage.advance(1);
            stage.advance(2);
            drop(stage);
            Stage::endless("rewrites").advance(5);
        });
        Stage::new("unheard", 1).advance(1);
        let heard = [
            ("samples", 1, Some(3)),
            ("samples", 3, Some(3)),
            ("ended", 0, None),
            ("rewrites", 5, None),
            ("ended", 0, None),
        ];
        assert_eq!(log.0.take(), heard);
    }

    #[test]
    fn a_part_is_told_with_what_was_counted_before_it() {
        struct Parts(RefCell<Vec<(u64, Option<usize>)>>);
        impl Listener for Parts {
            fn heard(&self, progress: &Progress) {
                self.0.borrow_mut().push((progress.done, progress.part.map(|part| part.at)));
            }
        }
        let heard = Rc::new(Parts(RefCell::default()));
        listen(Rc::clone(&heard) as Rc<dyn Listener>, || {
            let mut stage = Stage::endless("rewrites");
            stage.advance(2);
            for at in [1, 2, 1] {
                stage.enter(Part { what: "pass", at, of: 2, name: "fold" });
                stage.advance(1);
            }
        });
        let expected = [(2, None), (2, Some(1)), (3, Some(1)), (3, Some(2)), (4, Some(2))];
        assert_eq!(heard.0.borrow()[..5], expected);
        assert_eq!(heard.0.borrow()[5..], [(4, Some(1)), (5, Some(1))]);
    }

    #[test]
    fn the_outermost_stage_speaks() {
        let log = Rc::new(Log::default());
        listen(Rc::clone(&log) as Rc<dyn Listener>, || {
            let mut outer = Stage::new("models", 2);
            Stage::new("passes", 9).advance(4);
            outer.advance(1);
        });
        assert_eq!(log.0.take(), [("models", 1, Some(2)), ("ended", 0, None)]);
    }

    #[test]
    fn who_listened_before_listens_again_even_after_a_panic() {
        let (outer, inner) = (Rc::new(Log::default()), Rc::new(Log::default()));
        listen(Rc::clone(&outer) as Rc<dyn Listener>, || {
            let listener = Rc::clone(&inner) as Rc<dyn Listener>;
            let work = std::panic::AssertUnwindSafe(|| {
                listen(listener, || {
                    Stage::new("lost", 1).advance(1);
                    panic!("the work fails")
                })
            });
            assert!(std::panic::catch_unwind(work).is_err());
            Stage::new("found", 1).advance(1);
        });
        assert_eq!(inner.0.take(), [("lost", 1, Some(1)), ("ended", 0, None)]);
        assert_eq!(outer.0.take(), [("found", 1, Some(1)), ("ended", 0, None)]);
    }
}
