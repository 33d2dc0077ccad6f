//! Holds model files to what the bundle says about them, without running anything.

use veracity_diag::{Diagnostic, Place, Reporter, Result, codes};
use veracity_onnx::Model;
use veracity_spec::{Backend, Bundle, BundlePath, Direction, Node, PortRef};
use veracity_tensor::{DType, Shape};

/// Checks every model that can be read without an engine: the ports of ONNX models, and where
/// their external data lies. Notes all problems of all models, and gives the nodes whose model was
/// read.
pub fn check_models(bundle: &Bundle, reporter: &mut Reporter) -> Vec<String> {
    let mut read = Vec::new();
    for node in &bundle.spec().nodes {
        let onnx = node.model.as_ref().filter(|model| model.backend == Backend::Onnx);
        if let Some(model) = onnx
            && check_onnx(bundle, node, &model.path, reporter).is_some()
        {
            read.push(node.name.clone());
        }
    }
    read
}

/// External data of ONNX models: files that only the models name.
pub fn side_files(bundle: &Bundle) -> Result<Vec<BundlePath>> {
    let mut files = Vec::new();
    for node in &bundle.spec().nodes {
        let onnx = node.model.as_ref().filter(|model| model.backend == Backend::Onnx);
        let Some(model) = onnx else { continue };
        let read = Model::read(model.path.resolve(bundle.root())?)?;
        for data in read.external_data()? {
            files.push(beside(&model.path, &data.location, bundle)?);
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// `None` when the model could not be read.
fn check_onnx(
    bundle: &Bundle,
    node: &Node,
    path: &BundlePath,
    reporter: &mut Reporter,
) -> Option<()> {
    let place = bundle.places().model(&node.name);
    let read = path.resolve(bundle.root()).and_then(Model::read);
    let model = reporter.absorb(read.map_err(|refusal| refusal.within(&place)))?;
    check_ports(bundle, node, &model, reporter);
    check_external_data(bundle, node, path, &model, reporter);
    Some(())
}

fn check_ports(bundle: &Bundle, node: &Node, model: &Model, reporter: &mut Reporter) {
    let declared = |direction| -> Vec<(&str, DType, &Shape)> {
        let ports = node.ports(direction).iter();
        ports.map(|port| (port.name.as_str(), port.dtype, &port.shape)).collect()
    };
    let checked = veracity_onnx::check_ports(
        model,
        &declared(Direction::Input),
        &declared(Direction::Output),
    );
    if let Err(refusal) = checked {
        for diagnostic in refusal.into_diagnostics() {
            let place = place_of(bundle, node, &diagnostic);
            reporter.report(diagnostic.at(place));
        }
    }
}

/// The line that declares the port a finding is about, else the line that names the model.
fn place_of(bundle: &Bundle, node: &Node, diagnostic: &Diagnostic) -> Place {
    let Some(port) = &diagnostic.place.port else {
        return bundle.places().model(&node.name);
    };
    let is_named = |direction| node.ports(direction).iter().any(|spec| spec.name == *port);
    let port = PortRef::new(&node.name, port);
    match (is_named(Direction::Input), is_named(Direction::Output)) {
        (true, _) => bundle.places().port(&port, Direction::Input),
        (_, true) => bundle.places().port(&port, Direction::Output),
        _ => bundle.places().model(&node.name),
    }
}

/// External data must be a file of the bundle, and listed with its hash when the bundle lists its
/// files at all.
fn check_external_data(
    bundle: &Bundle,
    node: &Node,
    path: &BundlePath,
    model: &Model,
    reporter: &mut Reporter,
) {
    let place = bundle.places().model(&node.name);
    let found = model.external_data().map_err(|refusal| refusal.within(&place));
    let Some(files) = reporter.absorb(found) else { return };
    let mut locations: Vec<&str> = files.iter().map(|file| file.location.as_str()).collect();
    locations.sort_unstable();
    locations.dedup();
    for location in locations {
        let file = beside(path, location, bundle).map_err(|refusal| refusal.within(&place));
        let Some(file) = reporter.absorb(file) else { continue };
        match &bundle.spec().veracity {
            Some(block) if block.files.contains_key(&file) => {}
            Some(_) => reporter.report(unhashed(&file).at(place.clone())),
            None => reporter.report(
                Diagnostic::warning(
                    codes::HASH_MISSING,
                    format!("external data {:?} has no recorded hash", file.as_str()),
                )
                .at(place.clone()),
            ),
        }
    }
}

/// The file that a model calls `location`, known to be inside of the bundle.
fn beside(model: &BundlePath, location: &str, bundle: &Bundle) -> Result<BundlePath> {
    let folder = model.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
    let file: BundlePath = format!("{folder}/{location}").trim_start_matches('/').parse()?;
    file.resolve(bundle.root())?;
    Ok(file)
}

fn unhashed(file: &BundlePath) -> Diagnostic {
    Diagnostic::error(
        codes::HASH_MISSING,
        format!("external data {:?} is not in the list of files", file.as_str()),
    )
    .hint("write the bundle anew, so that every file is hashed")
}
