//! Pictures of bundles.

use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_draw::Layout;
use veracity_prove::Standing;
use veracity_results::{Pipeline, Proof, Verdict};
use veracity_spec::Bundle;
use veracity_tensor::file::write_bytes;

/// Kinds of pictures, by the endings of their files.
const ENDINGS: [&str; 2] = ["svg", "png"];

/// A picture of a pipeline: coordinates that can be shown in several ways.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What is shown.
    pub pipeline: Pipeline,
    /// Where everything is.
    pub layout: Layout,
}

/// Draws a bundle. Verdicts are those of its proof, where it has one that is about these very files
/// and about the Python code.
pub fn picture(bundle: &Bundle) -> Result<Picture> {
    let mut pipeline = veracity_prove::describe(bundle);
    if let Some(proof) = valid_proof(bundle) {
        for node in &mut pipeline.nodes {
            node.verdict = verdict_of(&proof, &node.name);
        }
    }
    let layout = veracity_draw::layout(&pipeline)?;
    Ok(Picture { pipeline, layout })
}

impl Picture {
    /// The picture for pages; it needs no other file.
    pub fn svg(&self) -> String {
        veracity_draw::svg(&self.layout)
    }

    /// The picture as pixels.
    pub fn png(&self) -> Result<Vec<u8>> {
        veracity_draw::png(&self.layout)
    }

    /// Writes the picture in the kind that the ending of the file names.
    pub fn write(&self, path: &Path) -> Result<()> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let bytes = match ending.as_deref() {
            Some("svg") => self.svg().into_bytes(),
            Some("png") => self.png()?,
            _ => return Err(unknown_kind(path).into()),
        };
        write_bytes(path, &bytes)
    }

    /// Writes the picture in every kind beside the YAML file of its bundle. Gives the files.
    fn write_beside(&self, bundle: &Bundle) -> Result<Vec<PathBuf>> {
        let paths = ENDINGS.map(|ending| bundle.yaml_path().with_extension(ending));
        paths.iter().try_for_each(|path| self.write(path))?;
        Ok(paths.into())
    }
}

/// Draws a bundle, in every kind, beside its YAML file; gives the files. Whatever goes wrong is a
/// refusal: nobody's export ends because of a picture.
pub fn draw_beside(bundle: &Bundle) -> Result<Vec<PathBuf>> {
    let draw = || picture(bundle)?.write_beside(bundle);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(draw)).unwrap_or_else(|_| {
        let place = Place::file(bundle.yaml_path().display().to_string());
        let message = "drawing ended in a fault of Veracity";
        Err(Diagnostic::error(codes::PICTURE_UNPAINTED, message).at(place).into())
    })
}

fn unknown_kind(path: &Path) -> Diagnostic {
    let message = "the ending of the file names no kind of picture";
    Diagnostic::error(codes::PICTURE_FORMAT, message)
        .at(Place::file(path.display().to_string()))
        .hint("let it end in `.svg` or `.png`")
}

/// The proof of a bundle, if it says something about the bundle as it is. One that cannot be read
/// says nothing.
fn valid_proof(bundle: &Bundle) -> Option<Proof> {
    let standing = veracity_prove::standing(bundle).ok()?;
    let is_valid =
        matches!(standing, Standing::Good | Standing::Conditional(_) | Standing::Negative(_));
    if is_valid { veracity_prove::of_bundle(bundle).ok() } else { None }
}

fn verdict_of(proof: &Proof, node: &str) -> Option<Verdict> {
    proof.nodes.iter().find(|one| one.node == node).map(|one| one.verdict)
}
