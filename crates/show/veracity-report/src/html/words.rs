//! Words and numbers that every page shows in the same way.

use veracity_results::Verdict;

use super::escape::escape;

/// The class of a verdict: a word of ours, without spaces.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Conditional => "conditional",
        Verdict::Disproved => "disproved",
        Verdict::NotComparable => "not_comparable",
    }
}

/// The answer of a page. The word before the colon is what it says at a glance.
pub(super) fn banner(class: &str, sentence: &str) -> String {
    let (word, rest) = match sentence.find(':') {
        Some(at) => sentence.split_at(at),
        None => (sentence, ""),
    };
    let (word, rest) = (escape(word), escape(rest));
    format!("<p class=\"verdict {class}\"><strong>{word}</strong><span>{rest}.</span></p>\n")
}

/// An error in few columns: three digits, with an exponent where zeros would have to be counted.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let short = format!("{value:.2e}");
    let exponent: i32 = short.split_once('e').map_or(0, |(_, digits)| digits.parse().unwrap_or(0));
    match exponent {
        -3..=3 => {
            let decimals = usize::try_from(2 - exponent).unwrap_or(0);
            format!("{value:.decimals$}")
        }
        _ => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown_without_zeros_to_count() {
        for (value, shown) in [
            (0.0, "0"),
            (1.192_092_9e-7, "1.19e-7"),
            (9.999e-4, "0.00100"),
            (4.506_733_7e-3, "0.00451"),
            (6.2449, "6.24"),
            (-30.55, "-30.6"),
            (9.999, "10.0"),
            (1234.5, "1234"),
            (123_456.0, "1.23e5"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(value), shown, "{value:e}");
        }
    }

    #[test]
    fn a_banner_has_its_word_apart_and_no_markup_of_others() {
        assert_eq!(
            banner("proved", "Proved: all <b>"),
            "<p class=\"verdict proved\"><strong>Proved</strong><span>: all &lt;b&gt;.</span></p>\n"
        );
    }
}
