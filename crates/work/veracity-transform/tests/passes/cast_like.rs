//! `resolve-cast-like`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::DType;
use veracity_transform::passes::ResolveCastLike;

use crate::support::{holds, left_alone, lines};

fn model(like: Node, dtype: DType) -> Model {
    GraphBuilder::new("graph", 19)
        .input("x", DType::F32, [3_usize])
        .input("z", dtype, [1_usize])
        .node(like)
        .node(Node::new("CastLike", ["x", "like"], ["y"]).named("cast"))
        .output("y", dtype, [3_usize])
        .finish()
        .unwrap()
}

#[test]
fn a_type_that_is_known_is_written_down() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::I64, DType::I32, DType::Bool] {
        let like = Node::new("Identity", ["z"], ["like"]);
        let graph = holds(&ResolveCastLike, &model(like, dtype));
        assert_eq!(lines(&graph)[1], "y = Cast(x)");
        let cast = graph.producer("y").unwrap().1;
        assert_eq!((cast.dtype_of("to"), cast.name()), (Some(dtype), "cast"));
    }
}

#[test]
fn a_type_that_is_not_known_is_left_alone() {
    let like = Node::new("Strange", ["z"], ["like"]).domain("com.example");
    left_alone(ResolveCastLike, &model(like, DType::F64), "the type of \"like\" is not known");
}
