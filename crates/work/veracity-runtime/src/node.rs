//! One node of a bundle alone, with memory of its own.
#![expect(unsafe_code, reason = "reads and writes memory that its session shares, between runs")]

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_engine::{Binding, Port, Ports, Session, SessionOptions};
use veracity_spec::{Bundle, Node, PortSpec};
use veracity_tensor::{SharedTensor, TensorView};

use crate::load::source;
use crate::provider::EngineProvider;
use crate::stage::SessionFacts;

/// One node of a bundle, loaded without the others: what it computes does not depend on wiring.
pub struct NodeRunner {
    facts: SessionFacts,
    session: Session,
    binding: Binding,
    inputs: Vec<SharedTensor>,
    outputs: Vec<SharedTensor>,
    place: Place,
}

impl NodeRunner {
    /// Loads the model of a node. The model's bytes are held to the hash in the bundle; other
    /// files are not looked at.
    pub fn load(
        bundle: &Bundle,
        node: &Node,
        engines: &dyn EngineProvider,
        options: &SessionOptions,
    ) -> Result<Self> {
        let place = bundle.places().model(&node.name);
        let load = || {
            let source = source(bundle, node)?;
            let engine = engines.engine_for(source.format)?;
            let mut session = engine.load(&source, &ports_of(node), options)?;
            let memory = |ports: &[PortSpec]| -> Vec<SharedTensor> {
                let zeros = |port: &PortSpec| SharedTensor::zeros(port.dtype, port.shape.clone());
                ports.iter().map(zeros).collect()
            };
            let (inputs, outputs) = (memory(&node.inputs), memory(&node.outputs));
            let binding = session.bind(&inputs, &outputs)?;
            let facts = SessionFacts {
                nodes: node.name.clone(),
                engine: engine.name(),
                engine_version: engine.version(),
                device: session.device(),
            };
            Ok(Self { facts, session, binding, inputs, outputs, place: Place::node(&node.name) })
        };
        load().map_err(|refusal: Refusal| refusal.within(&place))
    }

    /// What runs the node.
    pub fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    /// Runs the node on values for its inputs, in the order of the node.
    pub fn run(&mut self, inputs: &[TensorView<'_>]) -> Result<()> {
        self.check(inputs)?;
        for (memory, view) in self.inputs.iter().zip(inputs) {
            // SAFETY: `&mut self` means that the session does not run, and no other slice of this
            // memory is alive.
            view.copy_elements(0, unsafe { memory.bytes_mut() });
        }
        let run = self.session.run(self.binding);
        run.map_err(|refusal| refusal.within(&self.place))
    }

    /// What the node computed, in the order of its outputs.
    #[expect(clippy::missing_panics_doc, reason = "memory was made to fill its shape")]
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = TensorView<'_>> {
        self.outputs.iter().map(|memory| {
            // SAFETY: `&self` keeps `run` from running while the view lives.
            let bytes = unsafe { memory.bytes() };
            TensorView::new(memory.dtype(), memory.shape(), bytes).expect("memory fills its shape")
        })
    }

    fn check(&self, inputs: &[TensorView<'_>]) -> Result<()> {
        let fits = |(memory, view): (&SharedTensor, &TensorView<'_>)| {
            memory.dtype() == view.dtype() && memory.shape() == view.shape()
        };
        if inputs.len() == self.inputs.len() && self.inputs.iter().zip(inputs).all(fits) {
            return Ok(());
        }
        let message = "the values do not fit the inputs of the node";
        Err(Diagnostic::error(codes::INPUT_SHAPE, message).at(self.place.clone()).into())
    }
}

fn ports_of(node: &Node) -> Ports {
    let port = |port: &PortSpec| Port {
        name: port.name.clone(),
        dtype: port.dtype,
        shape: port.shape.clone(),
    };
    Ports {
        inputs: node.inputs.iter().map(port).collect(),
        outputs: node.outputs.iter().map(port).collect(),
    }
}

impl std::fmt::Debug for NodeRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeRunner({:?})", self.facts)
    }
}
