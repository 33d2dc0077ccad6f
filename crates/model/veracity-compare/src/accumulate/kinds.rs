//! The three kinds of pairs, readable one by one and eight at a time.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use crate::simd::Simd;

/// Reference, candidate and absolute error.
pub(super) type Pair = (f64, f64, f64);

/// Pairs of one kind, readable one by one and eight at a time.
pub(super) trait Pairs: Copy {
    fn len(self) -> usize;
    fn pair(self, index: usize) -> Pair;
    /// The eight pairs of a chunk: reference, candidate, error.
    fn chunk<S: Simd>(self, simd: S, chunk: usize) -> [S::Lanes; 3];
}

#[derive(Clone, Copy)]
pub(super) struct Singles<'a>(pub(super) &'a [f32], pub(super) &'a [f32]);

#[derive(Clone, Copy)]
pub(super) struct Doubles<'a>(pub(super) &'a [f64], pub(super) &'a [f64]);

#[derive(Clone, Copy)]
pub(super) struct Integers<'a>(pub(super) &'a [f64], pub(super) &'a [f64], pub(super) &'a [f64]);

impl Pairs for Singles<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    fn pair(self, index: usize) -> Pair {
        let (reference, candidate) = (f64::from(self.0[index]), f64::from(self.1[index]));
        (reference, candidate, (candidate - reference).abs())
    }

    #[inline(always)]
    fn chunk<S: Simd>(self, simd: S, chunk: usize) -> [S::Lanes; 3] {
        let reference = simd.widen(&self.0.as_chunks().0[chunk]);
        let candidate = simd.widen(&self.1.as_chunks().0[chunk]);
        [reference, candidate, simd.abs(simd.sub(candidate, reference))]
    }
}

impl Pairs for Doubles<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    fn pair(self, index: usize) -> Pair {
        let (reference, candidate) = (self.0[index], self.1[index]);
        (reference, candidate, (candidate - reference).abs())
    }

    #[inline(always)]
    fn chunk<S: Simd>(self, simd: S, chunk: usize) -> [S::Lanes; 3] {
        let reference = simd.load(&self.0.as_chunks().0[chunk]);
        let candidate = simd.load(&self.1.as_chunks().0[chunk]);
        [reference, candidate, simd.abs(simd.sub(candidate, reference))]
    }
}

impl Pairs for Integers<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    fn pair(self, index: usize) -> Pair {
        (self.0[index], self.1[index], self.2[index])
    }

    #[inline(always)]
    fn chunk<S: Simd>(self, simd: S, chunk: usize) -> [S::Lanes; 3] {
        [self.0, self.1, self.2].map(|side| simd.load(&side.as_chunks().0[chunk]))
    }
}
