//! Values that a robot recorded, against the samples of a bundle: the same passes, element by element.

mod arrays;
mod verdict;

use std::path::Path;

use veracity_compare::{Columns, match_columns};
use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_prove::{Kind, Samples};
use veracity_results::Tolerance;
use veracity_spec::contract::{Contract, Findings, Status};
use veracity_spec::{Bundle, Direction, PortRef, PortSpec, Reorder};
use veracity_tensor::{Shape, Tensor, file};

use arrays::{along, first, flattened, named_axis};
use verdict::{Order, Subject, row};

/// Compares every tensor of a file, named `node/port` or `port`, with the samples of that port.
pub(super) fn compare(
    bundle: &Bundle,
    ours: &Contract,
    path: &Path,
    tolerance: Tolerance,
    findings: &mut Findings,
) -> Result<()> {
    let place = Place::file(path.display().to_string());
    let tensors = file::read(path)?;
    let samples = Samples::read(bundle)?;
    for (name, tensor) in &tensors {
        let found: Vec<_> = ours
            .ports
            .iter()
            .filter(|port| port.key == *name || port.key.rsplit('/').next() == Some(name.as_str()))
            .collect();
        let [port] = found.as_slice() else {
            let (code, message) = if found.is_empty() {
                (codes::ROBOT_PORT_EXTRA, format!("the bundle has no input or output {name:?}"))
            } else {
                (codes::CONTRACT_INVALID, format!("{name:?} may be any of several ports"))
            };
            let problem = Diagnostic::error(code, message).at(place.clone());
            findings.diagnostics.push(problem.hint("name tensors `node/port`, as in the bundle"));
            continue;
        };
        let recording = Recording { bundle, samples: &samples, tensor, place: &place };
        recording.compare(&port.key, port.direction, tolerance, findings);
    }
    Ok(())
}

/// What a robot recorded of one port.
struct Recording<'r> {
    bundle: &'r Bundle,
    samples: &'r Samples,
    tensor: &'r Tensor,
    place: &'r Place,
}

impl Recording<'_> {
    fn compare(
        &self,
        key: &str,
        direction: Direction,
        tolerance: Tolerance,
        findings: &mut Findings,
    ) {
        let spec = self.bundle.spec();
        let Ok(key) = key.parse::<PortRef>() else { return };
        let Some(port) = spec.port(&key, direction) else { return };
        let (robot, recorded) = match (self.robot(port), self.bundle_samples(&key, direction)) {
            (Err(shape), _) => return self.misfit(&key, port, &shape, findings),
            (Ok(_), None) => return self.unsampled(&key, direction, findings),
            (Ok(robot), Some(recorded)) => (robot, recorded),
        };
        let count = robot.shape().dims()[0].min(recorded.shape().dims()[0]);
        let (robot, recorded) = (first(&robot, count), first(&recorded, count));
        let subject = Subject { key, direction, port, count };
        self.judge(&subject, &recorded, &robot, tolerance, findings);
    }

    /// The robot's values with the passes along the first axis; else the shape that does not fit.
    fn robot(&self, port: &PortSpec) -> std::result::Result<Tensor, Shape> {
        let dims = self.tensor.shape().dims();
        let wanted = port.shape.dims();
        let passes = match dims {
            dims if dims == wanted => 1,
            [passes, rest @ ..] if rest == wanted => *passes,
            _ => return Err(self.tensor.shape().clone()),
        };
        if self.tensor.dtype() != port.dtype {
            return Err(self.tensor.shape().clone());
        }
        let shape = Shape::new([&[passes], wanted].concat());
        let stacked =
            shape.and_then(|shape| Tensor::from_bytes(port.dtype, shape, self.tensor.bytes()).ok());
        stacked.ok_or_else(|| self.tensor.shape().clone())
    }

    /// The bundle's recorded samples of a port, along the first axis.
    fn bundle_samples(&self, key: &PortRef, direction: Direction) -> Option<Tensor> {
        let node = self.bundle.spec().node(&key.node)?;
        let ports = node.ports(direction);
        let position = ports.iter().position(|port| port.name == key.port)?;
        let sample = |sample| match direction {
            Direction::Input => self.samples.input(node, Kind::Recorded, position, sample),
            Direction::Output => self.samples.output(node, Kind::Recorded, position, sample),
        };
        let count = self.samples.count(&node.name, Kind::Recorded);
        let mut bytes = Vec::new();
        for index in 0..count {
            bytes.extend_from_slice(&sample(index)?.to_bytes());
        }
        let port = &ports[position];
        let shape = Shape::new([&[count], port.shape.dims()].concat())?;
        Tensor::from_bytes(port.dtype, shape, &bytes).ok().filter(|_| count > 0)
    }

    fn misfit(&self, key: &PortRef, port: &PortSpec, found: &Shape, findings: &mut Findings) {
        let (dtype, shape) = (port.dtype, &port.shape);
        let message = format!(
            "the values of \"{key}\" are {} {found}, the port is {dtype} {shape}",
            self.tensor.dtype()
        );
        let problem = Diagnostic::error(codes::SIZE_DIFFERS, message)
            .at(self.place.clone())
            .hint("give the port's shape, or the same with the passes along a leading axis");
        findings.diagnostics.push(problem);
    }

    fn unsampled(&self, key: &PortRef, direction: Direction, findings: &mut Findings) {
        let message = format!("the bundle has no recorded values of {direction} \"{key}\"");
        let problem = Diagnostic::warning(codes::CONTRACT_UNCHECKED, message)
            .at(self.place.clone())
            .hint("record some with `veracity check BUNDLE --record`");
        findings.diagnostics.push(problem);
        findings.rows.push(row(key, Status::Unchecked, String::new(), "recorded".to_owned()));
    }

    /// Brings the robot's values into the order that the names say, and looks where they are.
    fn judge(
        &self,
        subject: &Subject<'_>,
        recorded: &Tensor,
        robot: &Tensor,
        tolerance: Tolerance,
        findings: &mut Findings,
    ) {
        let entries = &findings.reorder.entries;
        let of_port =
            |entry: &&Reorder| entry.port == subject.key && entry.direction == subject.direction;
        let named: Vec<Reorder> = entries.iter().filter(of_port).cloned().collect();
        let ordered = named.iter().fold(robot.clone(), |robot, entry| {
            along(&robot, entry.axis, &entry.robot_of_bundle())
        });
        let axis = named.last().map_or_else(|| named_axis(subject.port), |entry| entry.axis);
        let (left, right) = (flattened(recorded, axis), flattened(&ordered, axis));
        let column = axis.map_or(1, |axis| axis + 1);
        match match_columns(&left.view(), &right.view(), column, tolerance) {
            Some(Columns::InPlace { unique }) => subject.agrees(unique, findings),
            Some(Columns::Permuted { take, unique }) => {
                let total = match named.as_slice() {
                    [] => Some(take),
                    [entry] => {
                        let by_name = entry.robot_of_bundle();
                        Some(take.into_iter().map(|position| by_name[position]).collect())
                    }
                    _ => None,
                };
                let order = Order { axis, robot_of_bundle: total, unique };
                subject.permuted(order, !named.is_empty(), self.place, findings);
            }
            Some(Columns::Different { unmatched }) => {
                subject.differs(&unmatched, self.place, findings);
            }
            None => {}
        }
    }
}
