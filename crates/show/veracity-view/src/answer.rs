//! What is answered to a request. Whoever does not know the word in the path, or came through the
//! name of another host, learns nothing.

use std::time::Duration;

use crate::board::Board;
use crate::shell;
use crate::token::equal;

/// How long a question for changes stays open: less than what proxies and browsers give up after.
const PATIENCE: Duration = Duration::from_secs(20);

/// Nothing is fetched by a page, from wherever. Pages bring their scripts, styles and fonts.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src \
                           'unsafe-inline'; font-src data:; img-src data:; frame-ancestors 'self'";

/// What a request asks for, as far as it matters.
pub(crate) struct Asked<'r> {
    /// Whether it only reads: `GET` or `HEAD`.
    pub(crate) is_read: bool,
    /// The host that it is meant for; `None` when it names none or several.
    pub(crate) host: Option<&'r str>,
    /// Path and query.
    pub(crate) url: &'r str,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) policy: String,
    pub(crate) body: String,
    /// The page that it delivers.
    pub(crate) page: Option<usize>,
}

/// Who is asked.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Hosts that requests may be meant for: this machine, by number and by name. A page of somebody
    /// else whose name was made to lead here has another one.
    pub(crate) hosts: [String; 2],
    /// The first part of every path.
    pub(crate) token: String,
    /// What marks the scripts and styles that are ours.
    pub(crate) nonce: String,
}

impl Desk {
    pub(crate) fn answer(&self, asked: &Asked<'_>, board: &Board) -> Answer {
        let is_meant = |host: &str| self.hosts.iter().any(|ours| host.eq_ignore_ascii_case(ours));
        if !asked.host.is_some_and(is_meant) {
            return text(403, "this page is for the browsers of this machine\n");
        }
        if !asked.is_read {
            return text(405, "there is nothing here to write to\n");
        }
        let (path, query) = asked.url.split_once('?').unwrap_or((asked.url, ""));
        let path = path.strip_prefix('/').unwrap_or_default();
        let (token, rest) = path.split_once('/').unwrap_or((path, "-"));
        if equal(token, &self.token) { self.inside(rest, query, board) } else { nothing() }
    }

    fn inside(&self, path: &str, query: &str, board: &Board) -> Answer {
        match path {
            "" => self.window(board),
            "above" => html(shell::above(&board.shown().content), self.window_policy()),
            "changes" => changes(query, board),
            _ => {
                let index = path.strip_prefix("page/").and_then(|index| index.parse().ok());
                index.and_then(|index| page(index, board)).unwrap_or_else(nothing)
            }
        }
    }

    fn window(&self, board: &Board) -> Answer {
        html(shell::window(&board.shown(), &self.nonce), self.window_policy())
    }

    fn window_policy(&self) -> String {
        let nonce = &self.nonce;
        format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; frame-src \
             'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        )
    }
}

fn page(index: usize, board: &Board) -> Option<Answer> {
    let body = board.shown().content.frames.get(index)?.page.clone();
    Some(Answer { page: Some(index), ..html(body, PAGE_POLICY.to_owned()) })
}

/// Answers when something else is shown than what the other side knows: the number of the content,
/// then one for each page.
fn changes(query: &str, board: &Board) -> Answer {
    let since = query.strip_prefix("since=").and_then(|number| number.parse().ok());
    let Some(since) = since else { return text(400, "give `since`, a number\n") };
    match board.next(since, PATIENCE) {
        Some(numbers) => {
            text(200, &numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        }
        None => text(204, ""),
    }
}

fn nothing() -> Answer {
    text(404, "there is nothing here\n")
}

fn text(status: u16, body: &str) -> Answer {
    let policy = "default-src 'none'; frame-ancestors 'none'".to_owned();
    Answer { status, kind: "text/plain; charset=utf-8", policy, body: body.to_owned(), page: None }
}

fn html(body: String, policy: String) -> Answer {
    Answer { status: 200, kind: "text/html; charset=utf-8", policy, body, page: None }
}
