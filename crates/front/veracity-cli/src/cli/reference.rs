//! The page about the command line is made of the arguments themselves, and never stale.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::Cli;

const INTRODUCTION: &str = "\
# The command line

Answers go to stdout, everything else to stderr. This page is generated:
`VERACITY_UPDATE_DOCS=1 cargo test -p veracity-cli reference` writes it.
";

/// The heading of options that every command has; they are told once.
const GLOBAL: &str = "Global options";

fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| command | what it does |\n|---|---|\n");
    for command in commands(&root) {
        let (name, about) = (command.get_name(), about(command));
        let _ = writeln!(page, "| [`veracity {name}`](#veracity-{name}) | {about} |");
    }
    let _ = write!(page, "\n{}", text_block(&after_help(&root)));
    let _ = write!(page, "\n## {GLOBAL}\n\n{}", table("option", arguments(&root, Some(GLOBAL))));
    for command in commands(&root) {
        page.push_str(&section(command));
    }
    page
}

fn commands(root: &Command) -> impl Iterator<Item = &Command> {
    root.get_subcommands().filter(|command| !command.is_hide_set())
}

fn section(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let mut text = format!("\n## veracity {}\n\n{}.\n\n", command.get_name(), about(command));
    text.push_str(&text_block(usage));
    let positionals: Vec<&Arg> = command.get_positionals().collect();
    if !positionals.is_empty() {
        let _ = write!(text, "\n{}", table("argument", positionals));
    }
    let mut headings: Vec<Option<&str>> = Vec::new();
    for argument in command.get_opts().chain(flags(command)) {
        let heading = argument.get_help_heading();
        if heading != Some(GLOBAL) && !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        let title = heading.unwrap_or("option");
        let _ = write!(text, "\n{}", table(title, arguments(command, heading)));
    }
    let after = after_help(command);
    if !after.is_empty() {
        let _ = write!(text, "\n{}", text_block(&after));
    }
    text
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_positional() && !takes_value(argument))
}

/// Options under a heading, in the order in which they were written down.
fn arguments<'a>(command: &'a Command, heading: Option<&str>) -> Vec<&'a Arg> {
    let shown = |argument: &&Arg| {
        let asks = matches!(argument.get_action(), ArgAction::Help | ArgAction::Version);
        !argument.is_positional()
            && !argument.is_hide_set()
            && !asks
            && argument.get_help_heading() == heading
    };
    command.get_arguments().filter(shown).collect()
}

fn table(title: &str, arguments: Vec<&Arg>) -> String {
    let mut text = format!("| {} | what it means |\n|---|---|\n", title.to_lowercase());
    for argument in arguments {
        let _ = writeln!(text, "| {} | {} |", name(argument), meaning(argument));
    }
    text
}

/// As it is typed.
fn name(argument: &Arg) -> String {
    let value = argument.get_value_names().unwrap_or_default().join(" ");
    if argument.is_positional() {
        return format!("`{value}`");
    }
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let long = argument.get_long().unwrap_or_default();
    let value = if takes_value(argument) { format!(" {value}") } else { String::new() };
    format!("{short}`--{long}{value}`")
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let mut text = help.replace('\n', " ").replace('|', "\\|");
    let listed = |values: Vec<String>| values.join("`, `");
    let possible: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(|value| value.get_name().to_owned())
        .filter(|_| takes_value(argument))
        .collect();
    if !possible.is_empty() {
        let _ = write!(text, "; one of `{}`", listed(possible));
    }
    let default: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .filter(|_| takes_value(argument))
        .collect();
    if !default.is_empty() {
        let _ = write!(text, "; `{}` unless given", listed(default));
    }
    text
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn after_help(command: &Command) -> String {
    command.get_after_help().map(ToString::to_string).unwrap_or_default()
}

fn text_block(text: &str) -> String {
    format!("```text\n{}\n```\n", text.trim_end())
}

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/cli.md");
    if std::env::var_os("VERACITY_UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page(),
        "stale: run `VERACITY_UPDATE_DOCS=1 cargo test -p veracity-cli reference`"
    );
}

#[test]
fn every_argument_of_every_command_is_explained() {
    let mut root = Cli::command();
    root.build();
    for command in commands(&root) {
        assert!(!about(command).is_empty(), "{}", command.get_name());
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{} {argument}", command.get_name());
        }
    }
}
