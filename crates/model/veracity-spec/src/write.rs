//! Writes a bundle, whole or not at all.

mod durable;
mod emit;
pub(crate) mod quote;
mod staging;
mod update;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_tensor::{Tensor, file};

use crate::hash::copy_hashing;
use crate::{Bundle, BundlePath, FileSums, FormatVersion, PortRef, Spec, VeracityBlock, hash_file};
use durable::Unsynced;
use staging::Staging;

/// Collects the parts of a bundle and writes it.
///
/// The folder belongs to the bundle: whatever it held before is gone afterwards. It is replaced in
/// one step, so a crash at any moment leaves the old bundle or the new one, and a reader never
/// sees half of each. (On file systems that cannot swap two folders there is an instant without
/// either; the next writer then puts the old one back.)
#[derive(Debug)]
pub struct BundleWriter {
    spec: Spec,
    files: BTreeMap<BundlePath, FileContent>,
    initial_values: BTreeMap<PortRef, Tensor>,
}

/// Looks at a bundle before it is published, and gives the JSON of its proof.
type Prove<'p> = &'p mut dyn FnMut(&Bundle) -> Result<Vec<u8>>;

/// Name of the proof in a bundle.
const PROOF: &str = "proof.json";

/// What to put into a file.
#[derive(Debug)]
pub enum FileContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What this file holds.
    File(PathBuf),
}

impl BundleWriter {
    /// A bundle that says what `spec` says. Hashes and the list of files are filled in by
    /// [`BundleWriter::write`], and the format version is the current one.
    pub fn new(spec: Spec) -> Self {
        Self { spec, files: BTreeMap::new(), initial_values: BTreeMap::new() }
    }

    /// A bundle like one that exists, with every file that it names.
    pub fn from_bundle(bundle: &Bundle) -> Result<Self> {
        let mut writer = Self::new(bundle.spec().clone());
        for path in bundle.named_files() {
            let file = path.resolve(bundle.root())?;
            writer = writer.file(path, FileContent::File(file));
        }
        Ok(writer)
    }

    /// Leaves the proof out, which is about another bundle as soon as something changes.
    #[must_use]
    pub fn without_proof(mut self) -> Self {
        if let Some(block) = &mut self.spec.veracity
            && let Some(path) = block.proof.take()
        {
            block.files.remove(&path);
            self.files.remove(&path);
        }
        self
    }

    /// Adds a file: a model, its external data, samples, a proof.
    #[must_use]
    pub fn file(mut self, path: BundlePath, content: FileContent) -> Self {
        self.files.insert(path, content);
        self
    }

    /// Sets the first values of feedback inputs; they get a file of their own.
    #[must_use]
    pub fn initial_values(mut self, values: BTreeMap<PortRef, Tensor>) -> Self {
        self.initial_values = values;
        self
    }

    /// Writes the bundle into the folder `target` and reads it back.
    ///
    /// What [`Bundle::open`] would refuse is not written. A folder that holds anything but a
    /// bundle is not replaced.
    pub fn write(self, target: impl AsRef<Path>) -> Result<Bundle> {
        Bundle::open(self.staged(target.as_ref(), None)?)
    }

    /// Like [`BundleWriter::write`], with a proof in it. `prove` gets the bundle before anybody
    /// else can see it and gives the proof's JSON, so that there never is a bundle without. Gives
    /// the path of the description.
    pub fn write_proved(
        self,
        target: impl AsRef<Path>,
        prove: &mut dyn FnMut(&Bundle) -> Result<Vec<u8>>,
    ) -> Result<PathBuf> {
        self.staged(target.as_ref(), Some(prove))
    }

    fn staged(mut self, target: &Path, prove: Option<Prove<'_>>) -> Result<PathBuf> {
        let mut staging = Staging::begin(target)?;
        let name = staging.name().to_owned();
        let mut unsynced = Unsynced::default();
        let sums = self.write_files(&mut staging, &name, &mut unsynced)?;
        self.fill_in(sums)?;
        let yaml = yaml_name(&name)?;
        let mut description = self.write_description(&mut staging, &yaml)?;
        let bundle = read_back(&staging, &yaml)?;
        if let Some(prove) = prove {
            // The disk and the models have nothing to wait for each other.
            let json = unsynced.sync_large_while(|| prove(&bundle));
            let json = json.map_err(|refusal| in_the_bundle(refusal, &staging))?;
            self.add_proof(&json, &mut staging, &mut unsynced)?;
            description = self.write_description(&mut staging, &yaml)?;
        }
        for (path, file) in staging.folders()?.into_iter().chain([description]) {
            unsynced.add(path, file)?;
        }
        unsynced.sync()?;
        Ok(staging.publish()?.join(yaml.as_str()))
    }

