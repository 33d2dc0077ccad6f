//! Hands out the elements of two tensors tile by tile, in a form that the kernels can read.
//!
//! After this module there are three kinds of pairs instead of thirteen dtypes: float32 (float16
//! and bfloat16 are widened, which is exact), float64, and integers as float64 with their exact
//! difference beside them.
#![expect(unsafe_code, reason = "bytes are read as elements of the declared dtype")]
#![expect(clippy::cast_precision_loss, reason = "the measurement is defined in float64")]

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use veracity_tensor::{AlignedBytes, DType, TensorView};

/// A tile of pairs.
pub(crate) struct Tile<'a> {
    /// The dtype before widening.
    pub(crate) dtype: DType,
    /// The reference in its own dtype, aligned for it.
    pub(crate) reference: &'a [u8],
    /// The candidate in its own dtype, aligned for it.
    pub(crate) candidate: &'a [u8],
    /// The numbers of both.
    pub(crate) values: Values<'a>,
}

/// The numbers of a tile: reference, candidate, and for integers the absolute difference.
#[derive(Clone, Copy)]
pub(crate) enum Values<'a> {
    /// float16, bfloat16 and float32.
    Single(&'a [f32], &'a [f32]),
    /// float64.
    Double(&'a [f64], &'a [f64]),
    /// Integers and bools.
    Integer(&'a [f64], &'a [f64], &'a [f64]),
}

impl Values<'_> {
    /// Reference and candidate at a position.
    pub(crate) fn at(&self, position: usize) -> (f64, f64) {
        match self {
            Self::Single(reference, candidate) => {
                (reference[position].into(), candidate[position].into())
            }
            Self::Double(reference, candidate) | Self::Integer(reference, candidate, _) => {
                (reference[position], candidate[position])
            }
        }
    }
}

/// Reads tiles of two tensors of the same dtype and shape. Each thread has its own.
pub(crate) struct TileReader<'a> {
    dtype: DType,
    reference: Side<'a>,
    candidate: Side<'a>,
    widened: [AlignedBytes; 3],
}

impl<'a> TileReader<'a> {
    /// A reader for tiles of at most `tile` elements.
    pub(crate) fn new(
        reference: &'a TensorView<'a>,
        candidate: &'a TensorView<'a>,
        tile: usize,
    ) -> Self {
        let dtype = reference.dtype();
        let widened_size = match dtype {
            DType::F32 | DType::F64 => 0,
            _ => tile * 8,
        };
        Self {
            dtype,
            reference: Side::new(reference, tile),
            candidate: Side::new(candidate, tile),
            widened: [(); 3].map(|()| AlignedBytes::zeroed(widened_size)),
        }
    }

    /// The `len` pairs from row-major position `first` on.
    pub(crate) fn tile(&mut self, first: usize, len: usize) -> Tile<'_> {
        let reference = self.reference.bytes(first, len);
        let candidate = self.candidate.bytes(first, len);
        let values = widen(self.dtype, reference, candidate, &mut self.widened);
        Tile { dtype: self.dtype, reference, candidate, values }
    }
}

/// One tensor, and room for a tile of it where its memory cannot be read in place.
struct Side<'a> {
    view: &'a TensorView<'a>,
    in_place: Option<&'a [u8]>,
    copy: AlignedBytes,
}

impl<'a> Side<'a> {
    fn new(view: &'a TensorView<'a>, tile: usize) -> Self {
        let size = view.dtype().size();
        let aligned = |bytes: &&[u8]| bytes.as_ptr().addr().is_multiple_of(size);
        let in_place = view.contiguous_bytes().filter(aligned);
        let room = if in_place.is_some() { 0 } else { tile * size };
        Self { view, in_place, copy: AlignedBytes::zeroed(room) }
    }

    fn bytes(&mut self, first: usize, len: usize) -> &[u8] {
        let size = self.view.dtype().size();
        if let Some(bytes) = self.in_place {
            return &bytes[first * size..(first + len) * size];
        }
        let target = &mut self.copy[..len * size];
        self.view.copy_elements(first, target);
        target
    }
}

