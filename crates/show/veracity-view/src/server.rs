//! Listens, and hands requests to those who answer them.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Request, Response};
use veracity_diag::{Diagnostic, Result, codes};

use crate::answer::{Answer, Asked, Desk};
use crate::board::Board;
use crate::content::Content;
use crate::token::token;

/// Requests that are answered at the same time. A window with two pages has four at most.
const MAX_OPEN: usize = 64;

/// Shows content to the browsers of this machine until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: String,
    served: Arc<Served>,
    listener: Option<JoinHandle<()>>,
}

struct Served {
    http: tiny_http::Server,
    desk: Desk,
    board: Board,
    open: AtomicUsize,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("board", &self.board).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts to show content.
    pub fn start(content: Content) -> Result<Self> {
        let refused = |error: &dyn std::fmt::Display| {
            let message = format!("no page can be served on this machine: {error}");
            Diagnostic::error(codes::VIEW_UNSERVED, message)
        };
        let http = tiny_http::Server::http((Ipv4Addr::LOCALHOST, 0));
        let http = http.map_err(|error| refused(&error))?;
        let port = http.server_addr().to_ip().map(|address| address.port());
        let port = port.ok_or_else(|| refused(&"there is no port"))?;
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let desk = Desk { hosts, token: token()?, nonce: token()? };
        let address = format!("http://127.0.0.1:{port}/{}/", desk.token);
        let open = AtomicUsize::new(0);
        let served = Arc::new(Served { http, desk, board: Board::new(content), open });
        let listening = Arc::clone(&served);
        let listener = std::thread::Builder::new()
            .name("veracity-view".to_owned())
            .spawn(move || listen(&listening))
            .map_err(|error| refused(&error))?;
        Ok(Self { address, served, listener: Some(listener) })
    }

    /// The address to open. Who knows it sees the content.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Shows other content, wherever the window is open.
    pub fn publish(&self, content: Content) {
        self.served.board.put(content);
    }

    /// Whether every page has been delivered to somebody.
    pub fn was_shown(&self) -> bool {
        self.served.board.is_fetched()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.served.board.close();
        self.served.http.unblock();
        if let Some(listener) = self.listener.take() {
            // A listener that panicked has nothing left to end.
            let _ = listener.join();
        }
    }
}

fn listen(served: &Arc<Served>) {
    while !served.board.is_closed() {
        let Ok(request) = served.http.recv() else { continue };
        if served.open.fetch_add(1, Ordering::AcqRel) >= MAX_OPEN {
            served.open.fetch_sub(1, Ordering::AcqRel);
            // Whoever asks for so much can ask again.
            let _ = request.respond(Response::empty(503));
            continue;
        }
        // A thread each: an answer may wait for a change, or for a slow reader.
        let answering = Arc::clone(served);
        let answer = move || {
            respond(request, &answering);
            answering.open.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().spawn(answer).is_err() {
            // The request went with the thread; its reader sees a closed connection.
            served.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn respond(request: Request, served: &Served) {
    let answer = {
        let mut hosts = request.headers().iter().filter(|header| header.field.equiv("Host"));
        let host = hosts.next().filter(|_| hosts.next().is_none());
        let asked = Asked {
            is_read: matches!(request.method(), Method::Get | Method::Head),
            host: host.map(|header| header.value.as_str()),
            url: request.url(),
        };
        served.desk.answer(&asked, &served.board)
    };
    let is_whole = *request.method() == Method::Get;
    let page = answer.page;
    // A reader that went away has not seen the page.
    if request.respond(response(answer)).is_ok()
        && let Some(page) = page.filter(|_| is_whole)
    {
        served.board.note_fetched(page);
    }
}

fn response(answer: Answer) -> Response<std::io::Cursor<Vec<u8>>> {
    let headers = [
        ("Content-Type", answer.kind),
        ("Content-Security-Policy", &answer.policy),
        // Pages change, and nothing of them is to stay behind.
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        // The address is a secret.
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Allow", "GET, HEAD"),
    ];
    let headers = headers.map(|(name, value)| {
        Header::from_bytes(name, value).expect("names and values are ours, and ASCII")
    });
    let mut response = Response::from_data(answer.body.into_bytes())
        .with_status_code(answer.status)
        .with_chunked_threshold(usize::MAX);
    for header in headers {
        response.add_header(header);
    }
    response
}
