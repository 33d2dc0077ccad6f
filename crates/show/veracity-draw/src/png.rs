//! A layout as pixels, twice as many as units in each direction.
//!
//! The picture is that of the SVG on a light page. One that would take too much memory gets fewer
//! pixels, and in the end none.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};
use veracity_diag::{Diagnostic, Result, codes};

use crate::font::{REGULAR, SEMI_BOLD};
use crate::layout::Layout;
use crate::svg::{Reader, document};

/// Pixels for each unit.
const SCALE: f32 = 2.0;
/// Fewer pixels than this for each unit, and nothing can be read.
const LEAST_SCALE: f32 = 0.5;
/// Most pixels of a picture: 160 MB while it is made.
const MOST_PIXELS: f32 = 40e6;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(SEMI_BOLD.to_vec());
    Arc::new(fonts)
});

/// A layout as PNG.
///
/// Refused are pictures that are too large (VER1402) and those that the painter refuses (VER1403).
pub fn png(layout: &Layout) -> Result<Vec<u8>> {
    let options =
        Options { fontdb: FONTS.clone(), font_family: "Inter".to_owned(), ..Options::default() };
    let tree = Tree::from_str(&document(layout, Reader::Painter), &options)
        .map_err(|error| unpainted(&error.to_string()))?;
    let size = tree.size();
    let scale = SCALE.min((MOST_PIXELS / (size.width() * size.height())).sqrt());
    if scale < LEAST_SCALE {
        let message =
            format!("{} by {} units are too many for pixels", size.width(), size.height());
        return Err(Diagnostic::error(codes::PICTURE_TOO_LARGE, message)
            .hint("an SVG of it can be made")
            .into());
    }
    let pixels = size.to_int_size().scale_by(scale);
    let mut canvas = pixels
        .and_then(|size| Pixmap::new(size.width(), size.height()))
        .ok_or_else(|| unpainted("there is no room for its pixels"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut canvas.as_mut());
    Ok(canvas.encode_png().map_err(|error| unpainted(&error.to_string()))?)
}

fn unpainted(message: &str) -> Diagnostic {
    Diagnostic::error(codes::PICTURE_UNPAINTED, message)
}
