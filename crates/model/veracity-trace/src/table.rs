//! Records by number, where numbers only grow and most records die young.
//!
//! Records lie in pages. A page whose records are all gone is freed, so a long session pays for the
//! records that live and not for all that ever lived.

const PAGE: usize = 128;

#[derive(Debug)]
struct Page<T> {
    slots: Vec<Option<T>>,
    live: usize,
}

/// Records by number.
#[derive(Debug)]
pub(crate) struct Table<T> {
    pages: Vec<Option<Page<T>>>,
    next: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), next: 0 }
    }
}

impl<T> Table<T> {
    /// Adds a record and gives its number.
    pub(crate) fn push(&mut self, record: T) -> u32 {
        let number = self.next;
        self.next = number.checked_add(1).expect("a session has fewer than 2^32 tensors");
        if (number as usize).is_multiple_of(PAGE) {
            self.pages.push(None);
        }
        let page = self.pages.last_mut().expect("the page of the next number was just made");
        let page = page.get_or_insert_with(|| Page { slots: Vec::with_capacity(PAGE), live: 0 });
        // A page that was freed half-filled starts again behind the numbers it already gave.
        page.slots.resize_with(number as usize % PAGE, || None);
        page.slots.push(Some(record));
        page.live += 1;
        number
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let page = self.pages.get(number as usize / PAGE)?.as_ref()?;
        page.slots.get(number as usize % PAGE)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let page = self.pages.get_mut(number as usize / PAGE)?.as_mut()?;
        page.slots.get_mut(number as usize % PAGE)?.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let place = self.pages.get_mut(number as usize / PAGE)?;
        let page = place.as_mut()?;
        let record = page.slots.get_mut(number as usize % PAGE)?.take()?;
        page.live -= 1;
        if page.live == 0 {
            *place = None;
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_given_twice_and_dead_pages_are_freed() {
        let mut table = Table::default();
        for round in 0..1000_u32 {
            assert_eq!(table.push(round), round);
            assert_eq!(table.get(round), Some(&round));
            if round % 100 != 7 {
                assert_eq!(table.remove(round), Some(round));
                assert_eq!(table.remove(round), None);
            }
        }
        let alive: Vec<u32> = (0..1000).filter(|number| table.get(*number).is_some()).collect();
        assert_eq!(alive, (0..10).map(|hundred| hundred * 100 + 7).collect::<Vec<_>>());
        for number in alive {
            table.remove(number);
        }
        assert!(table.pages.iter().all(Option::is_none));
    }
}
