//! `veracity verify`.

use std::path::PathBuf;

use clap::Args;

use super::Format;
use super::values::tolerance_part;

/// Refuse everything about a bundle that can be refused without running a model
#[derive(Args, Debug)]
#[command(after_help = "\
With --robot, what the bundle declares about its inputs and outputs is held against
what the robot declares: names, order, kinds, units, sizes, rate, gains. The robot
is a YAML file, the `deploy.yaml` of a Unitree robot, or an ONNX model with metadata
as mjlab writes it. What only one side says is listed as unchecked. With --values,
tensors named `node/port` that the robot recorded are held against the samples of the
bundle, pass by pass.

Exits with 0 when the bundle is sound and the robot agrees, 1 when not, 2 when there
is no bundle or robot, 3 when bundle and robot say nothing in common.

Examples:
  veracity verify policy/
  veracity verify policy/ --strict --format json
  veracity verify policy/ --robot robot.yaml --write-map map.yaml
  veracity verify policy/ --robot robot.yaml --values robot.npz --atol 1e-4")]
pub(crate) struct VerifyArgs {
    /// The bundle's YAML file, or the folder that holds it
    pub(crate) bundle: PathBuf,
    /// Refuse for warnings too
    #[arg(long)]
    pub(crate) strict: bool,
    /// What the robot declares, `.yaml`, or an `.onnx` model with metadata
    #[arg(long, value_name = "FILE")]
    pub(crate) robot: Option<PathBuf>,
    /// What the robot recorded, `.npz` or `.safetensors`, named `node/port`
    #[arg(long, value_name = "FILE", requires = "robot")]
    pub(crate) values: Option<PathBuf>,
    /// Where to write the map that `veracity run --map` applies
    #[arg(long, value_name = "FILE", requires = "robot")]
    pub(crate) write_map: Option<PathBuf>,
    /// How far gains may differ, relative to the larger one
    #[arg(long, value_name = "R", requires = "robot", default_value = "1e-6")]
    #[arg(value_parser = tolerance_part, allow_negative_numbers = true)]
    pub(crate) gain_rtol: f64,
    /// How far recorded values may differ
    #[arg(long, value_name = "A", requires = "values", default_value = "0")]
    #[arg(value_parser = tolerance_part, allow_negative_numbers = true)]
    pub(crate) atol: f64,
    /// How far recorded values may differ, relative to the bundle's
    #[arg(long, value_name = "R", requires = "values", default_value = "0")]
    #[arg(value_parser = tolerance_part, allow_negative_numbers = true)]
    pub(crate) rtol: f64,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
