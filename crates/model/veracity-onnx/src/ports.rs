//! Whether a model has the ports that a bundle names.

use veracity_diag::{Diagnostic, Place, Reporter, Result, codes, nearest};
use veracity_tensor::{DType, Shape};

use crate::{Model, ValueInfo};

/// A port as a bundle declares it: name, dtype, shape.
pub type DeclaredPort<'a> = (&'a str, DType, &'a Shape);

/// Refuses a model that differs from what a bundle declares, with every difference: a port that
/// is missing or of another dtype or shape, and an input that the bundle does not feed. Outputs
/// that the bundle does not use are fine. What the model leaves open is taken to fit.
pub fn check_ports(
    model: &Model,
    inputs: &[DeclaredPort<'_>],
    outputs: &[DeclaredPort<'_>],
) -> Result<()> {
    let mut reporter = Reporter::new();
    // An input that has a value already need not be declared, but may be.
    let accepted: Vec<ValueInfo> = model.graph().input.iter().map(ValueInfo::from_proto).collect();
    for (side, declared, actual) in
        [("input", inputs, &accepted), ("output", outputs, &model.outputs())]
    {
        for port in declared {
            let checked = check_port(side, *port, actual);
            reporter.absorb(checked.map_err(|problem| problem.within(&model.place())));
        }
    }
    for input in model.inputs() {
        if !inputs.iter().any(|(name, ..)| *name == input.name) {
            let message = format!(
                "the model needs input {:?} ({input}), which the bundle does not name",
                input.name
            );
            let place = Place { port: Some(input.name), ..model.place() };
            reporter.report(Diagnostic::error(codes::ONNX_INPUT_UNDECLARED, message).at(place));
        }
    }
    reporter.finish().map(drop)
}

fn check_port(
    side: &str,
    (name, dtype, shape): DeclaredPort<'_>,
    actual: &[ValueInfo],
) -> Result<()> {
    let place = Place { port: Some(name.to_owned()), ..Place::default() };
    let Some(found) = actual.iter().find(|value| value.name == name) else {
        let message = format!("the model has no {side} {name:?}");
        let missing = Diagnostic::error(codes::ONNX_PORT_MISSING, message).at(place);
        let nearest = nearest(name, actual.iter().map(|value| value.name.as_str()));
        return Err(match nearest {
            Some(other) => missing.hint(format!("the model has {side} {other:?}")),
            None => missing,
        }
        .into());
    };
    let dtype_fits = match found.dtype {
        Some(actual) => actual == dtype,
        None => found.type_name == ValueInfo::UNTYPED,
    };
    let shape_fits = found.dims.as_ref().is_none_or(|dims| {
        dims.len() == shape.rank() && dims.iter().zip(shape.dims()).all(|(dim, &n)| dim.admits(n))
    });
    if dtype_fits && shape_fits {
        return Ok(());
    }
    let message =
        format!("{side} {name:?} is {found} in the model and {dtype} {shape} in the bundle");
    Err(Diagnostic::error(codes::ONNX_PORT_MISMATCH, message).at(place).into())
}

#[cfg(test)]
mod tests {
    use veracity_tensor::Tensor;

    use super::*;
    use crate::{Dim, GraphBuilder, Node};

    fn model() -> Model {
        GraphBuilder::new("policy", 18)
            .input("obs", DType::F32, [Dim::from("batch"), Dim::from(48)])
            .input("hidden", DType::F32, [1, 64])
            .node(Node::new("MatMul", ["obs", "hidden"], ["actions"]))
            .output("actions", DType::F32, [Dim::Unknown, Dim::from(12)])
            .finish()
            .unwrap()
    }

    fn codes_of(
        inputs: &[(&str, DType, [usize; 2])],
        output: (&str, DType, &Shape),
    ) -> Vec<String> {
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.2.into()).collect();
        let inputs: Vec<DeclaredPort<'_>> = inputs
            .iter()
            .zip(&shapes)
            .map(|((name, dtype, _), shape)| (*name, *dtype, shape))
            .collect();
        match check_ports(&model(), &inputs, &[output]) {
            Ok(()) => Vec::new(),
            Err(refusal) => refusal.diagnostics().iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_declared_size_fits_an_open_axis() {
        let inputs = [("hidden", DType::F32, [1, 64]), ("obs", DType::F32, [1, 48])];
        let none: Vec<String> = Vec::new();
        assert_eq!(codes_of(&inputs, ("actions", DType::F32, &[1, 12].into())), none);
        assert_eq!(codes_of(&inputs, ("actions", DType::F32, &[7, 12].into())), none);
    }

    #[test]
    fn an_input_that_has_a_value_may_be_declared_or_not() {
        let weights = Tensor::zeros(DType::F32, Shape::from([2]));
        let model = GraphBuilder::new("g", 18)
            .input("w", DType::F32, [2])
            .initializer("w", &weights)
            .finish()
            .unwrap();
        assert!(check_ports(&model, &[("w", DType::F32, weights.shape())], &[]).is_ok());
        assert!(check_ports(&model, &[], &[]).is_ok());
        assert!(check_ports(&model, &[("w", DType::F64, weights.shape())], &[]).is_err());
    }

    #[test]
    fn every_difference_is_reported() {
        let inputs = [("Obs_", DType::F32, [1, 48]), ("hidden", DType::F64, [1, 64])];
        assert_eq!(
            codes_of(&inputs, ("actions", DType::F32, &[12].into())),
            [
                r#"Obs_: error[VER0502]: the model has no input "Obs_""#,
                r#"hidden: error[VER0503]: input "hidden" is float32 [1, 64] in the model and float64 [1, 64] in the bundle"#,
                r#"actions: error[VER0503]: output "actions" is float32 [?, 12] in the model and float32 [12] in the bundle"#,
                r#"obs: error[VER0506]: the model needs input "obs" (float32 [batch, 48]), which the bundle does not name"#,
            ]
        );
    }

    #[test]
    fn a_value_of_unknown_type_fits_and_one_of_a_foreign_type_does_not() {
        let shape = Shape::from([3]);
        let value = |type_name| ValueInfo { name: "x".into(), dtype: None, type_name, dims: None };
        assert!(check_port("input", ("x", DType::F32, &shape), &[value("untyped")]).is_ok());
        assert!(check_port("input", ("x", DType::F32, &shape), &[value("STRING")]).is_err());
    }
}
