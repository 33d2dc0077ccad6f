//! Changes of a bundle in place: a proof or samples are added, hashes are taken anew.
//!
//! The description is what makes files a bundle, so it is replaced in one step, last. A file that
//! is about to be replaced is taken out of it first: a crash in between leaves a sound bundle
//! without that file, never one whose hash does not fit.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};
use veracity_diag::Result;

use super::{PROOF, unwritable};
use crate::{Bundle, BundlePath, FileSums, Sha256Sum, Spec, VeracityBlock, hash_bytes, hash_file};

impl Spec {
    /// SHA-256 of what the description says, without its block `veracity` and without what the
    /// bundle was made with.
    pub fn digest(&self) -> Sha256Sum {
        let mut said = self.clone();
        said.veracity = None;
        said.system = crate::Map::new();
        Sha256Sum::from_bytes(Sha256::digest(said.to_yaml().as_bytes()).into())
    }
}

impl Bundle {
    /// Puts a proof into the bundle, in place of an old one. `side_files` are those that only the
    /// models name; a bundle that lists no files yet lists them from now on.
    pub fn attach_proof(&self, json: &[u8], side_files: &[BundlePath]) -> Result<()> {
        let path: BundlePath = PROOF.parse()?;
        self.attach(path, json, side_files, |block| &mut block.proof)
    }

    /// Puts samples into the bundle, in place of old ones.
    pub fn attach_samples(&self, safetensors: &[u8], side_files: &[BundlePath]) -> Result<()> {
        let stem = self.yaml_path().file_stem().unwrap_or_default().to_string_lossy();
        let path: BundlePath = format!("{stem}_samples.safetensors").parse()?;
        self.attach(path, safetensors, side_files, |block| &mut block.samples)
    }

    fn attach(
        &self,
        path: BundlePath,
        content: &[u8],
        side_files: &[BundlePath],
        slot: fn(&mut VeracityBlock) -> &mut Option<BundlePath>,
    ) -> Result<()> {
        let mut spec = self.listing_spec(side_files)?;
        let block = spec.veracity.get_or_insert_default();
        if let Some(old) = slot(block).take() {
            block.files.remove(&old);
            self.replace_description(&spec)?;
        }
        replace(&self.root().join(path.as_str()), content)?;
        let block = spec.veracity.get_or_insert_default();
        block.files.insert(path.clone(), hash_bytes(content).into());
        *slot(block) = Some(path);
        self.replace_description(&spec)
    }

    /// What the bundle says, with a block `veracity` in any case: a bundle that came without one
    /// gets the hashes of its files as they are.
    fn listing_spec(&self, side_files: &[BundlePath]) -> Result<Spec> {
        let mut spec = self.spec().clone();
        if spec.veracity.is_none() {
            self.hash_into(&mut spec, side_files)?;
        }
        Ok(spec)
    }

    /// Records the hashes of all files as they are now; `side_files` are those that only the models
    /// name. Gives the files whose hash changed, or was not recorded before. A proof that was
    /// changed is nobody's proof any more: it is taken out.
    pub fn seal(&self, side_files: &[BundlePath]) -> Result<Vec<BundlePath>> {
        let mut spec = self.spec().clone();
        let changed = self.hash_into(&mut spec, side_files)?;
        let block = spec.veracity.get_or_insert_default();
        if let Some(proof) = block.proof.take_if(|proof| changed.contains(proof)) {
            block.files.remove(&proof);
        }
        self.replace_description(&spec)?;
        Ok(changed)
    }

    fn hash_into(&self, spec: &mut Spec, side_files: &[BundlePath]) -> Result<Vec<BundlePath>> {
        let mut changed = Vec::new();
        let mut records = Vec::new();
        let mut files = self.still_named_files();
        files.extend(side_files.iter().cloned());
        for path in files {
            let sums = hash_file(&path.resolve(self.root())?, &mut |_| {})?;
            if self.is_recorded_otherwise(&path, &sums) {
                changed.push(path.clone());
            }
            for node in &mut spec.nodes {
                if let Some(model) = node.model.as_mut().filter(|model| model.path == path) {
                    (model.sha256, model.md5) = (sums.sha256, sums.md5);
                }
            }
            records.push((path, sums.into()));
        }
        let block = spec.veracity.get_or_insert_default();
        block.schema = VeracityBlock::SCHEMA;
        block.files = records.into_iter().collect();
        Ok(changed)
    }

    /// Files that the bundle uses or lists. One that it only lists may be gone: external data of a
    /// model that was swapped.
    fn still_named_files(&self) -> BTreeSet<BundlePath> {
        let used = |path: &BundlePath| {
            let spec = self.spec();
            let block = spec.veracity.as_ref();
            spec.initial_values.as_ref() == Some(path)
                || spec.nodes.iter().flat_map(|node| &node.model).any(|model| model.path == *path)
                || block.is_some_and(|block| block.samples.as_ref() == Some(path))
                || block.is_some_and(|block| block.proof.as_ref() == Some(path))
        };
        let is_there = |path: &BundlePath| path.resolve(self.root()).is_ok();
        self.named_files().into_iter().filter(|path| used(path) || is_there(path)).collect()
    }

    fn is_recorded_otherwise(&self, path: &BundlePath, sums: &FileSums) -> bool {
        let models = self.spec().nodes.iter().filter_map(|node| node.model.as_ref());
        let mut models = models.filter(|model| model.path == *path);
        let listed = self.recorded(path);
        let unlisted = listed.is_none() && self.spec().veracity.is_some();
        models.any(|model| model.sha256 != sums.sha256)
            || listed.is_some_and(|record| record.sha256 != sums.sha256)
            || unlisted
    }

    fn replace_description(&self, spec: &Spec) -> Result<()> {
        let text = spec.to_yaml();
        crate::Description::from_yaml(
            &self.yaml_path().display().to_string(),
            text.clone().into(),
        )?;
        replace(self.yaml_path(), text.as_bytes())
    }
}

/// Replaces a file in one step.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.new"));
    let written = File::create(&fresh)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&fresh, path));
    written.map_err(|error| {
        // What cannot be removed was never there.
        let _ = fs::remove_file(&fresh);
        unwritable(path, &error).into()
    })
}
