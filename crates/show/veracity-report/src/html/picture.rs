//! A page of a bundle about which nothing is known: what it looks like, and that there is no proof.

use super::escape::escape;
use super::graph::{Drawing, graph};
use super::shell::Shell;

/// A bundle without a proof. `hint` says how to get one.
pub fn unproved(name: &str, hint: &str, drawing: Option<&Drawing>) -> String {
    let head = format!(
        "<p class=\"verdict\">no proof: nothing is known about this bundle</p>\n<p \
         class=\"quiet\">{}</p>\n",
        escape(hint)
    );
    let mut shell = Shell::new(name, &head);
    let picture = drawing.map_or_else(String::new, |drawing| graph(drawing, |_| None));
    shell.section("pipeline", "Pipeline", &picture);
    shell.finish()
}
