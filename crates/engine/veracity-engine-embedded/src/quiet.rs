//! Turns panics inside tract into errors, without a word on the terminal.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use tract_onnx::prelude::TractResult;

thread_local! {
    /// Whether this thread is inside of a call that catches panics.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls into tract and says in words what went wrong, be it an error or a panic.
///
/// After a panic whatever the call had in hand may be half changed: the caller throws it away.
pub(crate) fn call<T>(work: impl FnOnce() -> TractResult<T>) -> Result<T, String> {
    install_hook();
    let before = INSIDE.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(before);
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(payload) => Err(format!("the engine panicked: {}", text_of(&*payload))),
    }
}

/// The default hook prints, and which hook is in place is the program's choice, not ours: so the
/// one in place is kept and asked for everything but our own panics. Done once in a process; a hook
/// that a program sets later replaces this one, and then decides about our panics too.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                previous(info);
            }
        }));
    });
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_that_repeats_its_text() {
        let number = 7;
        let formatted = call(|| -> TractResult<()> { panic!("seven: {number}") });
        assert_eq!(formatted.unwrap_err(), "the engine panicked: seven: 7");
        let plain = call(|| -> TractResult<()> { panic!("plain") });
        assert_eq!(plain.unwrap_err(), "the engine panicked: plain");
        assert_eq!(call(|| Ok(number)), Ok(7));
    }

    #[test]
    fn only_panics_inside_are_kept_from_the_hook() {
        let _ = call(|| Ok(()));
        assert!(!INSIDE.get());
        let _ = call(|| -> TractResult<()> {
            assert!(INSIDE.get());
            panic!("inside")
        });
        assert!(!INSIDE.get(), "a panic leaves the mark as it was");
    }
}
