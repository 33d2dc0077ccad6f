//! `veracity report`, and the pages that other commands write.

use crate::bundle::write_recorded_policy;
use crate::support::Desk;

const CHECK: &str = "check policy --engine embedded";

fn desk(wrong: f32) -> Desk {
    let desk = Desk::new();
    write_recorded_policy(&desk, wrong);
    desk
}

#[test]
fn a_proof_is_the_same_page_however_it_is_asked_for() {
    let desk = desk(0.25);
    let files = "--save --output proof.json --html checked.html";
    assert_eq!(desk.run(&format!("{CHECK} {files}")).code, 1);
    let page = desk.read("checked.html");
    assert!(page.contains("class=\"verdict disproved\""), "{page}");
    // What a page says is no business of the exit code.
    assert_eq!(desk.run("report proof.json").done().stdout, "report.html\n");
    desk.run("report policy -o of_bundle.html").done();
    for file in ["report.html", "of_bundle.html"] {
        assert!(desk.read(file) == page, "{file}");
    }
}

#[test]
fn what_holds_no_results_is_refused() {
    let desk = desk(0.0);
    for (name, text, code) in [
        ("no.json", "{}", "VER1425"),
        ("list.json", "[1]", "VER1425"),
        ("half.json", "{\"subject\": 1", "VER1425"),
        ("proof.json", "{\"subject\": 1, \"nodes\": []}", "VER1104"),
        ("drift.json", "{\"session\": 1, \"rows\": []}", "VER1213"),
        ("log.json", "{\"passes\": 1, \"records\": []}", "VER1336"),
    ] {
        std::fs::write(desk.path(name), text).unwrap();
        let said = desk.run(&format!("report {name}"));
        assert_eq!(said.code, 2, "{name}: {}", said.stderr);
        assert!(said.stderr.contains(code), "{name}: {}", said.stderr);
    }
    assert!(!desk.path("report.html").exists());
}

#[test]
fn nothing_that_is_needed_is_written_over() {
    let desk = desk(0.0);
    desk.run(&format!("{CHECK} --output proof.json")).done();
    let before = desk.read("proof.json");
    for target in ["proof.json", "policy", "missing/report.html"] {
        let said = desk.run(&format!("report proof.json -o {target}"));
        assert_eq!(said.code, 2, "{target}");
        assert!(said.stderr.contains("VER0003"), "{target}: {}", said.stderr);
    }
    assert_eq!(desk.read("proof.json"), before);
    let said = desk.run(&format!("{CHECK} --html policy/report.html"));
    assert!(said.stderr.contains("inside of the bundle"), "{}", said.stderr);
}
