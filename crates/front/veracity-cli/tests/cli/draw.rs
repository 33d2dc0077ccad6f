//! `veracity draw`.

use crate::assert_said;
use crate::bundle::write_policy;
use crate::support::Desk;

#[test]
fn pictures_lie_beside_the_bundle() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("draw policy"), @"
    exit code 0
    ----- stdout -----
    policy/policy.svg
    policy/policy.png
    ");
    let svg = desk.read("policy/policy.svg");
    for part in ["scale/scaled → memory/x", "memory/h_next → memory/h", "1 tick", "state/joint/"]
    {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("<title>proved</title>"), "there is no proof");
    let png = std::fs::read(desk.path("policy/policy.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    // The bundle does not mind them.
    desk.run("verify policy").done();
}

#[test]
fn verdicts_are_those_of_a_proof_that_is_about_the_bundle() {
    let desk = Desk::new();
    write_policy(&desk);
    desk.run("check policy --record --mock 1 --engine embedded --save").done();
    desk.run("draw policy -o recorded.svg").done();
    // Its runs repeat; nothing is known about the code that it came from.
    assert!(!desk.read("recorded.svg").contains("<title>proved</title>"));
}

#[test]
fn one_file_of_the_kind_that_its_ending_says() {
    let desk = Desk::new();
    write_policy(&desk);
    let said = desk.run("draw policy/policy.yaml -o one.PNG --format json").done();
    assert_eq!(said.json()["files"], serde_json::json!(["one.PNG"]));
    assert!(!desk.path("policy/policy.svg").exists());
    assert_said!(desk.run("draw policy -o one.gif"), @"
    exit code 2
    ----- stderr -----
    error[VER1404]: the ending of the file names no kind of picture
     --> one.gif
      = hint: let it end in `.svg` or `.png`
    ");
}

#[test]
fn the_same_bundle_gives_the_same_bytes() {
    let desk = Desk::new();
    write_policy(&desk);
    for ending in ["svg", "png"] {
        for name in ["a", "b"] {
            desk.run(&format!("draw policy -o {name}.{ending}")).done();
        }
        let bytes = |name: &str| std::fs::read(desk.path(&format!("{name}.{ending}"))).unwrap();
        assert!(bytes("a") == bytes("b"), "{ending}");
    }
}
