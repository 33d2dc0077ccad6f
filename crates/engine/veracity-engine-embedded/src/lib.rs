//! ONNX models run by Rust code alone: nothing to install, nothing to find.
//!
//! The computing is done by [tract](https://crates.io/crates/tract-onnx). It runs most of what
//! policies are made of correctly, but not everything: some operators give wrong numbers without
//! saying so. So nothing is run on trust. A model is loaded only when every node of it is on the
//! list of what was compared with ONNX Runtime and found right (`lint/table.rs`: operator,
//! attributes, dtypes); every other node is refused with [`codes::ENGINE_UNSUPPORTED`] and the
//! reason.
//!
//! What differs from other engines, by design:
//!
//! - **Non-finite inputs are refused** when a model runs. `Relu`, `Clip`, `Tanh`, `Sigmoid`, `Max`
//!   and `Min` swallow NaN here (`Tanh` of NaN is about −1), so a NaN that a sensor sent would turn
//!   into a plausible action. The gap that remains: a NaN that *arises inside* a model, such as the
//!   square root of a negative number, or that stands in its constants, may be swallowed by these
//!   operators, and by a product with a constant 0.
//! - **A run allocates.** The contract of [`Session::run`] promises otherwise; tract makes the
//!   tensors of every run anew, and this engine cannot keep that promise. It is the one engine that
//!   is excepted.
//! - **One thread.** A model runs in the thread that calls it; `threads` makes no difference.
//! - `Tanh` and `Sigmoid` are approximations that are off by up to about 5e-7.
//! - Memory and time of a run are those that the model asks for, and are not bounded.
//!
//! A panic inside tract is a refusal like any other. To keep it from being printed, the first use
//! of the engine chains a panic hook before the one in place: it drops the report of a panic that
//! happens inside of this engine on the same thread, and hands on every other one.

mod dtype;
mod lint;
mod load;
mod quiet;
mod session;

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{
    Device, Engine, ModelFormat, ModelSource, Port, Ports, Session, SessionOptions,
};
use veracity_tensor::Tensor;

/// The engine. It has no state: any number of them are the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbeddedEngine;

impl Engine for EmbeddedEngine {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn version(&self) -> String {
        // The exact version that the manifest asks for, and that the table was made for.
        "tract 0.23.9".to_owned()
    }

    fn supports(&self, format: ModelFormat) -> bool {
        format == ModelFormat::Onnx
    }

    /// NaN is refused where it enters a model; merging would let it pass between nodes.
    fn may_merge(&self) -> bool {
        false
    }

    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> Result<Session> {
        let place = source.bytes.place();
        check_request(source.format, options.device)
            .and_then(|()| load::load(&source.bytes, ports, options.optimization))
            .map(|model| Session::new(ports.clone(), model.at(place.clone())))
            .map_err(|refusal| refusal.within(&place))
    }

    fn evaluate(
        &self,
        source: &ModelSource,
        inputs: &[(&str, &Tensor)],
        outputs: &[&str],
        options: &SessionOptions,
    ) -> Result<Vec<Option<Tensor>>> {
        let place = source.bytes.place();
        let ports = inputs
            .iter()
            .map(|(name, value)| Port::new(*name, value.dtype(), value.shape().clone()));
        check_request(source.format, options.device)
            .and_then(|()| {
                load::load_undeclared(&source.bytes, ports.collect(), outputs, options.optimization)
            })
            .and_then(|(model, ports)| session::run_once(model.at(place.clone()), ports, inputs))
            .map_err(|refusal| refusal.within(&place))
    }
}

fn check_request(format: ModelFormat, device: Device) -> Result<()> {
    let (code, message) = match (format, device) {
        (ModelFormat::Onnx, Device::Auto | Device::Cpu) => return Ok(()),
        (ModelFormat::Onnx, Device::Cuda(_)) => {
            (codes::DEVICE_UNAVAILABLE, "the embedded engine runs on the CPU only".to_owned())
        }
        (other, _) => (
            codes::ENGINE_UNSUPPORTED_FORMAT,
            format!("the embedded engine does not run {other} models"),
        ),
    };
    Err(Diagnostic::error(code, message).into())
}
