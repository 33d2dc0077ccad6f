//! An error against time, in a bounded number of pieces: an episode of a million ticks takes as much
//! room as one of a few hundred.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Pieces that an episode is cut into, at most.
pub const MOST_PIECES: usize = 256;

/// The largest error in each piece of an episode. All pieces are of the same length; the last may be
/// shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorOverTime {
    /// The tick that the first piece begins with.
    pub first_tick: usize,
    /// Ticks in a piece.
    pub ticks_each: usize,
    /// The largest absolute error of each piece; infinite where a NaN or an infinity stands on one
    /// side only.
    #[serde(with = "crate::number::list")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::number::Number>"))]
    pub max_abs: Vec<f64>,
}

impl ErrorOverTime {
    /// An episode of these ticks, of which nothing is known yet.
    pub fn new(ticks: &Range<usize>) -> Self {
        let ticks_each = ticks.len().div_ceil(MOST_PIECES).max(1);
        Self { first_tick: ticks.start, ticks_each, max_abs: Vec::new() }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.max_abs.is_empty()
    }

    /// The ticks of a piece.
    pub fn ticks(&self, piece: usize) -> Range<usize> {
        let start = self.first_tick + piece * self.ticks_each;
        start..start + self.ticks_each
    }

    /// Some ticks of the episode, cut where pieces end.
    pub fn cut(&self, ticks: &Range<usize>) -> Vec<(usize, Range<usize>)> {
        let mut parts = Vec::new();
        let mut start = ticks.start.max(self.first_tick);
        while start < ticks.end {
            let piece = (start - self.first_tick) / self.ticks_each.max(1);
            let end = self.ticks(piece).end.clamp(start + 1, ticks.end);
            parts.push((piece, start..end));
            start = end;
        }
        parts
    }

    /// Takes an error in a piece into account. What lies before it was looked at, too.
    pub fn add(&mut self, piece: usize, error: f64) {
        if piece >= self.max_abs.len() {
            self.max_abs.resize(piece + 1, 0.0);
        }
        self.max_abs[piece] = self.max_abs[piece].max(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_of_any_length_takes_a_bounded_number_of_pieces() {
        for (ticks, pieces, each) in
            [(0, 0, 1), (1, 1, 1), (256, 256, 1), (257, 129, 2), (1_000_000, 256, 3907)]
        {
            let found = ErrorOverTime::new(&(7..7 + ticks));
            assert_eq!(found.ticks_each, each, "{ticks}");
            let cut = found.cut(&(7..7 + ticks));
            assert_eq!(cut.len(), pieces, "{ticks}");
            assert_eq!(cut.iter().map(|(_, part)| part.len()).sum::<usize>(), ticks);
        }
    }

    #[test]
    fn ticks_are_cut_where_pieces_end() {
        let found = ErrorOverTime::new(&(10..1010));
        assert_eq!(found.ticks_each, 4);
        assert_eq!(found.cut(&(12..19)), [(0, 12..14), (1, 14..18), (2, 18..19)]);
        assert_eq!(found.cut(&(0..10)), []);
    }

    #[test]
    fn nothing_is_said_about_ticks_that_were_not_run() {
        let mut found = ErrorOverTime::new(&(10..1010));
        assert!(found.is_empty());
        found.add(0, 0.0);
        assert_eq!(found.max_abs, [0.0]);
        found.add(1, 0.5);
        found.add(1, 0.25);
        assert_eq!(found.max_abs, [0.0, 0.5]);
    }

    #[test]
    fn what_is_not_finite_survives_json() {
        let mut found = ErrorOverTime::new(&(0..2));
        found.add(1, f64::INFINITY);
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(json, r#"{"first_tick":0,"ticks_each":1,"max_abs":[0.0,"inf"]}"#);
        assert_eq!(serde_json::from_str::<ErrorOverTime>(&json).unwrap(), found);
    }
}
