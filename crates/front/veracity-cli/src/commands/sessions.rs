//! Loads a bundle as the options say, and names the sessions it got.

use std::path::Path;

use veracity::spec::ReorderMap;
use veracity::{
    Bundle, EngineChoice, EngineSearch, Engines, Fusion, Result, RunOptions, Runner, SessionOptions,
};

use crate::cli::SessionArgs;

/// The engines of a choice.
pub(super) fn engines(choice: EngineChoice, arguments: &SessionArgs) -> Engines {
    let search = EngineSearch {
        ort_library: arguments.ort_library.clone(),
        torch_folder: arguments.torch.clone(),
        ..EngineSearch::default()
    };
    Engines::new(choice, search)
}

/// Threads and device.
pub(super) fn options(arguments: &SessionArgs) -> SessionOptions {
    SessionOptions {
        threads: arguments.threads,
        device: arguments.device,
        ..SessionOptions::default()
    }
}

/// Loads a bundle, with merged nodes if `fuse`.
pub(super) fn load(
    bundle: &Bundle,
    engines: &Engines,
    arguments: &SessionArgs,
    fuse: bool,
) -> Result<Runner> {
    Runner::load(bundle, engines, &run_options(arguments, fuse, None)?)
}

/// How a bundle is to be run.
pub(super) fn run_options(
    arguments: &SessionArgs,
    fuse: bool,
    map: Option<&Path>,
) -> Result<RunOptions> {
    let fusion = if fuse { Fusion::within_single_precision() } else { Fusion::Off };
    let reorder = map.map(ReorderMap::open).transpose()?.unwrap_or_default();
    Ok(RunOptions::new().with_session(options(arguments)).with_fusion(fusion).with_reorder(reorder))
}
