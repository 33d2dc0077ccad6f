//! How wide texts are, in the font that they are drawn with.
//!
//! The font was made without kerning and ligatures, so that the width of a text is the sum of the
//! widths of its letters. A letter that the font lacks is counted as a full square.

use std::sync::LazyLock;

use ttf_parser::Face;

use crate::layout::Weight;

/// Letters of most texts.
pub(crate) const REGULAR: &[u8] = include_bytes!("../assets/Inter-Regular.ttf");
/// Letters of names.
pub(crate) const SEMI_BOLD: &[u8] = include_bytes!("../assets/Inter-SemiBold.ttf");
/// The same for pages.
pub(crate) const REGULAR_WOFF2: &[u8] = include_bytes!("../assets/Inter-Regular.woff2");
/// The same for pages.
pub(crate) const SEMI_BOLD_WOFF2: &[u8] = include_bytes!("../assets/Inter-SemiBold.woff2");

const ELLIPSIS: char = '…';

static FACES: LazyLock<[Face<'static>; 2]> = LazyLock::new(|| {
    [REGULAR, SEMI_BOLD].map(|font| Face::parse(font, 0).expect("the font is part of the crate"))
});

fn face(weight: Weight) -> &'static Face<'static> {
    match weight {
        Weight::Regular => &FACES[0],
        Weight::SemiBold => &FACES[1],
    }
}

/// Width of a letter in parts of the letter height, of which there are `units_per_em`.
fn advance(face: &Face<'_>, letter: char) -> i64 {
    let glyph = face.glyph_index(letter).and_then(|glyph| face.glyph_hor_advance(glyph));
    i64::from(glyph.unwrap_or(face.units_per_em()))
}

/// Width of a text, rounded up.
pub(crate) fn width(text: &str, size: i32, weight: Weight) -> i32 {
    let face = face(weight);
    let units: i64 = text.chars().map(|letter| advance(face, letter)).sum();
    let em = i64::from(face.units_per_em());
    i32::try_from((units * i64::from(size) + em - 1) / em).unwrap_or(i32::MAX)
}

/// The text, with its middle left out where it is too wide. Both ends tell names apart.
pub(crate) fn shortened(text: &str, size: i32, weight: Weight, most: i32) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if width(&clean, size, weight) <= most {
        return clean;
    }
    let letters: Vec<char> = clean.chars().collect();
    let mut kept = letters.len().saturating_sub(1);
    loop {
        let head = kept.div_ceil(2);
        let tail = letters.len() - (kept - head);
        let mut short: String = letters[..head].iter().collect();
        short.push(ELLIPSIS);
        short.extend(&letters[tail..]);
        if kept == 0 || width(&short, size, weight) <= most {
            return short;
        }
        kept -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_fit_are_kept_and_others_lose_their_middle() {
        for (text, most, expected) in [
            ("action", 200, "action"),
            ("", 200, ""),
            ("left_hip_yaw_position_measured", 100, "left_hip…easured"),
            ("abc", 1, "…"),
        ] {
            assert_eq!(shortened(text, 12, Weight::Regular, most), expected);
        }
    }

    #[test]
    fn a_text_is_as_wide_as_its_letters() {
        let alone = |letter: &str| width(letter, 2048, Weight::Regular);
        assert_eq!(width("AVA", 2048, Weight::Regular), 2 * alone("A") + alone("V"));
        assert!(width("name", 12, Weight::SemiBold) > width("name", 12, Weight::Regular));
        assert_eq!(width("漢", 12, Weight::Regular), 12);
    }
}
