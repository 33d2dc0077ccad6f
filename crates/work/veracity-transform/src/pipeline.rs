//! Passes in the order in which they run.

use veracity_diag::{Diagnostic, Result, codes, nearest};

use crate::digest::sha256;
use crate::{Pass, passes};

/// Passes in the order in which they run, again and again until none finds anything.
pub struct Pipeline {
    passes: Vec<Box<dyn Pass>>,
}

impl Pipeline {
    /// These passes, in this order.
    pub fn new(passes: Vec<Box<dyn Pass>>) -> Self {
        Self { passes }
    }

    /// The passes that are safe to run unasked.
    pub fn standard() -> Self {
        Self::new(passes::standard())
    }

    /// Reads a list like `default,-fuse-batch-norm,divide-to-multiply`: `default` stands for the
    /// standard passes, a minus takes one out. Refused for a name that no pass has.
    pub fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let mut chosen: Vec<Box<dyn Pass>> = Vec::new();
        for name in names {
            match name.strip_prefix('-') {
                _ if name == "default" => chosen.extend(passes::standard()),
                Some(gone) => {
                    known(gone)?;
                    chosen.retain(|pass| pass.name() != gone);
                }
                None => chosen.push(known(name)?),
            }
        }
        Ok(Self::new(chosen))
    }

    /// The passes.
    pub fn passes(&self) -> &[Box<dyn Pass>] {
        &self.passes
    }

    /// SHA-256 over the signatures of the passes, in order.
    pub fn signature(&self) -> String {
        let signatures: Vec<String> = self.passes.iter().map(|pass| pass.signature()).collect();
        sha256(signatures.join("\n").as_bytes())
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.passes.iter().map(|pass| pass.name())).finish()
    }
}

fn known(name: &str) -> Result<Box<dyn Pass>> {
    let all = passes::all();
    let names: Vec<&'static str> = all.iter().map(|pass| pass.name()).collect();
    all.into_iter().find(|pass| pass.name() == name).ok_or_else(|| {
        let found = Diagnostic::error(codes::PASS_UNKNOWN, format!("there is no pass {name:?}"));
        let hint = match nearest(name, names.iter().copied()) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => "`veracity passes` lists them".to_owned(),
        };
        found.hint(hint).into()
    })
}
