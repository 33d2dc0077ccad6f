//! Bytes as text, in the standard alphabet with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4_usize {
            let digit = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes of a text; `None` when it is not one that [`encode`] gives.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take_while(|&&digit| digit == b'=').count();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for group in digits[..digits.len() - padding].chunks(4) {
        let mut bits = 0_u32;
        for place in 0..4 {
            bits = bits << 6 | group.get(place).map_or(Some(0), |digit| value(*digit))?;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    bytes.truncate(bytes.len().checked_sub(padding)?);
    // What was cut off must have been nothing.
    (encode(&bytes) == text).then_some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(match digit {
        b'A'..=b'Z' => u32::from(digit - b'A'),
        b'a'..=b'z' => u32::from(digit - b'a') + 26,
        b'0'..=b'9' => u32::from(digit - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_usual_ones() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (&[0xff, 0xfe, 0xfd], "//79"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["Zg", "Z===", "====", "Zh==", "Zg==Zg==", "Zm9 ", "Zm9v\n"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
