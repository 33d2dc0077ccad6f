//! One loaded TorchScript module.
#![expect(unsafe_code, reason = "the trait promises exclusive memory to its caller")]

use veracity_diag::{Code, Diagnostic, Place, Refusal, Result, codes};
use veracity_engine::{Model, Ports};
use veracity_tensor::SharedTensor;

use crate::shim::{self, Failure, FailureKind};

/// The longest trace that is passed on; torch repeats the source of every frame.
const MAX_TRACE: usize = 2000;

pub(crate) struct TorchSession {
    model: shim::Model,
    ports: Ports,
    /// Number of the GPU; `None` for the CPU.
    cuda_index: Option<u8>,
}

impl TorchSession {
    pub(crate) fn new(model: shim::Model, ports: Ports, cuda_index: Option<u8>) -> Self {
        Self { model, ports, cuda_index }
    }

    fn refusal(&self, failure: Failure) -> Refusal {
        match failure.kind {
            FailureKind::OutputMismatch(output) => {
                let port = output.and_then(|index| self.ports.outputs.get(index));
                let place = Place { port: port.map(|port| port.name.clone()), ..Place::default() };
                Diagnostic::error(codes::ENGINE_OUTPUT_MISMATCH, failure.message).at(place).into()
            }
            _ => self.run_refusal(&failure.message).into(),
        }
    }
}

impl TorchSession {
    /// A traced model may have the device of its constants written into it.
    fn run_refusal(&self, said: &str) -> Diagnostic {
        let refusal = raised(codes::ENGINE_RUN_FAILED, "the model raised an error", said);
        match self.cuda_index {
            Some(_) => refusal.hint("it ran on a GPU; device `cpu` may run it"),
            None => refusal,
        }
    }
}

impl Model for TorchSession {
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()> {
        let bound = self.model.bind(inputs, outputs);
        bound.map_err(|failure| {
            Diagnostic::error(codes::ENGINE_BIND_MISMATCH, failure.message).into()
        })
    }

    unsafe fn run(&mut self, binding: usize) -> Result<()> {
        self.model.run(binding).map_err(|failure| self.refusal(failure))
    }

    fn device(&self) -> String {
        self.cuda_index.map_or_else(|| "cpu".to_owned(), |index| format!("cuda:{index}"))
    }
}

/// A diagnostic from what torch said: the reason becomes the message, all of it a hint.
pub(crate) fn raised(code: Code, what: &str, said: &str) -> Diagnostic {
    let said = said.trim();
    if let Some(stopped) = Stopped::from_text(said) {
        let message = format!("{what}: {}: {}", stopped.operator, stopped.reason);
        return Diagnostic::error(code, message).at(stopped.place);
    }
    let diagnostic = Diagnostic::error(code, format!("{what}: {}", reason_in(said)));
    if said.lines().count() > 1 {
        diagnostic.hint(format!("torch says: {}", shortened(said)))
    } else {
        diagnostic
    }
}

/// What the runner of exported programs says about the operator that it stopped at.
struct Stopped<'t> {
    operator: &'t str,
    reason: &'t str,
    /// The line that the operator was exported from.
    place: Place,
}

impl<'t> Stopped<'t> {
    /// Reads `Exception while executing node: %y = OPERATOR(...)`, arguments, the reason, a trace of
    /// torch's own frames, and the line in Python.
    fn from_text(said: &'t str) -> Option<Self> {
        let rest = said.strip_prefix("Exception while executing node: ")?;
        let mut lines = rest.lines().map(str::trim);
        let call = lines.next()?;
        let (_, call) = call.split_once(" = ").unwrap_or(("", call));
        let operator = call.split('(').next().unwrap_or(call);
        let is_reason =
            |line: &&str| !line.is_empty() && !line.starts_with("arg") && *line != "with args:";
        let reason = lines.find(is_reason).unwrap_or("no reason");
        let place = lines.filter_map(place_in).next_back().unwrap_or_default();
        Some(Self { operator, reason, place })
    }
}

/// `File "policy.py", line 12, in forward`.
fn place_in(line: &str) -> Option<Place> {
    let (file, rest) = line.strip_prefix("File \"")?.split_once("\", line ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Place { line: Some(digits.parse().ok()?), ..Place::file(file) })
}

/// How torch begins when an operator does not exist for a device; what exists follows, in a hundred
/// lines.
const NO_KERNEL: &str = "Could not run '";

/// Torch puts the reason last, below a trace of the model's source.
fn reason_in(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim);
    if let Some(line) = lines.clone().find(|line| line.contains(NO_KERNEL)) {
        let reason = &line[line.find(NO_KERNEL).unwrap_or(0)..];
        return reason.split_once(". ").map_or(reason, |(sentence, _)| sentence);
    }
    let reason = lines.rfind(|line| !line.is_empty()).unwrap_or("no reason");
    let reason = reason.strip_prefix("builtins.").unwrap_or(reason);
    reason.strip_prefix("RuntimeError: ").unwrap_or(reason)
}

/// The end of a long text, which is where torch says the most.
fn shortened(text: &str) -> &str {
    let start = text.len().saturating_sub(MAX_TRACE);
    let start = (start..text.len()).find(|&index| text.is_char_boundary(index)).unwrap_or(0);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_message_and_the_trace_a_hint() {
        let said = "The following operation failed in the TorchScript interpreter.\n\
                    Traceback of TorchScript (most recent call last):\n  File \"m.py\", line 3\n\
                    builtins.RuntimeError: too cold\n\n";
        let diagnostic = raised(codes::ENGINE_RUN_FAILED, "the model raised an error", said);
        assert_eq!(diagnostic.message, "the model raised an error: too cold");
        assert!(diagnostic.hints[0].contains("line 3"));

        let said = "Traceback of TorchScript:\n  return torch.gru(x)\n\
                    RuntimeError: Could not run 'aten::gru' with arguments from the 'CPU' backend. \
                    This could be because it is not there.\n\nCUDA: registered at gru.cpp:1";
        let diagnostic = raised(codes::ENGINE_RUN_FAILED, "it failed", said);
        let reason = "Could not run 'aten::gru' with arguments from the 'CPU' backend";
        assert_eq!(diagnostic.message, format!("it failed: {reason}"));

        let short = raised(codes::ENGINE_RUN_FAILED, "it failed", "plainly");
        assert_eq!((short.message.as_str(), short.hints.len()), ("it failed: plainly", 0));
        assert_eq!(
            raised(codes::ENGINE_RUN_FAILED, "it failed", "").message,
            "it failed: no reason"
        );
    }

    #[test]
    fn an_exported_program_names_the_operator_and_the_line() {
        let said = "Exception while executing node: %d = torch.ops.aten.floor_divide.default(self=%x)\n\
                    with args:\narg0 self: Tensor float[3, 4]cpu\narg1 other: Int 2\n\n\
                    Expected Tensor but got Int\nException raised from ivalue.cpp:987\nframe #0: f\n\n\
                    Original Python stacktrace:\nFile \"gait.py\", line 12, in forward\n  y = x // 2";
        let diagnostic = raised(codes::ENGINE_RUN_FAILED, "it failed", said);
        let reason = "it failed: torch.ops.aten.floor_divide.default: Expected Tensor but got Int";
        assert_eq!(diagnostic.message, reason);
        let place = (diagnostic.place.file.as_deref(), diagnostic.place.line);
        assert_eq!(place, (Some("gait.py"), Some(12)));
    }

    #[test]
    fn long_traces_are_cut_between_characters() {
        let long = "ä".repeat(MAX_TRACE);
        assert!(shortened(&long).len() <= MAX_TRACE);
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(""), "");
    }
}
