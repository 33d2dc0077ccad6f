//! How a model is to be run.

use std::fmt;
use std::num::NonZeroUsize;

use veracity_diag::{Diagnostic, Result, codes};

/// How a model is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads used inside one operator. The default is 1: on the small models of control loops a
    /// thread pool costs more than it gives, and its wake-ups are the tail of the latency.
    pub threads: NonZeroUsize,
    /// Where to run.
    pub device: Device,
    /// How far the engine may rewrite the graph.
    pub optimization: OptimizationLevel,
}

impl SessionOptions {
    /// Most threads that may be asked for. Machines have fewer cores; a larger number is a slip, and
    /// every thread costs memory.
    pub const MAX_THREADS: usize = 1024;

    /// Refuses a number of threads that can only be a slip.
    pub fn check(&self) -> Result<()> {
        if self.threads.get() <= Self::MAX_THREADS {
            return Ok(());
        }
        let message = format!("{} threads are more than {}", self.threads.get(), Self::MAX_THREADS);
        Err(Diagnostic::error(codes::OPTION_INVALID, message).into())
    }
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            threads: NonZeroUsize::MIN,
            device: Device::Auto,
            optimization: OptimizationLevel::All,
        }
    }
}

/// Where to run a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The GPU when the engine's library and the machine have one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU of this number; refused when it cannot be used.
    Cuda(u32),
}

impl Device {
    /// Reads `auto`, `cpu`, `cuda` or `cuda:N`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            _ => name.strip_prefix("cuda:")?.parse().ok().map(Self::Cuda),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// How far an engine may rewrite a graph before running it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptimizationLevel {
    /// Run it as it is.
    None,
    /// Only rewrites that keep every value: constant folding, dead code.
    Basic,
    /// Rewrites that join operators as well: a convolution with its activation.
    Extended,
    /// Whatever the engine offers.
    #[default]
    All,
}

impl OptimizationLevel {
    /// Every level with its name, from least to most.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("basic", Self::Basic),
        ("extended", Self::Extended),
        ("all", Self::All),
    ];

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }
}

impl fmt::Display for OptimizationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, level)| level == self);
        f.write_str(name.map_or("none", |(name, _)| name))
    }
}
