//! Help, colours, exit codes, closed pipes: what all commands have in common.

use crate::assert_said;
use crate::bundle::{write_episode, write_policy};
use crate::support::{Desk, Said};

const COMMANDS: [&str; 10] = [
    "inspect",
    "verify",
    "check",
    "diff",
    "seal",
    "run",
    "bench",
    "compare",
    "view",
    "completions",
];

#[test]
fn the_help_lists_commands_and_exit_codes() {
    assert_said!(Desk::new().run("--help"), @"
    exit code 0
    ----- stdout -----
    Proves that an exported pipeline computes what the Python code computed, and runs it

    Usage: veracity [OPTIONS] <COMMAND>

    Commands:
      inspect      Show what is in a bundle: models, ports, wiring, hashes, versions
      draw         Draw a bundle: nodes with their ports, wiring, and what comes back a tick later
      verify       Refuse everything about a bundle that can be refused without running a model
      check        Prove a bundle on this machine: each node alone, then all of it over time
      diff         Say what changed between two proofs, or between two ONNX models
      seal         Record the hashes of a bundle's files anew, after changing it on purpose
      run          Step a bundle through an episode and say how long the steps took
      bench        Measure the step time of a bundle with separate and with merged sessions
      compare      Compare the tensors of two files by name
      parity       Compare a torch module with its ONNX export, operator by operator
      drift        Compare two ONNX models, engines or levels of optimisation, operator by operator
      rerun        Run a wrong operator again, from a folder that `--repro` wrote
      report       Make a page of results: one file, to look at and to hand on
      view         Show results in the browser, and show them again when they change
      transform    Change a model, or the ONNX nodes of a bundle, and prove each change
      bisect       Find the rewrite that makes a model wrong
      audit        Say what was done to a model, from its log
      reverse      Undo a transformation: the original, byte for byte
      passes       List the passes: what each does and what it promises about the numbers
      completions  Print a script that completes these commands in a shell

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --color <WHEN>  When to use colours; `auto` heeds `NO_COLOR`, `CLICOLOR_FORCE` and the
                          terminal [default: auto]
      -q, --quiet         Show answers and errors only: no warnings, no progress

    Exit codes:
      0  everything that was asked for holds, or was done
      1  disproved: a bundle is refused, or values lie outside of the tolerance
      2  could not run: wrong arguments, missing files, an engine that is not there
      3  inconclusive: nothing is wrong, but something could not be compared, or is
         right only under assumptions

    Examples:
      veracity inspect policy/
      veracity verify policy/ && veracity run policy/ --mock 0 --steps 1000
      veracity check policy/ --engine embedded
      veracity compare pytorch.npz veracity.npz --atol 1e-5 --rtol 1e-4
    ");
}

#[test]
fn the_help_of_a_command_starts_with_its_purpose_and_ends_with_examples() {
    let desk = Desk::new();
    for command in COMMANDS {
        let said = desk.run(&format!("{command} --help")).done();
        let examples = said.stdout.split("Examples:\n").nth(1).unwrap_or_default();
        assert!(examples.contains(&format!("  veracity {command} ")), "{said}");
        let overview = desk.run("--help").stdout;
        assert!(overview.contains(said.stdout.lines().next().unwrap()), "{said}");
    }
    assert!(desk.run("compare --help").stdout.contains("on purpose"));
}

#[test]
fn a_misspelt_command_gets_a_suggestion() {
    assert_said!(Desk::new().run("verfy policy"), @"
    exit code 2
    ----- stderr -----
    error: unrecognized subcommand 'verfy'

      tip: a similar subcommand exists: 'verify'

    Usage: veracity [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn the_version_is_that_of_the_workspace() {
    assert_said!(Desk::new().run("--version"), @"
    exit code 0
    ----- stdout -----
    veracity [version]
    ");
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let said = Desk::new().run(&format!("completions {shell}")).done();
        assert!(said.stdout.contains("ort-library"), "{shell}: {said}");
    }
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let desk = Desk::new();
    write_policy(&desk);
    for (option, variables, colored) in [
        ("", &[][..], false),
        ("", &["CLICOLOR_FORCE"], true),
        ("", &["NO_COLOR"], false),
        ("--color never", &["CLICOLOR_FORCE"], false),
        ("--color always", &["NO_COLOR"], true),
    ] {
        for arguments in ["inspect policy", "inspect nowhere"] {
            let mut command = desk.command(&format!("{arguments} {option}"));
            command.envs(variables.iter().map(|variable| (variable, "1")));
            let said = Said::from(command);
            let both = said.stdout + &said.stderr;
            assert_eq!(both.contains('\u{1b}'), colored, "{arguments} {option} {variables:?}");
        }
    }
}

#[test]
fn quiet_leaves_out_warnings_but_no_errors() {
    let desk = Desk::new();
    write_policy(&desk);
    desk.edit("policy/policy.yaml", "1.3", "1.9");
    for arguments in ["inspect policy", "check policy --engine embedded"] {
        assert!(desk.run(arguments).stderr.contains("warning["), "{arguments}");
        assert_eq!(desk.run(&format!("{arguments} --quiet")).stderr, "", "{arguments}");
    }
    assert!(desk.run("inspect nowhere -q").stderr.contains("error["));
}

#[test]
fn exit_codes_have_their_meaning() {
    let desk = Desk::new();
    write_policy(&desk);
    write_episode(&desk, 3);
    desk.tensors("nothing.npz", []);
    desk.run("run policy --engine embedded --mock 1 --steps 3 --outputs other.npz").done();
    let tolerance = "--atol 0 --rtol 0";
    for (arguments, code) in [
        ("verify policy".to_owned(), 0),
        (format!("compare expected.npz expected.npz {tolerance}"), 0),
        (format!("compare expected.npz other.npz {tolerance}"), 1),
        (format!("compare expected.npz episode.npz {tolerance}"), 3),
        (format!("compare nothing.npz nothing.npz {tolerance}"), 3),
        (format!("compare expected.npz gone.npz {tolerance}"), 2),
        ("compare expected.npz other.npz".to_owned(), 2),
        ("run policy".to_owned(), 2),
        ("bench nowhere".to_owned(), 2),
        ("check policy --engine embedded".to_owned(), 3),
        ("check policy --engine embedded --record --save".to_owned(), 0),
        ("check policy --rejudge".to_owned(), 2),
        ("diff policy policy".to_owned(), 0),
        ("diff policy nowhere".to_owned(), 2),
        ("seal policy".to_owned(), 0),
        ("nonsense".to_owned(), 2),
        (String::new(), 2),
    ] {
        assert_eq!(desk.run(&arguments).code, code, "{arguments}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let desk = Desk::new();
    write_policy(&desk);
    for arguments in ["inspect policy", "verify policy --format json", "completions bash", "--help"]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = desk.command(arguments);
        let status = command.stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(0), "{arguments}");
    }
}
