//! `veracity parity`: hands over to Python, where the module is.
//!
//! The Python is looked for and asked first whether it has what is needed: once it runs, its exit
//! code is the answer, and a Python that cannot start would read as "disproved".

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::ValueEnum as _;
use veracity::{Diagnostic, Refusal, codes};

use crate::cli::ParityArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Loads what is quick to load and prints the names of packages that are not there.
const PROBE: &str = "\
import importlib.util as u
missing = [n for n in ('veracity', 'torch', 'onnxscript') if u.find_spec(n) is None]
print(*missing, sep=', ', end='')
missing or __import__('veracity.drift')";
const MODULE: &str = "veracity.drift.command";

pub(super) fn execute(arguments: &ParityArgs, context: &Context) -> Result<Outcome, Failure> {
    let python = python(&|name| std::env::var_os(name), &|path| path.is_file());
    probe(&python)?;
    let mut command = Command::new(&python);
    let quiet = context.is_quiet().then_some("--quiet");
    command.args(["-m", MODULE]).args(quiet).args(forwarded(arguments));
    Ok(hand_over(&mut command, &python)?)
}

/// The Python of the active environment, or the one that the shell would find.
fn python(
    variable: &dyn Fn(&str) -> Option<OsString>,
    is_file: &dyn Fn(&PathBuf) -> bool,
) -> PathBuf {
    let (folder, name) = if cfg!(windows) { ("Scripts", "python.exe") } else { ("bin", "python") };
    let active = variable("VIRTUAL_ENV").filter(|prefix| !prefix.is_empty());
    let own = active.map(|prefix| PathBuf::from(prefix).join(folder).join(name));
    own.filter(is_file).unwrap_or_else(|| PathBuf::from("python3"))
}

/// Refuses a Python that is not there or lacks a package.
fn probe(python: &PathBuf) -> Result<(), Refusal> {
    let asked = Command::new(python).args(["-c", PROBE]).stdin(Stdio::null()).output();
    let shown = python.display();
    let answer = asked.map_err(|error| missing(&format!("`{shown}` cannot be run: {error}")))?;
    let lacking = String::from_utf8_lossy(&answer.stdout);
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stderr);
        let last = said.lines().last().unwrap_or("it says nothing");
        return Err(missing(&format!("`{shown}` cannot load veracity: {last}")));
    }
    if lacking.is_empty() {
        return Ok(());
    }
    Err(missing(&format!("`{shown}` does not have {lacking}")))
}

fn missing(message: &str) -> Refusal {
    Diagnostic::error(codes::PYTHON_MISSING, message)
        .hint("the module is torch code: activate the environment that it runs in, and install veracity there")
        .into()
}

/// The same arguments in the form that the module reads.
fn forwarded(arguments: &ParityArgs) -> Vec<OsString> {
    let mut list: Vec<OsString> = Vec::new();
    // One word each, so that a value that begins with a dash is not taken for an option.
    let mut option = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value.as_ref());
        list.push(word);
    };
    option("seed", &arguments.seed.to_string());
    option("tolerance", &format!("{:e}", arguments.tolerance));
    option("budget", &format!("{:e}", arguments.budget));
    option("memory", &arguments.memory);
    option("threads", &arguments.threads.to_string());
    option("engine", &arguments.engine);
    option("against", &arguments.against);
    let format = arguments.findings.format.to_possible_value();
    option("format", &format.map_or_else(String::new, |format| format.get_name().to_owned()));
    for shape in &arguments.input_shape {
        option("input-shape", shape);
    }
    let files = [
        ("onnx", &arguments.onnx),
        ("weights", &arguments.weights),
        ("tolerances", &arguments.tolerances),
        ("baseline", &arguments.findings.baseline),
        ("save", &arguments.findings.save),
        ("html", &arguments.findings.html),
        ("report-base", &arguments.findings.report_base),
        ("repro", &arguments.findings.repro),
    ];
    for (name, file) in files {
        if let Some(file) = file {
            option(name, file);
        }
    }
    if let Some(node) = &arguments.node {
        option("node", node);
    }
    if arguments.no_float64 {
        list.push("--no-float64".into());
    }
    list.push("--".into());
    list.push(arguments.target.clone().into());
    list
}

/// Becomes the other process, so that its exit code, signals and Ctrl-C are those of the command.
#[cfg(unix)]
fn hand_over(command: &mut Command, python: &std::path::Path) -> Result<Outcome, Refusal> {
    use std::os::unix::process::CommandExt as _;

    let error = command.exec();
    Err(missing(&format!("`{}` cannot be run: {error}", python.display())))
}

/// Waits for the other process and ends as it did.
#[cfg(not(unix))]
fn hand_over(command: &mut Command, python: &std::path::Path) -> Result<Outcome, Refusal> {
    let refused = |error| missing(&format!("`{}` cannot be run: {error}", python.display()));
    let status = command.status().map_err(refused)?;
    std::process::exit(status.code().unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn the_active_environment_comes_first() {
        let active = |name: &str| (name == "VIRTUAL_ENV").then(|| OsString::from("/venv"));
        let empty = |_: &str| Some(OsString::new());
        let name = if cfg!(windows) { "/venv/Scripts/python.exe" } else { "/venv/bin/python" };
        for (found, expected) in [
            (python(&active, &|_| true), name),
            (python(&active, &|_| false), "python3"),
            (python(&empty, &|_| true), "python3"),
            (python(&|_| None, &|_| true), "python3"),
        ] {
            assert_eq!(found, PathBuf::from(expected));
        }
    }

    #[test]
    fn every_argument_arrives_as_one_word() {
        let words = "veracity parity -- -odd:name";
        let given = "--seed 7 --tolerance 1e-6 --budget 8 --memory 1GB --threads 2 --engine ort \
             --against program --format md --input-shape 1,3 --input-shape 2 --onnx a.onnx --weights w.pt \
             --tolerances t.toml --baseline b.json --save s.json --html h.html --report-base r \
             --repro d --node n --no-float64";
        let words = words.replace("--", &format!("{given} --"));
        let Command::Parity(arguments) = Cli::parse_from(words.split_whitespace()).command else {
            panic!("another command");
        };
        let found: Vec<_> = forwarded(&arguments);
        let found: Vec<_> = found.iter().map(|word| word.to_str().unwrap()).collect();
        let expected = "--seed=7 --tolerance=1e-6 --budget=8e0 --memory=1GB --threads=2 \
             --engine=ort --against=program --format=md --input-shape=1,3 --input-shape=2 --onnx=a.onnx \
             --weights=w.pt --tolerances=t.toml --baseline=b.json --save=s.json --html=h.html \
             --report-base=r --repro=d --node=n --no-float64 -- -odd:name";
        assert_eq!(found.join(" "), expected.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}
