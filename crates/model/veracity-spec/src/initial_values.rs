//! First values of feedback inputs.

use std::collections::{BTreeMap, HashMap, HashSet};

use veracity_diag::{Diagnostic, Place, Reporter, Result, codes};
use veracity_tensor::{Tensor, file};

use crate::{Bundle, PortRef, PortSpec, Spec};

/// First values of feedback inputs, known to fit them.
#[derive(Debug, Default)]
pub struct InitialValues {
    /// The value of each feedback input that has one.
    pub values: BTreeMap<PortRef, Tensor>,
    /// Feedback inputs that have none and start from zeros, and values that nothing uses.
    pub warnings: Vec<Diagnostic>,
}

impl Bundle {
    /// Reads the first values of feedback inputs. Empty when the bundle names no file for them.
    pub fn initial_values(&self) -> Result<InitialValues> {
        let Some(path) = &self.spec().initial_values else {
            return Ok(InitialValues::default());
        };
        let place = self.places().initial_values();
        let tensors = path
            .resolve(self.root())
            .and_then(file::safetensors::read)
            .map_err(|refusal| refusal.within(&place))?;
        let inputs = Inputs::of(self.spec());
        let mut reporter = Reporter::new();
        let mut values = BTreeMap::new();
        for (name, tensor) in tensors {
            match inputs.check(&name, &tensor) {
                Ok(port) => drop(values.insert(port, tensor)),
                Err(diagnostic) => reporter.report(diagnostic.within(&place)),
            }
        }
        for edge in &self.spec().feedback_flow {
            if !values.contains_key(&edge.target) {
                let message =
                    format!("`{}` has no initial value and starts from zeros", edge.target);
                let warning = Diagnostic::warning(codes::INITIAL_VALUE_MISSING, message);
                reporter.report(warning.at(self.places().edge_into(&edge.target)));
            }
        }
        Ok(InitialValues { values, warnings: reporter.finish()? })
    }
}

/// The inputs of a bundle by name.
struct Inputs<'s> {
    ports: HashMap<PortRef, &'s PortSpec>,
    feedback: HashSet<&'s PortRef>,
}

impl<'s> Inputs<'s> {
    fn of(spec: &'s Spec) -> Self {
        let ports = spec.nodes.iter().flat_map(|node| {
            node.inputs.iter().map(|port| (PortRef::new(&node.name, &port.name), port))
        });
        let feedback = spec.feedback_flow.iter().map(|edge| &edge.target);
        Self { ports: ports.collect(), feedback: feedback.collect() }
    }

    /// The input that a value is for. LEAPP would put a value of any shape and dtype there.
    fn check(&self, name: &str, tensor: &Tensor) -> std::result::Result<PortRef, Box<Diagnostic>> {
        let message = |why: &str| format!("initial value {name:?} {why}");
        let Ok(port) = name.parse::<PortRef>() else {
            let message = message("is not named after an input, as `node/port`");
            return Err(Diagnostic::error(codes::INITIAL_VALUE_UNKNOWN, message).into());
        };
        let Some(spec) = self.ports.get(&port) else {
            let message = message("is for an input that does not exist");
            return Err(Diagnostic::error(codes::INITIAL_VALUE_UNKNOWN, message).into());
        };
        let place = Place::port(&port.node, &port.port);
        if spec.dtype != tensor.dtype() || spec.shape != *tensor.shape() {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            let message = format!(
                "the initial value of `{port}` is {dtype} {shape}, but the input is {} {}",
                spec.dtype, spec.shape
            );
            return Err(Diagnostic::error(codes::INITIAL_VALUE_MISMATCH, message).at(place).into());
        }
        if !self.feedback.contains(&port) {
            let message = message("is for an input without feedback and is not used");
            return Err(Diagnostic::warning(codes::INITIAL_VALUE_UNKNOWN, message)
                .at(place)
                .into());
        }
        Ok(port)
    }
}
