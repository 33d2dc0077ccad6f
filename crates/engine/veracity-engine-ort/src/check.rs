//! Holds the ports that a bundle declares against those of the model.

use std::ffi::CString;

use veracity_diag::{Code, Diagnostic, Place, Reporter, Result, codes, nearest};
use veracity_engine::{Port, Ports};

use crate::model_port::{ModelPort, ModelPorts};

/// Names of inputs and of outputs.
pub(crate) type PortNames = (Vec<CString>, Vec<CString>);

/// The names of the declared inputs and outputs, ready for calls into the library. Refused when
/// the model cannot be used as declared, with everything that differs.
pub(crate) fn names_for_calls(declared: &Ports, model: &ModelPorts) -> Result<PortNames> {
    let mut reporter = Reporter::new();
    let accepted: Vec<&ModelPort> = model.inputs.iter().chain(&model.optional_inputs).collect();
    let fetchable: Vec<&ModelPort> = model.outputs.iter().collect();
    let inputs = match_side("input", &declared.inputs, &accepted, &mut reporter);
    let outputs = match_side("output", &declared.outputs, &fetchable, &mut reporter);
    for port in &model.inputs {
        if !declared.inputs.iter().any(|declared| is_named(port, declared)) {
            let name = port.name.to_string_lossy();
            let message =
                format!("the model needs an input {name:?} that the bundle does not feed");
            reporter.report(finding(codes::ONNX_INPUT_UNDECLARED, &name, message));
        }
    }
    reporter.finish()?;
    Ok((inputs, outputs))
}

fn match_side(
    side: &str,
    declared: &[Port],
    model: &[&ModelPort],
    reporter: &mut Reporter,
) -> Vec<CString> {
    let mut names: Vec<CString> = Vec::new();
    for port in declared {
        let Some(name) = reporter.absorb(match_port(side, port, model)) else {
            continue;
        };
        if names.contains(name) {
            let message = format!("the {side} {:?} is declared twice", port.name);
            reporter.report(finding(codes::DUPLICATE_PORT, &port.name, message));
        }
        names.push(name.clone());
    }
    names
}

/// The name of the model's port that was declared.
fn match_port<'a>(side: &str, port: &Port, model: &[&'a ModelPort]) -> Result<&'a CString> {
    let Some(found) = model.iter().find(|candidate| is_named(candidate, port)) else {
        let message = format!("the model has no {side} {:?}", port.name);
        let names = model.iter().map(|port| port.name.to_string_lossy()).collect::<Vec<_>>();
        let hint = match nearest(&port.name, names.iter().map(AsRef::as_ref)) {
            Some(name) => format!("did you mean {name:?}?"),
            None => format!("it has {}", list_of(&names)),
        };
        return Err(finding(codes::ONNX_PORT_MISSING, &port.name, message).hint(hint).into());
    };
    if !found.kind.fits(port.dtype, &port.shape) {
        let message = format!(
            "the {side} {:?} is {} {} in the bundle, {} in the model",
            port.name, port.dtype, port.shape, found.kind
        );
        return Err(finding(codes::ONNX_PORT_MISMATCH, &port.name, message).into());
    }
    Ok(&found.name)
}

/// The names, as far as a hint has room for them.
fn list_of<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("{:?}", name.as_ref())).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{} and {} more", shown.join(", "), count - SHOWN),
        _ => shown.join(", "),
    }
}

fn is_named(model: &ModelPort, declared: &Port) -> bool {
    model.name.to_bytes() == declared.name.as_bytes()
}

/// The caller knows the node and adds it.
fn finding(code: Code, port: &str, message: String) -> Diagnostic {
    let place = Place { port: Some(port.to_owned()), ..Place::default() };
    Diagnostic::error(code, message).at(place)
}

#[cfg(test)]
mod tests {
    use veracity_tensor::DType;

    use super::*;
    use crate::model_port::Kind;

    fn tensor(name: &str, dtype: DType, dims: &[i64]) -> ModelPort {
        let dims = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
        let kind = Kind::Tensor { dtype: Some(dtype), dims };
        ModelPort { name: CString::new(name).unwrap(), kind }
    }

    fn model() -> ModelPorts {
        ModelPorts {
            inputs: vec![
                tensor("observation", DType::F32, &[-1, 48]),
                tensor("mask", DType::Bool, &[4]),
            ],
            optional_inputs: vec![tensor("weight", DType::F32, &[2])],
            outputs: vec![
                tensor("action", DType::F32, &[1, 12]),
                ModelPort { name: c"list".to_owned(), kind: Kind::Other },
                tensor("unused", DType::F32, &[1]),
            ],
        }
    }

    fn inputs() -> Vec<Port> {
        vec![Port::new("observation", DType::F32, [1, 48]), Port::new("mask", DType::Bool, [4])]
    }

    #[test]
    fn a_declaration_may_leave_out_outputs_and_optional_inputs_and_has_its_own_order() {
        let mut inputs = inputs();
        inputs.reverse();
        let outputs = vec![Port::new("action", DType::F32, [1, 12])];
        let (inputs, outputs) = names_for_calls(&Ports { inputs, outputs }, &model()).unwrap();
        assert_eq!(inputs, [c"mask".to_owned(), c"observation".to_owned()]);
        assert_eq!(outputs, [c"action".to_owned()]);
    }

    #[test]
    fn each_difference_is_refused_with_its_code_and_port() {
        let f32_port = |name: &str, dims: &[usize]| {
            Port::new(name, DType::F32, veracity_tensor::Shape::new(dims).unwrap())
        };
        for (outputs, code, port) in [
            (vec![f32_port("actoin", &[1, 12])], codes::ONNX_PORT_MISSING, "actoin"),
            (vec![f32_port("nul\0", &[1])], codes::ONNX_PORT_MISSING, "nul\0"),
            (vec![f32_port("action", &[1, 13])], codes::ONNX_PORT_MISMATCH, "action"),
            (vec![f32_port("action", &[12])], codes::ONNX_PORT_MISMATCH, "action"),
            (vec![Port::new("action", DType::F64, [1, 12])], codes::ONNX_PORT_MISMATCH, "action"),
            (vec![f32_port("list", &[1])], codes::ONNX_PORT_MISMATCH, "list"),
            (
                vec![f32_port("action", &[1, 12]), f32_port("action", &[1, 12])],
                codes::DUPLICATE_PORT,
                "action",
            ),
        ] {
            let refusal =
                names_for_calls(&Ports { inputs: inputs(), outputs }, &model()).unwrap_err();
            let [problem] = refusal.diagnostics() else { panic!("{refusal:?}") };
            assert_eq!((problem.code, problem.place.port.as_deref()), (code, Some(port)));
        }
    }

    #[test]
    fn all_differences_are_in_one_refusal() {
        let inputs = vec![Port::new("observations", DType::F32, [1, 48])];
        let outputs = vec![Port::new("action", DType::I64, [1, 12])];
        let refusal = names_for_calls(&Ports { inputs, outputs }, &model()).unwrap_err();
        let codes: Vec<_> = refusal.diagnostics().iter().map(|problem| problem.code).collect();
        assert_eq!(
            codes,
            [
                codes::ONNX_PORT_MISSING,
                codes::ONNX_PORT_MISMATCH,
                codes::ONNX_INPUT_UNDECLARED,
                codes::ONNX_INPUT_UNDECLARED,
            ]
        );
        assert_eq!(refusal.diagnostics()[0].hints, ["did you mean \"observation\"?"]);
    }
}
