//! Errors over depth or time as a bar of characters.

/// Heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Nothing was off here.
const EXACT: char = '·';

/// What is off here is no number.
const BROKEN: char = '!';

/// Errors of the same rows that share a logarithmic scale.
pub(crate) struct Spark {
    lowest: f64,
    highest: f64,
    columns: usize,
}

impl Spark {
    /// A scale for all of these errors; `None` when none of them is a number above zero.
    pub(crate) fn new(errors: impl Iterator<Item = f64>, columns: usize) -> Option<Self> {
        let errors = errors.filter(|error| error.is_finite() && *error > 0.0);
        let start = (f64::INFINITY, 0.0_f64);
        let (lowest, highest) =
            errors.fold(start, |(low, high), error| (low.min(error), high.max(error)));
        (highest > 0.0).then_some(Self { lowest, highest, columns })
    }

    /// From which error to which.
    pub(crate) fn range(&self) -> (f64, f64) {
        (self.lowest, self.highest)
    }

    /// The largest error of each stretch of rows.
    pub(crate) fn bar(&self, errors: &[f64]) -> String {
        let columns = self.columns.min(errors.len());
        let stretch = |column: usize| {
            let ends = [column, column + 1].map(|end| end * errors.len() / columns);
            &errors[ends[0]..ends[1]]
        };
        (0..columns).map(|column| self.height(stretch(column))).collect()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a height between 0 and 7"
    )]
    fn height(&self, errors: &[f64]) -> char {
        let worst = errors.iter().copied().fold(0.0, f64::max);
        if !worst.is_finite() || errors.iter().any(|error| error.is_nan()) {
            return BROKEN;
        }
        if worst <= 0.0 {
            return EXACT;
        }
        let span = (self.highest / self.lowest).ln();
        let part = if span > 0.0 { (worst / self.lowest).ln() / span } else { 1.0 };
        let top = BARS.len() - 1;
        BARS[((part * top as f64).round() as usize).min(top)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_orders_of_magnitude_and_what_is_no_number() {
        let errors = [0.0, 1e-9, 1e-6, 1e-2, f64::INFINITY, f64::NAN];
        let spark = Spark::new(errors.into_iter(), 60).unwrap();
        assert_eq!(spark.range(), (1e-9, 1e-2));
        assert_eq!(spark.bar(&errors), "·▁▄█!!");
    }

    #[test]
    fn a_stretch_shows_its_worst() {
        let errors = [1e-9, 1e-9, 1e-2, 1e-9, 0.0, 0.0];
        let spark = Spark::new(errors.into_iter(), 3).unwrap();
        assert_eq!(spark.bar(&errors), "▁█·");
        assert_eq!(Spark::new([0.0, f64::NAN].into_iter(), 3).map(|spark| spark.columns), None);
        assert_eq!(Spark::new([0.5].into_iter(), 3).unwrap().bar(&[0.5]), "█");
    }
}