    fn write_description(
        &self,
        staging: &mut Staging,
        yaml: &BundlePath,
    ) -> Result<(PathBuf, File)> {
        let text = self.spec.to_yaml();
        let path = staging.prepare(yaml)?;
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            Ok(file)
        });
        let file = written.map_err(|error| unwritable(&path, &error))?;
        Ok((path, file))
    }

    fn add_proof(
        &mut self,
        json: &[u8],
        staging: &mut Staging,
        unsynced: &mut Unsynced,
    ) -> Result<()> {
        let path: BundlePath = PROOF.parse()?;
        let sums = write_file(staging, &path, &mut &*json, unsynced)?;
        let block = self.spec.veracity.get_or_insert_default();
        block.files.insert(path.clone(), sums.into());
        block.proof = Some(path);
        Ok(())
    }

    fn write_files(
        &mut self,
        staging: &mut Staging,
        name: &str,
        unsynced: &mut Unsynced,
    ) -> Result<BTreeMap<BundlePath, FileSums>> {
        let mut sums = BTreeMap::new();
        for (path, content) in &self.files {
            let written = match content {
                FileContent::Bytes(bytes) => {
                    write_file(staging, path, &mut bytes.as_slice(), unsynced)?
                }
                FileContent::File(source) => {
                    let mut file =
                        File::open(source).map_err(|error| unreadable(source, &error))?;
                    write_file(staging, path, &mut file, unsynced)?
                }
            };
            sums.insert(path.clone(), written);
        }
        if !self.initial_values.is_empty() {
            let path = match self.spec.initial_values.take() {
                Some(path) => path,
                None => format!("{name}_initial_values.safetensors").parse()?,
            };
            let tensors = std::mem::take(&mut self.initial_values)
                .into_iter()
                .map(|(port, tensor)| (port.to_string(), tensor));
            let written = staging.prepare(&path)?;
            file::safetensors::write(&written, &tensors.collect())?;
            sums.insert(path.clone(), hash_file(&written, &mut |_| {})?);
            self.spec.initial_values = Some(path);
        }
        Ok(sums)
    }

    /// Puts what was written into the description.
    fn fill_in(&mut self, sums: BTreeMap<BundlePath, FileSums>) -> Result<()> {
        self.spec.version = FormatVersion::default();
        let written = |path: &BundlePath| {
            sums.get(path).ok_or_else(|| {
                let message = format!("`{path}` was not given to the writer");
                Refusal::from(Diagnostic::error(codes::FILE_NOT_FOUND, message))
            })
        };
        for node in &mut self.spec.nodes {
            let Some(model) = &mut node.model else {
                continue;
            };
            let sums =
                written(&model.path).map_err(|refusal| refusal.within(&Place::node(&node.name)))?;
            (model.sha256, model.md5) = (sums.sha256, sums.md5);
        }
        let block = self.spec.veracity.get_or_insert_default();
        block.schema = VeracityBlock::SCHEMA;
        for path in [&self.spec.initial_values, &block.samples, &block.proof].into_iter().flatten()
        {
            written(path)?;
        }
        block.files = sums.into_iter().map(|(path, sums)| (path, sums.into())).collect();
        Ok(())
    }
}

/// Refuses what a reader would refuse, before anyone can see it.
fn read_back(staging: &Staging, yaml: &BundlePath) -> Result<Bundle> {
    let read = || {
        let bundle = Bundle::open(staging.path().join(yaml.as_str()))?;
        bundle.initial_values()?;
        Ok(bundle)
    };
    read().map_err(|refusal| in_the_bundle(refusal, staging))
}

/// The folder is about to vanish: files are named as they would be called in the bundle.
fn in_the_bundle(refusal: Refusal, staging: &Staging) -> Refusal {
    let prefix = format!("{}/", staging.path().display());
    let mut findings = refusal.into_diagnostics();
    for file in findings.iter_mut().filter_map(|finding| finding.place.file.as_mut()) {
        *file = file.replace(&prefix, "");
    }
    Refusal::from_errors_in(findings).expect("a refusal holds an error")
}

fn yaml_name(bundle: &str) -> Result<BundlePath> {
    Ok(format!("{bundle}.yaml").parse::<BundlePath>()?)
}

fn write_file(
    staging: &mut Staging,
    path: &BundlePath,
    content: &mut dyn io::Read,
    unsynced: &mut Unsynced,
) -> Result<FileSums> {
    let target = staging.prepare(path)?;
    let written = File::create_new(&target).and_then(|mut file| {
        let sums = copy_hashing(content, &mut file, &mut |_| {})?;
        Ok((file, sums))
    });
    let (file, sums) = written.map_err(|error| unwritable(&target, &error))?;
    unsynced.add(target, file)?;
    Ok(sums)
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::FILE_UNREADABLE, format!("cannot be read: {error}"))
        .at(Place::file(path.display().to_string()))
}

fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::FILE_UNWRITABLE, format!("cannot be written: {error}"))
        .at(Place::file(path.display().to_string()))
}
