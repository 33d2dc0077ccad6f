//! Large constants as tensors, made once for all models that they are handed to.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use veracity_onnx::Weight;
use veracity_tensor::Tensor;

/// Constants by the memory that they stand in, which is held so that nothing else comes there.
#[derive(Default)]
pub(super) struct Constants {
    known: HashMap<(*const u8, usize), (Bytes, Arc<Tensor>)>,
    bytes: usize,
    most: usize,
}

impl Constants {
    /// None yet; at most about so many bytes are kept.
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// A constant as a tensor; `None` when its elements are not at hand.
    pub(super) fn tensor(&mut self, weight: &Weight) -> Option<Arc<Tensor>> {
        let Some(raw) = weight.raw() else { return weight.tensor().map(Arc::new) };
        let place = (raw.as_ptr(), raw.len());
        if let Some((_, known)) = self.known.get(&place)
            && known.shape().dims() == weight.dims()
            && Some(known.dtype()) == weight.dtype()
        {
            return Some(known.clone());
        }
        let made = Arc::new(weight.tensor()?);
        if self.bytes.saturating_add(raw.len()) > self.most {
            self.known.clear();
            self.bytes = 0;
        }
        if self.known.insert(place, (raw.clone(), made.clone())).is_none() {
            self.bytes += raw.len();
        }
        Some(made)
    }
}
