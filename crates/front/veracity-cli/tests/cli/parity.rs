//! `veracity parity`: which Python it hands over to, and that it ends as that one does.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{Desk, Said};

/// A desk with a Python that is a shell script.
fn desk(script: &str) -> Desk {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.path("venv/bin")).unwrap();
    std::fs::write(desk.path("venv/bin/python"), format!("#!/bin/sh\n{script}\n")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(desk.path("venv/bin/python"), mode).unwrap();
    desk
}

fn in_environment(desk: &Desk, arguments: &str) -> Command {
    let mut command = desk.command(arguments);
    command.env("VIRTUAL_ENV", desk.path("venv"));
    command
}

#[test]
fn the_answer_is_that_of_python() {
    for code in [0, 1, 2, 3, 130] {
        let desk = desk(&format!("[ $1 = -c ] || {{ echo \"$@\"; exit {code}; }}"));
        let said = Said::from(in_environment(&desk, "parity zoo:lstm --no-float64 --seed 7"));
        assert_eq!(said.code, code);
        assert!(said.stdout.starts_with("-m veracity.drift.command --seed=7 "), "{said:?}");
        assert!(said.stdout.ends_with(" --no-float64 -- zoo:lstm\n"), "{said:?}");
        assert_eq!(said.stderr, "");
        let said = Said::from(in_environment(&desk, "--quiet parity zoo:lstm"));
        assert!(said.stdout.starts_with("-m veracity.drift.command --quiet "), "{said:?}");
    }
}

#[test]
fn a_python_without_the_packages_is_refused() {
    for (script, part) in [
        ("[ $1 = -c ] && printf 'veracity, torch'; exit 0", "does not have veracity, torch"),
        ("echo broken >&2; exit 1", "cannot load veracity: broken"),
    ] {
        let said = Said::from(in_environment(&desk(script), "parity zoo:lstm"));
        assert_eq!((said.code, said.stdout.as_str()), (2, ""));
        assert!(said.stderr.contains("VER1234") && said.stderr.contains(part), "{said:?}");
        assert!(said.stderr.contains("activate the environment"), "{said:?}");
    }
}

#[test]
fn no_python_at_all_is_refused() {
    let desk = Desk::new();
    let mut command = desk.command("parity zoo:lstm");
    command.env("PATH", desk.path("empty"));
    let said = Said::from(command);
    assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    assert!(said.stderr.contains("VER1234") && said.stderr.contains("`python3`"), "{said:?}");
}
