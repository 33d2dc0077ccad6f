//! A loaded model with the memory it was bound to.
#![expect(unsafe_code, reason = "engines work on memory that several sessions share")]

use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_tensor::SharedTensor;

use crate::Ports;

/// One loaded model, as an engine provides it. Callers use it through a [`Session`].
pub trait Model: Send {
    /// Fixes memory that inputs are read from and outputs are written to, in the order of the
    /// declared ports. It fits the ports, no output is bound twice, and it stays alive. Bindings
    /// are numbered from 0 in the order in which they are made.
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()>;

    /// Runs the model once on a binding. On failure the outputs hold anything. Allocates no Rust
    /// memory when it succeeds, unless the engine's documentation says otherwise.
    ///
    /// # Safety
    /// `binding` was made, and until the call returns nothing else writes the memory that it reads
    /// or touches the memory that it writes.
    unsafe fn run(&mut self, binding: usize) -> Result<()>;

    /// What the model runs on, for people: `cpu`, `cuda:0`.
    fn device(&self) -> String;
}

/// One loaded model. It runs in the thread that calls it and may be moved between threads.
pub struct Session {
    ports: Ports,
    model: Box<dyn Model>,
    bindings: Vec<Memory>,
}

/// One set of memory that a session was bound to. Only valid for that session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(usize);

struct Memory {
    inputs: Vec<SharedTensor>,
    outputs: Vec<SharedTensor>,
}

impl Session {
    /// A session of a model that has these ports.
    pub fn new(ports: Ports, model: impl Model + 'static) -> Self {
        Self { ports, model: Box::new(model), bindings: Vec::new() }
    }

    /// Fixes the memory that inputs are read from and outputs are written to, in the order of the
    /// declared ports. Several bindings may exist. Refused when memory does not fit its port, or
    /// when memory of an output is bound a second time.
    pub fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<Binding> {
        self.ports.check_binding(inputs, outputs)?;
        self.model.bind(inputs, outputs)?;
        self.bindings.push(Memory { inputs: inputs.to_vec(), outputs: outputs.to_vec() });
        Ok(Binding(self.bindings.len() - 1))
    }

    /// Runs the model once on a binding. Refused while another session uses the memory.
    pub fn run(&mut self, binding: Binding) -> Result<()> {
        let Some(memory) = self.bindings.get(binding.0) else {
            return Err(no_binding(binding));
        };
        let Some(_claims) = Claims::of(memory) else { return Err(memory_in_use()) };
        // SAFETY: the binding exists, and the claims keep every other session away from the memory.
        // Who reads or writes it otherwise does so through `unsafe` functions of `SharedTensor`,
        // whose contract forbids that while a session runs.
        unsafe { self.model.run(binding.0) }
    }

    /// What the session runs on, for people: `cpu`, `cuda:0`.
    pub fn device(&self) -> String {
        self.model.device()
    }
}

/// The right to use memory, given back when dropped.
struct Claims<'a> {
    memory: &'a Memory,
    inputs: usize,
    outputs: usize,
}

impl<'a> Claims<'a> {
    /// Claims all of it or nothing.
    fn of(memory: &'a Memory) -> Option<Self> {
        let mut claims = Self { memory, inputs: 0, outputs: 0 };
        for input in &memory.inputs {
            if !input.claim_for_reading() {
                return None;
            }
            claims.inputs += 1;
        }
        for output in &memory.outputs {
            if !output.claim_for_writing() {
                return None;
            }
            claims.outputs += 1;
        }
        Some(claims)
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        self.memory.inputs[..self.inputs].iter().for_each(SharedTensor::release);
        self.memory.outputs[..self.outputs].iter().for_each(SharedTensor::release);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session(on {}, {} bindings)", self.device(), self.bindings.len())
    }
}

#[cold]
fn no_binding(binding: Binding) -> Refusal {
    let message = format!("binding {} does not belong to this session", binding.0);
    Diagnostic::error(codes::ENGINE_BIND_MISMATCH, message).into()
}

#[cold]
fn memory_in_use() -> Refusal {
    let message = "another session is using the memory";
    Diagnostic::error(codes::ENGINE_MEMORY_IN_USE, message).into()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use veracity_tensor::{DType, Shape};

    use super::*;
    use crate::Port;

    /// A model that runs another session while it runs.
    struct Nested(Option<(Session, Binding)>);

    impl Model for Nested {
        fn bind(&mut self, _: &[SharedTensor], _: &[SharedTensor]) -> Result<()> {
            Ok(())
        }

        unsafe fn run(&mut self, _: usize) -> Result<()> {
            self.0.as_mut().map_or(Ok(()), |(session, binding)| session.run(*binding))
        }

        fn device(&self) -> String {
            "cpu".to_owned()
        }
    }

    fn ports() -> Ports {
        let port = |name| vec![Port::new(name, DType::F32, Shape::scalar())];
        Ports { inputs: port("x"), outputs: port("y") }
    }

    fn memory() -> SharedTensor {
        SharedTensor::zeros(DType::F32, Shape::scalar())
    }

    #[test]
    fn memory_is_used_by_one_writer_or_by_readers() {
        let [a, b, c] = [memory(), memory(), memory()];
        for (what, outer, inner, expected) in [
            ("both read", (&a, &b), (&a, &c), None),
            ("one reads what the other writes", (&a, &b), (&b, &c), Some(())),
            ("one writes what the other reads", (&a, &b), (&c, &a), Some(())),
            ("both write", (&a, &c), (&b, &c), Some(())),
        ] {
            let mut nested = Session::new(ports(), Nested(None));
            let inner = nested.bind(from_ref(inner.0), from_ref(inner.1)).unwrap();
            let mut session = Session::new(ports(), Nested(Some((nested, inner))));
            let binding = session.bind(from_ref(outer.0), from_ref(outer.1)).unwrap();
            for _ in 0..2 {
                let code = session.run(binding).err().map(|refusal| refusal.first_error().code);
                assert_eq!(code, expected.map(|()| codes::ENGINE_MEMORY_IN_USE), "{what}");
            }
        }
    }

    #[test]
    fn a_binding_of_another_session_is_refused() {
        let (x, y) = (memory(), memory());
        let mut bound = Session::new(ports(), Nested(None));
        let binding = bound.bind(&[x], &[y]).unwrap();
        let refusal = Session::new(ports(), Nested(None)).run(binding).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::ENGINE_BIND_MISMATCH);
    }
}
