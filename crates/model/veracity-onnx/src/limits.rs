//! What a model may cost, found out before any of it is decoded.
//!
//! Two bytes on the wire can become an empty attribute of more than a thousand bytes in memory. So
//! the structure is walked first, without allocating, and what it will take is added up. Weights
//! are skipped in one step, which makes this a matter of microseconds for honest models.

use veracity_diag::{Diagnostic, Refusal, codes};

use crate::generated::onnx as proto;

/// Most bytes a protobuf file may have; every ONNX reader stops here.
pub(crate) const MAX_FILE_BYTES: u64 = i32::MAX as u64;

/// Subgraphs that may lie within each other. protobuf readers stop at 100 nested messages, and a
/// subgraph takes three.
pub(crate) const MAX_SUBGRAPH_DEPTH: usize = 30;

/// Most memory that the decoded structure may take, weights aside.
const MAX_DECODED_BYTES: usize = 2 << 30;

/// Most messages within each other; the decoder has the same limit.
const MAX_MESSAGE_DEPTH: usize = 100;

/// Refuses bytes that would take too much memory to decode, or that are no protobuf at all.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Refusal> {
    check_kind(bytes, Kind::Model)
}

/// [`check`] for the bytes of one node.
pub(crate) fn check_node(bytes: &[u8]) -> Result<(), Refusal> {
    check_kind(bytes, Kind::Node)
}

fn check_kind(bytes: &[u8], kind: Kind) -> Result<(), Refusal> {
    let mut scan = Scan { budget: MAX_DECODED_BYTES };
    scan.message(bytes, kind, MAX_MESSAGE_DEPTH)
        .map_err(|problem| Diagnostic::error(codes::ONNX_MALFORMED, problem).into())
}

/// The messages that are walked into.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    TrainingInfo,
    Function,
    /// Key and value.
    Entry,
}

/// What a field that has a length holds.
#[derive(Clone, Copy)]
enum Content {
    /// A message that is walked into.
    Message(Kind),
    /// Messages so small that up to 64 bytes of memory are assumed for each byte.
    SmallMessages,
    /// Elements that take as much memory as they have bytes, or none.
    Weights,
    /// Text, or integers of which each byte can become eight.
    Scalars,
}

impl Kind {
    /// Memory of one such message without what hangs on it.
    fn size(self) -> usize {
        match self {
            Self::Model => size_of::<proto::ModelProto>(),
            Self::Graph => size_of::<proto::GraphProto>(),
            Self::Node => size_of::<proto::NodeProto>(),
            Self::Attribute => size_of::<proto::AttributeProto>(),
            Self::Tensor => size_of::<proto::TensorProto>(),
            Self::SparseTensor => size_of::<proto::SparseTensorProto>(),
            Self::ValueInfo => size_of::<proto::ValueInfoProto>(),
            Self::TrainingInfo => size_of::<proto::TrainingInfoProto>(),
            Self::Function => size_of::<proto::FunctionProto>(),
            Self::Entry => size_of::<proto::StringStringEntryProto>(),
        }
    }

    /// What the field of that number holds; the numbers are those of `onnx.proto`.
    fn content(self, field: u64) -> Content {
        use Content::{Message, Scalars, SmallMessages, Weights};
        match (self, field) {
            (Self::Model, 7) | (Self::TrainingInfo, 1 | 2) | (Self::Attribute, 6 | 11) => {
                Message(Self::Graph)
            }
            (Self::Model, 20) => Message(Self::TrainingInfo),
            (Self::Model, 25) => Message(Self::Function),
            (Self::Graph, 1) | (Self::Function, 7) => Message(Self::Node),
            (Self::Node, 5) | (Self::Function, 11) => Message(Self::Attribute),
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::SparseTensor, 1 | 2) => {
                Message(Self::Tensor)
            }
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Message(Self::SparseTensor),
            (Self::Graph, 11..=13) | (Self::Function, 12) => Message(Self::ValueInfo),
            (Self::Model | Self::Function, 14)
            | (Self::Graph, 16)
            | (Self::Node, 9)
            | (Self::ValueInfo, 4)
            | (Self::Tensor, 13 | 16) => Message(Self::Entry),
            (Self::Model, 8 | 26)
            | (Self::Graph | Self::Attribute, 14)
            | (Self::Attribute, 15)
            | (Self::Node, 10)
            | (Self::Function, 9)
            | (Self::ValueInfo, 2)
            | (Self::TrainingInfo, 3 | 4) => SmallMessages,
            (Self::Tensor, 4 | 9 | 10) => Weights,
            _ => Scalars,
        }
    }
}

