//! The content that is shown now, and those who wait for the next.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::content::Content;

/// What is shown, with numbers that grow with every change.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) content: Content,
    /// Number of the content.
    pub(crate) version: u64,
    /// Number of the content with which each page came.
    pub(crate) page_versions: Vec<u64>,
    /// Pages that somebody has fetched.
    fetched: BTreeSet<usize>,
    is_closed: bool,
}

/// Where content is put up for everybody to see.
#[derive(Debug)]
pub(crate) struct Board {
    shown: Mutex<Shown>,
    changed: Condvar,
}

impl Board {
    pub(crate) fn new(content: Content) -> Self {
        let page_versions = vec![1; content.frames.len()];
        let fetched = BTreeSet::new();
        let shown = Shown { content, version: 1, page_versions, fetched, is_closed: false };
        Self { shown: Mutex::new(shown), changed: Condvar::new() }
    }

    /// What is shown now.
    pub(crate) fn shown(&self) -> MutexGuard<'_, Shown> {
        // Content is replaced as a whole: what a panic left behind is the content of before.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts up other content. The same content again is no change.
    pub(crate) fn put(&self, content: Content) {
        let mut shown = self.shown();
        if shown.content == content {
            return;
        }
        shown.version += 1;
        let version = shown.version;
        let before = |index: usize| {
            let frame = shown.content.frames.get(index)?;
            let is_same = content.frames.get(index).is_some_and(|new| new.page == frame.page);
            is_same.then(|| shown.page_versions[index])
        };
        let pages = 0..content.frames.len();
        let versions: Vec<u64> = pages.map(|page| before(page).unwrap_or(version)).collect();
        shown.page_versions = versions;
        shown.content = content;
        drop(shown);
        self.changed.notify_all();
    }

    /// Notes that a page was fetched.
    pub(crate) fn note_fetched(&self, page: usize) {
        self.shown().fetched.insert(page);
    }

    /// Whether every page was fetched.
    pub(crate) fn is_fetched(&self) -> bool {
        let shown = self.shown();
        (0..shown.content.frames.len()).all(|page| shown.fetched.contains(&page))
    }

    /// Waits until something else than `version` is shown. Gives the numbers of the content and of
    /// its pages; `None` when nothing changed for so long.
    pub(crate) fn next(&self, version: u64, patience: Duration) -> Option<Vec<u64>> {
        let is_same = |shown: &mut Shown| shown.version == version && !shown.is_closed;
        let waited = self.changed.wait_timeout_while(self.shown(), patience, is_same);
        let (shown, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let numbers = [&[shown.version], shown.page_versions.as_slice()].concat();
        (shown.version != version).then_some(numbers)
    }

    /// Lets everybody go who waits.
    pub(crate) fn close(&self) {
        self.shown().is_closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shown().is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;

    fn content(pages: &[&str]) -> Content {
        let frame = |page: &&str| Frame { page: (*page).to_owned(), ..Frame::default() };
        Content { frames: pages.iter().map(frame).collect(), ..Content::default() }
    }

    #[test]
    fn only_what_changed_gets_a_new_number() {
        let board = Board::new(content(&["a", "b"]));
        for (pages, numbers) in [
            (&["a", "b"][..], &[1, 1, 1][..]),
            (&["a", "c"], &[2, 1, 2]),
            (&["d", "c"], &[3, 3, 2]),
            (&["d"], &[4, 3]),
            (&["d", "e"], &[5, 3, 5]),
        ] {
            board.put(content(pages));
            assert_eq!(board.next(0, Duration::ZERO).unwrap(), numbers, "{pages:?}");
        }
    }

    #[test]
    fn who_waits_is_told_of_the_next_content_and_let_go_at_the_end() {
        let board = Board::new(content(&["a"]));
        assert_eq!(board.next(1, Duration::ZERO), None);
        std::thread::scope(|scope| {
            let waits = || board.next(1, Duration::from_mins(1));
            let waiting = scope.spawn(waits);
            board.put(content(&["b"]));
            assert_eq!(waiting.join().unwrap(), Some(vec![2, 2]));
        });
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| board.next(2, Duration::from_mins(1)));
            board.close();
            assert_eq!(waiting.join().unwrap(), None);
        });
    }

    #[test]
    fn a_page_counts_as_shown_when_it_was_fetched() {
        let board = Board::new(content(&["a", "b"]));
        board.note_fetched(0);
        assert!(!board.is_fetched());
        board.note_fetched(1);
        assert!(board.is_fetched());
    }
}
