//! `system information`: what a bundle was made with, and the version of its format.
//!
//! 1.1, 1.2 and 1.3 are read. Another 1.x is read with a warning: a minor number counts additions,
//! and unknown keys are kept. Another major number is refused.

use veracity_diag::{Diagnostic, codes};

use super::fields;
use crate::yaml::{Node as YamlNode, Problems};
use crate::{FormatVersion, Spec};

const BLOCK: &str = "system information";
const VERSION: &str = "leapp config version";

/// Reads the block. `false` when the rest of the file is of a layout that is not known.
pub(super) fn read(root: &YamlNode, spec: &mut Spec, problems: &mut Problems<'_>) -> bool {
    let Some(block) = fields::required(root, BLOCK, "the bundle", root.span, problems) else {
        return true;
    };
    let Some(pairs) = fields::mapping(block, "`system information`", problems) else {
        return true;
    };
    spec.system = fields::extra(pairs, &[VERSION], problems);
    let Some(version) = block.get(VERSION).filter(|node| !node.is_null()) else {
        let message = format!("the bundle has no `{VERSION}`");
        let diagnostic = Diagnostic::error(codes::VERSION_MISSING, message)
            .hint("write `leapp config version: '1.3'` under `system information`");
        problems.add(block.span, diagnostic);
        return true;
    };
    let Some(version) = version_from(version, problems) else {
        return true;
    };
    spec.version = version;
    version.major == FormatVersion::default().major
}

fn version_from(node: &YamlNode, problems: &mut Problems<'_>) -> Option<FormatVersion> {
    // `1.3` without quotes is a number for YAML; its text is what counts.
    let text = node.scalar().map_or("", |scalar| &scalar.text);
    let Ok(version) = text.parse::<FormatVersion>() else {
        let message = format!("{text:?} is not a format version");
        problems.add(node.span, Diagnostic::error(codes::VERSION_UNSUPPORTED, message));
        return None;
    };
    let message = format!("format version {version} is not known; 1.1 to 1.3 are");
    if version.major != 1 {
        problems.add(node.span, Diagnostic::error(codes::VERSION_UNSUPPORTED, message));
    } else if !(1..=3).contains(&version.minor) {
        let warning = Diagnostic::warning(codes::VERSION_UNSUPPORTED, message)
            .hint("it is read as 1.3; what is new in it is not checked");
        problems.add(node.span, warning);
    }
    Some(version)
}
