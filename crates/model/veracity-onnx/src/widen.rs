//! Takes narrow numbers out of a graph: half precision, and detours over integers.

use std::collections::HashMap;

use half::{bf16, f16};
use veracity_tensor::{DType, Tensor};

use crate::Model;
use crate::build::tensor_proto;
use crate::generated::onnx::{
    GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, type_proto,
};
use crate::substitute::{constants_of, decoded};
use crate::value::{from_onnx, to_onnx};

/// Operators that compute with, or turn numbers into, integers of few bits.
const QUANTIZED: [&str; 8] = [
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "QLinearConv",
    "QLinearMatMul",
    "ConvInteger",
    "MatMulInteger",
    "MatMulNBits",
];

impl Model {
    /// Where narrow numbers occur in the main graph, for people; empty when they do not.
    pub fn narrow_parts(&self) -> Vec<String> {
        let graph = self.graph();
        let mut found: Vec<String> = Vec::new();
        let mut add = |text: String| {
            if !found.contains(&text) {
                found.push(text);
            }
        };
        for node in &graph.node {
            if QUANTIZED.contains(&node.op_type()) {
                add(node.op_type().to_owned());
            }
            if let Some(narrow) = cast_target(node).filter(|dtype| is_narrow(*dtype)) {
                add(format!("Cast to {narrow}"));
            }
        }
        let declared = graph.input.iter().chain(&graph.output).filter_map(declared_dtype);
        let held = graph.initializer.iter().filter_map(|tensor| from_onnx(tensor.data_type()));
        let halves = declared.chain(held).filter(|dtype| is_half(*dtype));
        halves.for_each(|dtype| add(dtype.to_string()));
        found
    }

    /// The model in float32: values and weights in half precision become float32, casts to half
    /// precision or few bits are left out, and quantizing what is dequantized again is left out.
    /// Inputs keep their names and take float32.
    #[must_use]
    pub fn widened(&self) -> Self {
        self.changed(|graph| {
            bypass_quantization(graph);
            graph.node.iter_mut().for_each(widen_cast);
            constants_of(graph).for_each(widen_constant);
            let inside = graph.value_info.iter_mut();
            inside.chain(&mut graph.input).chain(&mut graph.output).for_each(widen_declared);
        })
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

fn is_narrow(dtype: DType) -> bool {
    is_half(dtype) || matches!(dtype, DType::I8 | DType::U8)
}

fn cast_target(node: &NodeProto) -> Option<DType> {
    let to = node.attribute.iter().find(|one| one.name() == "to" && node.op_type() == "Cast")?;
    from_onnx(to.i?.try_into().ok()?)
}

/// Lets what dequantizes a quantized value hand on the value that was quantized.
fn bypass_quantization(graph: &mut GraphProto) {
    let quantized: HashMap<String, String> = graph
        .node
        .iter()
        .filter(|node| node.op_type() == "QuantizeLinear")
        .filter_map(|node| Some((node.output.first()?.clone(), node.input.first()?.clone())))
        .collect();
    for node in graph.node.iter_mut().filter(|node| node.op_type() == "DequantizeLinear") {
        if let Some(before) = node.input.first().and_then(|input| quantized.get(input)) {
            node.input = vec![before.clone()];
            node.op_type = Some("Identity".to_owned());
            node.attribute.clear();
        }
    }
}

fn widen_cast(node: &mut NodeProto) {
    if cast_target(node).is_some_and(is_narrow)
        && let Some(to) = node.attribute.iter_mut().find(|one| one.name() == "to")
    {
        to.i = Some(to_onnx(DType::F32).into());
    }
}

fn widen_constant(tensor: &mut TensorProto) {
    let wide = match decoded(tensor) {
        Some(narrow) if is_half(narrow.dtype()) => float32(&narrow),
        _ => return,
    };
    if let Some(wide) = wide {
        *tensor = tensor_proto(tensor.name.take(), &wide);
    }
}

/// A tensor of half precision in float32, which holds all of its values.
fn float32(tensor: &Tensor) -> Option<Tensor> {
    let values: Vec<f32> = match tensor.dtype() {
        DType::F16 => tensor.as_slice::<f16>()?.iter().map(|value| value.to_f32()).collect(),
        _ => tensor.as_slice::<bf16>()?.iter().map(|value| value.to_f32()).collect(),
    };
    Tensor::from_slice(tensor.shape().clone(), &values).ok()
}

fn declared_dtype(info: &ValueInfoProto) -> Option<DType> {
    match info.r#type.as_ref()?.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => from_onnx(tensor.elem_type()),
        _ => None,
    }
}

fn widen_declared(info: &mut ValueInfoProto) {
    if declared_dtype(info).is_some_and(is_half)
        && let Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), .. }) =
            info.r#type.as_mut()
    {
        tensor.elem_type = Some(to_onnx(DType::F32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::text;
    use crate::{GraphBuilder, Node};

    #[test]
    fn half_precision_becomes_float32_and_quantizing_is_left_out() {
        let half = Tensor::from_slice([2], &[f16::from_f32(0.5), f16::from_f32(-2.0)]).unwrap();
        let scale = Tensor::from_slice([1], &[0.1_f32]).unwrap();
        let model = GraphBuilder::new("graph", 20)
            .input("x", DType::F16, [2_usize])
            .initializer("w", &half)
            .initializer("scale", &scale)
            .node(Node::new("Mul", ["x", "w"], ["a"]))
            .node(Node::new("QuantizeLinear", ["a", "scale"], ["q"]))
            .node(Node::new("DequantizeLinear", ["q", "scale"], ["d"]))
            .node(Node::new("Cast", ["d"], ["y"]).int("to", 10))
            .output("y", DType::F16, [2_usize])
            .finish()
            .unwrap();
        let narrow = ["QuantizeLinear", "DequantizeLinear", "Cast to float16", "float16"];
        assert_eq!(model.narrow_parts(), narrow);
        let wide = model.widened();
        assert_eq!(wide.constant("w").unwrap().as_slice::<f32>(), Some(&[0.5, -2.0][..]));
        let lines = text(&wide);
        for line in ["input x: float32 [2]", "node d = Identity(a)", "output y: float32 [2]"] {
            assert!(lines.contains(line), "{line} is not in\n{lines}");
        }
        assert_eq!(wide.attributes(3)["to"].text(), "1");
    }

    #[test]
    fn a_graph_without_narrow_numbers_says_so_and_stays() {
        let model = GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [2_usize])
            .node(Node::new("Cast", ["x"], ["y"]).int("to", 11))
            .output("y", DType::F64, [2_usize])
            .finish()
            .unwrap();
        assert!(model.narrow_parts().is_empty());
        assert_eq!(text(&model.widened()), text(&model));
    }
}
