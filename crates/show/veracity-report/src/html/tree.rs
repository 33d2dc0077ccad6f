//! Modules inside of modules, to be unfolded.

use std::fmt::Write as _;

use veracity_results::ModuleGroup;

use super::escape::escape;
use crate::plain::count;

/// A tree of modules. Paths come from files, so that their depth is not trusted: no recursion.
pub(super) fn tree(modules: &[ModuleGroup<'_>], number: impl Fn(f64) -> String) -> String {
    if modules.is_empty() {
        return String::new();
    }
    let mut html = String::from("<div class=\"tree\">\n");
    let mut open = Vec::new();
    for (index, module) in modules.iter().enumerate() {
        while open.last().is_some_and(|depth| *depth >= module.depth) {
            open.pop();
            html += "</details>\n";
        }
        let line = line(module, &number);
        let has_inside = modules.get(index + 1).is_some_and(|next| next.depth > module.depth);
        if has_inside {
            // What is wrong is seen without a click.
            let unfolded = if module.group.disproved > 0 { " open" } else { "" };
            let _ = writeln!(html, "<details{unfolded}><summary>{line}</summary>");
            open.push(module.depth);
        } else {
            let _ = writeln!(html, "<div class=\"leaf\">{line}</div>");
        }
    }
    html + &"</details>\n".repeat(open.len()) + "</div>\n"
}

fn line(module: &ModuleGroup<'_>, number: &impl Fn(f64) -> String) -> String {
    let group = &module.group;
    let own = group.name.rsplit('.').next().unwrap_or_default();
    let name = if own.is_empty() { "(no module)".to_owned() } else { escape(own) };
    let wrong = match group.disproved {
        0 => String::new(),
        wrong => format!(", <strong class=\"disproved\">{wrong} disproved</strong>"),
    };
    let (rows, introduced) = (count(group.rows, "value"), escape(&number(group.introduced)));
    let accumulated = escape(&number(group.accumulated));
    format!(
        "<code>{name}</code> <span class=\"quiet\">{rows}, introduced {introduced}, accumulated \
         {accumulated}</span>{wrong}"
    )
}
