//! The dictionary at the start of an npy array:
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.

use veracity_diag::{Diagnostic, Result, codes};

use super::malformed;
use crate::{DType, Shape};

/// What the header says about the elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) shape: Shape,
}

/// The header of a row-major, little-endian array.
pub(super) fn text(dtype: DType, shape: &Shape) -> String {
    let dims: Vec<_> = shape.dims().iter().map(usize::to_string).collect();
    let mut dims = dims.join(", ");
    if shape.rank() == 1 {
        dims.push(','); // Without it, this would be a number in parentheses.
    }
    let descr = descr_from_dtype(dtype);
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}")
}

/// Reads a header: exactly the three keys, once each, in any order.
pub(super) fn parse(text: &[u8]) -> Result<Header> {
    let mut cursor = Cursor { rest: ascii(text)? };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    cursor.expect('{')?;
    while !cursor.eat('}') {
        let key = cursor.string()?;
        cursor.expect(':')?;
        let again = match key {
            "descr" => descr.replace(cursor.dtype()?).is_some(),
            "fortran_order" => fortran_order.replace(cursor.boolean()?).is_some(),
            "shape" => shape.replace(cursor.shape()?).is_some(),
            _ => return Err(malformed(format!("the header has an unknown key `{key}`")).into()),
        };
        if again {
            return Err(malformed(format!("the header has the key `{key}` twice")).into());
        }
        if !cursor.eat(',') {
            cursor.expect('}')?;
            break;
        }
    }
    cursor.end()?;
    let (Some((dtype, big_endian)), Some(fortran_order), Some(shape)) =
        (descr, fortran_order, shape)
    else {
        return Err(malformed("the header lacks `descr`, `fortran_order` or `shape`").into());
    };
    Ok(Header { dtype, big_endian, fortran_order, shape })
}

fn ascii(text: &[u8]) -> Result<&str> {
    // Only the field names of structured dtypes could be anything else, and those are refused.
    text.is_ascii()
        .then(|| std::str::from_utf8(text).expect("ASCII is UTF-8"))
        .ok_or_else(|| malformed("the header is not ASCII text").into())
}

/// The part of the header that was not read yet.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\t', '\r']);
        self.rest.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.eat(wanted) { Ok(()) } else { Err(self.unexpected(&format!("`{wanted}`")).into()) }
    }

    fn end(&mut self) -> Result<()> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected("the end").into()) }
    }

    fn unexpected(&mut self, wanted: &str) -> Diagnostic {
        match self.peek() {
            Some(found) => malformed(format!("the header has {found:?} instead of {wanted}")),
            None => malformed(format!("the header ends before {wanted}")),
        }
    }

    /// The longest start made of such characters.
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let len = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    fn string(&mut self) -> Result<&'a str> {
        let Some(quote @ ('\'' | '"')) = self.peek() else {
            return Err(self.unexpected("a text").into());
        };
        self.expect(quote)?;
        let text = self.take_while(|c| c != quote && c != '\\');
        self.expect(quote)?;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool> {
        self.peek();
        match self.take_while(|c| c.is_ascii_alphanumeric()) {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(self.unexpected("`True` or `False`").into()),
        }
    }

    fn dtype(&mut self) -> Result<(DType, bool)> {
        if let Some('[' | '(') = self.peek() {
            return Err(unsupported("structured dtypes are not supported").into());
        }
        let descr = self.string()?;
        dtype_from_descr(descr).ok_or_else(|| {
            unsupported(format!("the NumPy dtype `{descr}` is not supported")).into()
        })
    }

    fn shape(&mut self) -> Result<Shape> {
        self.expect('(')?;
        let mut dims = Vec::new();
        while !self.eat(')') {
            dims.push(self.dim()?);
            // `(3)` is a number and not a tuple.
            if !self.eat(',') {
                self.expect(if dims.len() == 1 { ',' } else { ')' })?;
                break;
            }
        }
        Shape::new(dims).ok_or_else(|| {
            Diagnostic::error(codes::TENSOR_TOO_LARGE, "the shape has too many axes or elements")
                .into()
        })
    }

    fn dim(&mut self) -> Result<usize> {
        self.peek();
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.unexpected("a size").into());
        }
        self.eat('L'); // Python 2 wrote long integers like this.
        digits.parse().map_err(|_overflow| {
            Diagnostic::error(codes::TENSOR_TOO_LARGE, format!("an axis has size {digits:.40}"))
                .into()
        })
    }
}

fn unsupported(message: impl Into<String>) -> Diagnostic {
    let names: Vec<_> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    Diagnostic::error(codes::DTYPE_UNSUPPORTED, message)
        .hint(format!("convert the array with `astype` to one of {}", names.join(", ")))
}

/// The dtype, and whether it is big endian.
fn dtype_from_descr(descr: &str) -> Option<(DType, bool)> {
    let (order, kind) = descr.split_at_checked(1)?;
    let dtype = match kind {
        "f2" => DType::F16,
        "V2" => DType::BF16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "b1" => DType::Bool,
        _ => return None,
    };
    match (order, dtype.size(), dtype) {
        ("<" | ">" | "|", 1, _) | ("<", ..) | ("|", _, DType::BF16) => Some((dtype, false)),
        // NumPy does not swap voids, so a big-endian bfloat16 does not exist.
        (">", _, DType::BF16) => None,
        (">", ..) => Some((dtype, true)),
        _ => None,
    }
}

fn descr_from_dtype(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "<f2",
        DType::BF16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_header_reads_back() {
        for dtype in DType::ALL {
            for shape in [Shape::scalar(), [0].into(), [3].into(), [2, 0, 4].into()] {
                let header = parse(text(dtype, &shape).as_bytes()).unwrap();
                let expected = Header { dtype, big_endian: false, fortran_order: false, shape };
                assert_eq!(header, expected);
            }
        }
    }

    #[test]
    fn other_spellings_of_a_header_are_read() {
        for text in [
            "{'shape': (2L, 3L), 'fortran_order': False, 'descr': '<f4'}",
            "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3)}\n\n",
            " { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , } ",
        ] {
            let header = parse(text.as_bytes()).unwrap();
            assert_eq!((header.dtype, header.shape), (DType::F32, [2, 3].into()), "{text}");
        }
    }

    #[test]
    fn the_byte_order_is_part_of_the_dtype() {
        for (descr, expected) in [
            (">f4", Some((DType::F32, true))),
            (">u1", Some((DType::U8, false))),
            ("<b1", Some((DType::Bool, false))),
            ("|V2", Some((DType::BF16, false))),
            (">V2", None),
            ("|f4", None),
            ("=f4", None),
            ("f4", None),
            ("", None),
        ] {
            assert_eq!(dtype_from_descr(descr), expected, "{descr}");
        }
    }
}
