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

fn page() -> String {
    let mut page =
        "# Diagnostics\n\nEvery refusal and warning has one of these codes. A code never \
                    changes its meaning and is never\nreused. This page is generated: \
                    `VERACITY_UPDATE_DOCS=1 cargo test -p veracity-diag` writes it.\n"
            .to_owned();
    for (prefix, subject) in SUBJECTS {
        let _ = write!(page, "\n## {subject}\n\n| code | meaning |\n|---|---|\n");
        for (code, title) in Code::all() {
            if code.to_string().starts_with(prefix) {
                let _ = writeln!(page, "| {code} | {title} |");
            }
        }
    }
    page
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
