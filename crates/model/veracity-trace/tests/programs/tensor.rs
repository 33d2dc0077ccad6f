//! Tensors of the machine: a storage and a geometry.

use veracity_trace::Geometry;

/// A tensor on a storage of the machine.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) storage: usize,
    pub(crate) geometry: Geometry,
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "s{}{:?}", self.storage, positions(&self.geometry))
    }
}

pub(crate) fn geometry(offset: usize, extents: &[(usize, usize)]) -> Geometry {
    Geometry {
        offset: offset as u64,
        sizes: extents.iter().map(|extent| extent.0 as u64).collect(),
        strides: extents
            .iter()
            .map(|extent| i64::try_from(extent.1).expect("small tensors"))
            .collect(),
        element: 0,
    }
}

/// The positions of all elements, in logical order.
pub(crate) fn positions(geometry: &Geometry) -> Vec<usize> {
    let mut positions = vec![usize::try_from(geometry.offset).expect("small tensors")];
    for (size, stride) in geometry.sizes.iter().zip(&geometry.strides) {
        let (size, stride) = (
            usize::try_from(*size).expect("small tensors"),
            usize::try_from(*stride).expect("small tensors"),
        );
        positions = positions
            .iter()
            .flat_map(|start| (0..size).map(move |step| start + step * stride))
            .collect();
    }
    positions
}

/// Whether no position appears twice: such a tensor may be written.
pub(crate) fn is_injective(geometry: &Geometry) -> bool {
    let mut all = positions(geometry);
    all.sort_unstable();
    all.windows(2).all(|pair| pair[0] != pair[1])
}

/// Any tensor on a storage of `len` elements.
pub(crate) fn anywhere(len: usize, choice: [u8; 3]) -> Geometry {
    let [kind, offset, size] = choice.map(usize::from);
    let offset = offset % len;
    let room = len - offset;
    match kind % 6 {
        0 => geometry(0, &[(len, 1)]),
        1 => geometry(offset, &[(1 + size % room, 1)]),
        2 => geometry(offset, &[(room.div_ceil(2), 2)]),
        3 if room >= 2 => geometry(offset, &[(2, room / 2), (room / 2, 1)]),
        4 if room >= 2 => geometry(offset, &[(room / 2, 1), (2, room / 2)]),
        5 => geometry(offset, &[(2, 0), (1 + size % room, 1)]),
        _ => geometry(offset, &[]),
    }
}

/// A tensor inside another, as a view operation makes it.
pub(crate) fn inside(outer: &Geometry, choice: [u8; 2]) -> Geometry {
    let mut inner = outer.clone();
    let [kind, amount] = choice.map(u64::from);
    let Some(size) = inner.sizes.first().copied() else { return inner };
    let stride = u64::try_from(inner.strides[0]).expect("small tensors");
    match kind % 4 {
        0 => {
            inner.offset += amount % size * stride;
            inner.sizes.remove(0);
            inner.strides.remove(0);
        }
        1 => {
            let start = amount % size;
            inner.offset += start * stride;
            inner.sizes[0] = size - start;
        }
        2 => {
            inner.sizes[0] = size.div_ceil(2);
            inner.strides[0] *= 2;
        }
        _ => {
            inner.sizes.reverse();
            inner.strides.reverse();
        }
    }
    inner
}