fn widen<'a>(
    dtype: DType,
    reference: &'a [u8],
    candidate: &'a [u8],
    room: &'a mut [AlignedBytes; 3],
) -> Values<'a> {
    match dtype {
        DType::F32 => Values::Single(elements(reference), elements(candidate)),
        DType::F64 => Values::Double(elements(reference), elements(candidate)),
        DType::F16 => widen_half::<f16>(reference, candidate, room),
        DType::BF16 => widen_half::<bf16>(reference, candidate, room),
        DType::I8 => widen_integer::<i8>(reference, candidate, room),
        DType::I16 => widen_integer::<i16>(reference, candidate, room),
        DType::I32 => widen_integer::<i32>(reference, candidate, room),
        DType::I64 => widen_integer::<i64>(reference, candidate, room),
        DType::U8 | DType::Bool => widen_integer::<u8>(reference, candidate, room),
        DType::U16 => widen_integer::<u16>(reference, candidate, room),
        DType::U32 => widen_integer::<u32>(reference, candidate, room),
        DType::U64 => widen_integer::<u64>(reference, candidate, room),
    }
}

fn widen_half<'a, T: Plain>(
    reference: &[u8],
    candidate: &[u8],
    room: &'a mut [AlignedBytes; 3],
) -> Values<'a>
where
    [T]: HalfFloatSliceExt,
{
    let [wide_reference, wide_candidate, _] = room;
    let convert = |narrow: &[u8], wide: &'a mut AlignedBytes| -> &'a [f32] {
        let narrow = elements::<T>(narrow);
        let wide = &mut elements_mut(wide)[..narrow.len()];
        narrow.convert_to_f32_slice(wide);
        wide
    };
    Values::Single(convert(reference, wide_reference), convert(candidate, wide_candidate))
}

fn widen_integer<'a, T: Integer>(
    reference: &[u8],
    candidate: &[u8],
    room: &'a mut [AlignedBytes; 3],
) -> Values<'a> {
    let (reference, candidate) = (elements::<T>(reference), elements::<T>(candidate));
    let [wide_reference, wide_candidate, difference] =
        room.each_mut().map(|bytes| &mut elements_mut::<f64>(bytes)[..reference.len()]);
    for (index, (&left, &right)) in reference.iter().zip(candidate).enumerate() {
        wide_reference[index] = left.to_double();
        wide_candidate[index] = right.to_double();
        difference[index] = left.distance(right);
    }
    Values::Integer(wide_reference, wide_candidate, difference)
}

/// A number that every bit pattern of its size is a valid value of.
///
/// # Safety
/// There is no padding and no invalid bit pattern.
pub(crate) unsafe trait Plain: Copy {}

trait Integer: Plain {
    fn to_double(self) -> f64;
    /// `|self - other|`, exact until it becomes a float64.
    fn distance(self, other: Self) -> f64;
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: a plain number.
            unsafe impl Plain for $type {}
        )*
    };
}
plain!(f16, bf16, f32, f64);

macro_rules! integers {
    ($($type:ty),*) => {
        $(
            plain!($type);
            impl Integer for $type {
                #[inline]
                #[allow(clippy::cast_lossless, clippy::allow_attributes, reason = "for each width")]
                fn to_double(self) -> f64 {
                    self as f64
                }

                #[inline]
                #[allow(clippy::cast_lossless, clippy::allow_attributes, reason = "for each width")]
                fn distance(self, other: Self) -> f64 {
                    self.abs_diff(other) as f64
                }
            }
        )*
    };
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Bytes as elements.
///
/// # Panics
/// When the bytes are not aligned for `T`; [`Side`] sees to it.
pub(crate) fn elements<T: Plain>(bytes: &[u8]) -> &[T] {
    assert!(bytes.as_ptr().cast::<T>().is_aligned(), "tiles are aligned for their dtype");
    // SAFETY: aligned, as many elements as fit, and any bits make a valid `T`.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
}

fn elements_mut<T: Plain>(bytes: &mut [u8]) -> &mut [T] {
    assert!(bytes.as_ptr().cast::<T>().is_aligned(), "scratch is aligned for every dtype");
    let len = bytes.len() / size_of::<T>();
    // SAFETY: as in `elements`; the borrow is exclusive and any bits make valid bytes.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) }
}