/// Adds up memory while it walks.
struct Scan {
    budget: usize,
}

impl Scan {
    fn message(&mut self, bytes: &[u8], kind: Kind, depth: usize) -> Result<(), &'static str> {
        let depth = depth.checked_sub(1).ok_or("messages nest too deep")?;
        // Lists grow by doubling.
        self.spend(kind.size(), 2)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let tag = varint(&mut rest)?;
            match tag & 7 {
                0 => {
                    varint(&mut rest)?;
                    self.spend(8, 2)?;
                }
                1 => {
                    take(&mut rest, 8)?;
                    self.spend(8, 2)?;
                }
                5 => {
                    take(&mut rest, 4)?;
                    self.spend(4, 2)?;
                }
                2 => {
                    let length = varint(&mut rest)?;
                    let field = take(&mut rest, length)?;
                    self.field(field, kind.content(tag >> 3), depth)?;
                }
                _ => return Err("not a protobuf message: a field has an unknown kind"),
            }
        }
        Ok(())
    }

    fn field(&mut self, bytes: &[u8], content: Content, depth: usize) -> Result<(), &'static str> {
        match content {
            Content::Message(kind) => self.message(bytes, kind, depth),
            Content::SmallMessages => self.spend(bytes.len(), 64),
            Content::Weights => self.spend(bytes.len(), 1),
            Content::Scalars => self.spend(size_of::<String>() + bytes.len(), 8),
        }
    }

    fn spend(&mut self, bytes: usize, factor: usize) -> Result<(), &'static str> {
        self.budget = bytes
            .checked_mul(factor)
            .and_then(|cost| self.budget.checked_sub(cost))
            .ok_or("the graph would take more than 2 GiB of memory")?;
        Ok(())
    }
}

const CUT_OFF: &str = "the data ends in the middle of a field";

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8], &'static str> {
    let (head, tail) =
        usize::try_from(length).ok().and_then(|at| rest.split_at_checked(at)).ok_or(CUT_OFF)?;
    *rest = tail;
    Ok(head)
}

/// Reads a number of 7 bits a byte, lowest first.
fn varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first().ok_or(CUT_OFF)?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number has more than 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `content` as the field of that number.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        bytes.push(u8::try_from(length).unwrap());
        bytes.extend_from_slice(content);
        bytes
    }

    fn problem(bytes: &[u8]) -> String {
        let refusal = check(bytes).expect_err("must be refused");
        assert_eq!(refusal.first_error().code, codes::ONNX_MALFORMED);
        refusal.first_error().message.clone()
    }

    #[test]
    fn small_files_cannot_ask_for_much_memory() {
        let attributes = field(5, &[]).repeat(2 << 20);
        let bomb = field(7, &field(1, &attributes));
        assert!(bomb.len() < 5 << 20);
        assert!(problem(&bomb).contains("2 GiB"));
    }

    #[test]
    fn weights_cost_nothing_beyond_their_bytes() {
        let tensor = field(9, &vec![0; 50 << 20]);
        check(&field(7, &field(5, &tensor))).unwrap();
    }

    #[test]
    fn nesting_has_an_end() {
        let mut graph = Vec::new();
        for _ in 0..40 {
            graph = field(1, &field(5, &field(6, &graph)));
        }
        assert!(problem(&field(7, &graph)).contains("deep"));
    }

    #[test]
    fn bytes_that_are_no_protobuf_are_refused() {
        for (bytes, expected) in [
            (&[0x3a, 5, 1][..], "middle of a field"),
            (&[0x80; 11], "64 bits"),
            (b"\x0bgroup", "unknown kind"),
            (&[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "middle of a field"),
        ] {
            assert!(problem(bytes).contains(expected), "{bytes:?}: {}", problem(bytes));
        }
    }
}
