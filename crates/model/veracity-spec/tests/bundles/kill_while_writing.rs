//! A writer that is killed at any moment leaves the old bundle or the new one, whole.
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{initial_values, spec};
use veracity_spec::{Bundle, BundleWriter, FileContent};

const TARGET: &str = "VERACITY_TEST_WRITE_FOREVER";
const KILLS: u32 = 50;

/// The two contents differ in every file, so a mixture of both cannot go unnoticed.
fn write(target: &Path, fill: u8) {
    let bytes = |length: usize| FileContent::Bytes(vec![fill; length]);
    let mut spec = spec();
    spec.configs.extra.insert("fill", i64::from(fill));
    BundleWriter::new(spec)
        .file("models/encoder.onnx".parse().unwrap(), bytes(300_000))
        .file("policy.pt".parse().unwrap(), bytes(100_000))
        .initial_values(initial_values())
        .write(target)
        .unwrap();
}

/// Runs only as the child of the test below.
#[test]
#[ignore = "never ends; run by `the_bundle_is_always_whole`"]
fn write_forever() {
    let Some(target) = std::env::var_os(TARGET) else { return };
    for round in 0_u32.. {
        write(Path::new(&target), if round.is_multiple_of(2) { 1 } else { 2 });
    }
}

fn start_writer(target: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "kill_while_writing::write_forever"])
        .env(TARGET, target)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until the child has replaced the bundle at least once.
fn wait_for_change(target: &Path, child: &mut Child) {
    use std::os::unix::fs::MetadataExt;

    let inode = |path: &Path| fs::metadata(path).map_or(0, |folder| folder.ino());
    let (before, start) = (inode(target), Instant::now());
    while inode(target) == before {
        assert!(child.try_wait().unwrap().is_none(), "the writer ended by itself");
        assert!(start.elapsed() < Duration::from_mins(1), "the writer writes nothing");
        sleep(Duration::from_micros(200));
    }
}

#[test]
fn the_bundle_is_always_whole() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("pick");
    write(&target, 0);
    let mut seen = [0; 3];
    // A fixed sequence spreads the kills over the next 65 milliseconds: several rounds.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..KILLS {
        let mut child = start_writer(&target);
        wait_for_change(&target, &mut child);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros(random >> 48));
        child.kill().unwrap();
        child.wait().unwrap();

        let bundle = Bundle::open(&target).unwrap();
        let warnings = bundle.verify().unwrap();
        assert!(warnings.is_empty(), "{}", crate::common::rendered(&warnings));
        let fill =
            bundle.spec().configs.extra.get("fill").and_then(veracity_spec::Value::as_f64).unwrap();
        seen[if fill < 0.5 {
            0
        } else if fill < 1.5 {
            1
        } else {
            2
        }] += 1;
    }
    assert!(seen[1] > 0 && seen[2] > 0, "kills hit both contents: {seen:?}");
    write(&target, 0);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "the next writer clears what killed ones left");
}
