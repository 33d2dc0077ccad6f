//! The page of diagnostics is generated from the codes, and never stale.

use std::fmt::Write as _;
use std::path::Path;

use veracity_diag::Code;

const SUBJECTS: [(&str, &str); 15] = [
    ("VER00", "Files"),
    ("VER01", "YAML"),
    ("VER02", "Containment and hashes"),
    ("VER03", "Bundle contract"),
    ("VER04", "Tensor data"),
    ("VER05", "ONNX files"),
    ("VER06", "Engines"),
    ("VER07", "Running"),
    ("VER08", "Comparing"),
    ("VER09", "Tracing"),
    ("VER10", "Exporting"),
    ("VER11", "Proving"),
    ("VER12", "Drift"),
    ("VER13", "Transforming"),
    ("VER14", "Pictures, robots and pages"),
];

/// Pages that cures speak of.
const PAGES: [(&str, &str); 2] = [
    ("\"My export is disproved\"", "[my export is disproved](how-to/disproved.md)"),
    ("the page on robots", "[a bundle and a robot](robot-contract.md#the-robot-file)"),
];

fn page() -> String {
    let mut page =
        "# Diagnostics\n\nEvery refusal and warning has one of these codes. A code never \
                    changes its meaning and is never\nreused. This page is generated: \
                    `VERACITY_UPDATE_DOCS=1 cargo test -p veracity-diag` writes it.\n"
            .to_owned();
    for (prefix, subject) in SUBJECTS {
        let _ = write!(page, "\n## {subject}\n");
        for (code, title) in Code::all() {
            if code.to_string().starts_with(prefix) {
                let _ = write!(page, "\n### {code}\n\n*{title}*\n\n{}", remedy(*code));
            }
        }
    }
    page
}

fn remedy(code: Code) -> String {
    let found = code.remedy().expect("every code has a remedy");
    let mut text = format!("- Cause: {}\n- Cure: {}\n", found.cause, found.cure);
    for (name, link) in PAGES {
        text = text.replace(name, link);
    }
    text
}

#[test]
fn the_page_of_diagnostics_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/diagnostics.md");
    if std::env::var_os("VERACITY_UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(
        found == page(),
        "stale: run `VERACITY_UPDATE_DOCS=1 cargo test -p veracity-diag` and commit the page"
    );
}

#[test]
fn every_code_has_a_subject() {
    for (code, title) in Code::all() {
        let text = code.to_string();
        assert!(SUBJECTS.iter().any(|(prefix, _)| text.starts_with(prefix)), "{code}: {title}");
    }
}
