//! Chooses an engine for each kind of model.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, ModelFormat};
use veracity_engine_embedded::EmbeddedEngine;
use veracity_engine_ort::OrtEngine;
use veracity_engine_torch::TorchEngine;
use veracity_runtime::EngineProvider;

/// Which engine is to run ONNX models. TorchScript models always run in torch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// ONNX Runtime where it is found, else the embedded engine.
    #[default]
    Auto,
    /// ONNX Runtime or nothing.
    Ort,
    /// The embedded engine or nothing.
    Embedded,
    /// torch or nothing: a bundle with ONNX models is refused.
    Torch,
}

impl EngineChoice {
    /// Every choice with its name.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("ort", Self::Ort),
        ("embedded", Self::Embedded),
        ("torch", Self::Torch),
    ];

    /// The choice of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
    }
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, choice)| choice == self);
        f.write_str(name.map_or("auto", |(name, _)| name))
    }
}

/// Where engine libraries may be, beyond the places that are always looked at.
#[derive(Clone, Debug, Default)]
pub struct EngineSearch {
    /// ONNX Runtime's library, or a folder that holds it.
    pub ort_library: Option<PathBuf>,
    /// The folder of the torch package.
    pub torch_folder: Option<PathBuf>,
    /// `site-packages` folders of the Python that is running, if one is.
    pub site_packages: Vec<PathBuf>,
}

/// Finds engines when they are first needed, and keeps them.
#[derive(Default)]
pub struct Engines {
    choice: EngineChoice,
    search: EngineSearch,
    onnx: OnceLock<Result<Arc<dyn Engine>>>,
    torch: OnceLock<Result<Arc<dyn Engine>>>,
}

impl Engines {
    /// Engines by choice, looked for in these places.
    pub fn new(choice: EngineChoice, search: EngineSearch) -> Self {
        Self { choice, search, ..Self::default() }
    }

    /// Another engine for ONNX models than the one that was chosen, if there is one.
    pub fn second_onnx(&self) -> Option<Arc<dyn Engine>> {
        let first = self.engine_for(ModelFormat::Onnx).ok()?;
        let embedded: Arc<dyn Engine> = Arc::new(EmbeddedEngine);
        if first.name() == embedded.name() { self.find_ort().ok() } else { Some(embedded) }
    }

    fn find_onnx(&self) -> Result<Arc<dyn Engine>> {
        match self.choice {
            EngineChoice::Ort => self.find_ort(),
            EngineChoice::Embedded => Ok(Arc::new(EmbeddedEngine)),
            EngineChoice::Torch => {
                let message = "engine `torch` does not run ONNX models";
                Err(Diagnostic::error(codes::ENGINE_UNSUPPORTED_FORMAT, message)
                    .hint("use engine `auto`, `ort` or `embedded`")
                    .into())
            }
            EngineChoice::Auto => self.find_ort().or_else(|refusal| {
                // Only absence is made up for. A library that was named or is broken is reported:
                // silently running another engine would hide it.
                match refusal.first_error().code {
                    codes::ENGINE_NOT_FOUND => Ok(Arc::new(EmbeddedEngine) as Arc<dyn Engine>),
                    _ => Err(refusal),
                }
            }),
        }
    }

    fn find_ort(&self) -> Result<Arc<dyn Engine>> {
        let search = veracity_engine_ort::Search {
            library: self.search.ort_library.clone(),
            site_packages: self.search.site_packages.clone(),
        };
        Ok(Arc::new(OrtEngine::find(&search)?))
    }

    fn find_torch(&self) -> Result<Arc<dyn Engine>> {
        let search = veracity_engine_torch::Search {
            folder: self.search.torch_folder.clone(),
            site_packages: self.search.site_packages.clone(),
        };
        Ok(Arc::new(TorchEngine::find(&search)?))
    }
}

impl EngineProvider for Engines {
    fn engine_for(&self, format: ModelFormat) -> Result<Arc<dyn Engine>> {
        match format {
            ModelFormat::Onnx => self.onnx.get_or_init(|| self.find_onnx()).clone(),
            ModelFormat::TorchScript | ModelFormat::Pt2 => {
                self.torch.get_or_init(|| self.find_torch()).clone()
            }
        }
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engines({})", self.choice)
    }
}
