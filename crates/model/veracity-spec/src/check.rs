//! From the tree of a YAML file to a [`Spec`], noting every problem on the way.
//!
//! Reading goes on after a problem as far as it can, so that one run shows them all. Nothing is
//! read from disk here: the files that a bundle names are checked by
//! [`Bundle::verify_files`](crate::Bundle::verify_files).

pub(crate) mod fields;
mod flow;
mod nodes;
mod pipeline;
pub(crate) mod ports;
mod routing;
mod system;
mod veracity;

use veracity_diag::{Diagnostic, Result};

use crate::Spec;
use crate::places::{Places, Spans};
use crate::yaml::{Node as YamlNode, Problems, Source, load};

/// What the YAML file of a bundle says, found consistent.
#[derive(Debug)]
pub struct Description {
    /// What it says.
    pub spec: Spec,
    /// Where it says so.
    pub places: Places,
    /// What is probably unintended.
    pub warnings: Vec<Diagnostic>,
}

impl Description {
    /// Reads and checks the bytes of a YAML file, which messages call `name`. The files of the
    /// bundle are not looked at.
    pub fn from_yaml(name: &str, yaml: Vec<u8>) -> Result<Self> {
        let source = Source::within_limits(name, yaml)?;
        let mut problems = Problems::new(&source);
        let mut spans = Spans::default();
        let spec = load(&source, &mut problems)
            .and_then(|root| spec_from(&root, &mut spans, &mut problems))
            .unwrap_or_default();
        let warnings = problems.finish()?;
        Ok(Self { spec, places: Places::new(source, spans), warnings })
    }
}

/// `None`, or a spec with stand-ins, always comes with an error in `problems`.
fn spec_from(root: &YamlNode, spans: &mut Spans, problems: &mut Problems<'_>) -> Option<Spec> {
    let pairs = fields::mapping(root, "a bundle", problems)?;
    let mut spec = Spec::default();
    // Another major version may look entirely different: nothing else is worth saying about it.
    if !system::read(root, &mut spec, problems) {
        return None;
    }
    let nodes = nodes::read(root, spans, problems);
    let wiring = pipeline::read(root, &mut spec, spans, problems);
    if let (Some(nodes), Some(wiring)) = (&nodes, &wiring) {
        routing::check(&nodes.index(), wiring, &mut spec, problems);
    }
    spec.nodes = nodes?.into_nodes();
    spec.veracity = veracity::read(root, spans, problems);
    let known = ["models", "pipeline", "system information", "veracity"];
    spec.extra = fields::extra(pairs, &known, problems);
    Some(spec)
}
