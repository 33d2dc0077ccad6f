//! A server on the loopback address, asked as browsers and as strangers would.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use veracity_view::{Content, Frame, Server};

/// What came back.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn frame(label: &str, page: &str) -> Frame {
    Frame { label: label.to_owned(), page: page.to_owned(), notice: None }
}

fn content(frames: Vec<Frame>) -> Content {
    Content { title: "policy".to_owned(), frames, comparison: None }
}

fn start() -> Server {
    Server::start(content(vec![frame("proof.json", "<p>the page</p>")])).unwrap()
}

/// `127.0.0.1:PORT`, and the path that begins with the word.
fn parts(server: &Server) -> (&str, &str) {
    let rest = server.address().strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}

fn ask(server: &Server, request: &str) -> Answer {
    let mut stream = TcpStream::connect(parts(server).0).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

fn request(method: &str, path: &str, host: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// What is under the word, as a browser asks for it.
fn get(server: &Server, path: &str) -> Answer {
    let (host, word) = parts(server);
    ask(server, &request("GET", &format!("{word}{path}"), host))
}

#[test]
fn the_window_and_its_pages_are_under_the_word() {
    let server = start();
    let window = get(&server, "");
    assert_eq!(window.status, 200, "{}", window.head);
    assert!(
        window.body.contains("<iframe src=\"page/0\" title=\"proof.json\">"),
        "{}",
        window.body
    );
    assert!(window.body.contains("<title>policy</title>"), "{}", window.body);
    let page = get(&server, "page/0");
    assert_eq!((page.status, page.body.as_str()), (200, "<p>the page</p>"));
    for header in ["Cache-Control: no-store", "Referrer-Policy: no-referrer", "nosniff"] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    assert!(window.head.contains("frame-ancestors 'none'"), "{}", window.head);
    assert!(page.head.contains("default-src 'none'"), "{}", page.head);
}

#[test]
fn who_does_not_know_the_word_learns_nothing() {
    let server = start();
    let (host, word) = parts(&server);
    let other = word.replace(|digit: char| digit.is_ascii_digit(), "a");
    for path in ["/", "", "/page/0", "/favicon.ico", "/../etc/passwd", &other, &word[..9]] {
        let path = if path.is_empty() { "*" } else { path };
        let found = ask(&server, &request("GET", path, host));
        assert_eq!((found.status, found.body.as_str()), (404, "there is nothing here\n"), "{path}");
    }
}

#[test]
fn nothing_is_served_but_the_content() {
    let server = start();
    let strange = ["page/1", "page/-1", "page/", "page", "..", "page/../..", "%2e%2e/", "/", "x"];
    for path in strange {
        assert_eq!(get(&server, path).status, 404, "{path}");
    }
    for query in ["changes", "changes?since=", "changes?since=x", "changes?from=1"] {
        assert_eq!(get(&server, query).status, 400, "{query}");
    }
}

#[test]
fn requests_for_another_host_are_refused() {
    let server = start();
    let (host, word) = parts(&server);
    let port = host.split_once(':').unwrap().1;
    let ours = [host.to_owned(), format!("localhost:{port}"), format!("LOCALHOST:{port}")];
    for host in ours {
        assert_eq!(ask(&server, &request("GET", word, &host)).status, 200, "{host}");
    }
    let strangers = ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", ""];
    for host in strangers.map(str::to_owned).into_iter().chain([format!("evil.example:{port}")]) {
        let found = ask(&server, &request("GET", word, &host));
        assert_eq!(found.status, 403, "{host}");
        assert!(!found.body.contains("iframe"), "{host}");
    }
    let none = format!("GET {word} HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(ask(&server, &none).status, 403);
    let two =
        format!("GET {word} HTTP/1.1\r\nHost: {host}\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(ask(&server, &two).status, 403);
}

#[test]
fn there_is_nothing_to_write_to() {
    let server = start();
    let (host, word) = parts(&server);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let found = ask(&server, &request(method, word, host));
        assert_eq!(found.status, 405, "{method}");
        assert!(found.head.contains("Allow: GET, HEAD"), "{method}: {}", found.head);
    }
    let head = ask(&server, &request("HEAD", word, host));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn who_asks_for_changes_is_told_when_there_are_some() {
    let server = start();
    assert_eq!(get(&server, "changes?since=0").body, "1 1");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| get(&server, "changes?since=1"));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        server.publish(content(vec![frame("proof.json", "<p>another page</p>")]));
        assert_eq!(waiting.join().unwrap().body, "2 2");
    });
    assert_eq!(get(&server, "page/0").body, "<p>another page</p>");
}

#[test]
fn a_notice_is_shown_and_the_page_stays() {
    let server = start();
    let damaged =
        Frame { notice: Some("half a file".to_owned()), ..frame("proof.json", "<p>the page</p>") };
    server.publish(content(vec![damaged]));
    assert_eq!(get(&server, "changes?since=1").body, "2 1", "the page has its old number");
    assert!(get(&server, "above").body.contains("half a file"));
    assert_eq!(get(&server, "page/0").body, "<p>the page</p>");
}

#[test]
fn two_pages_stand_side_by_side_below_what_differs() {
    let frames = vec![frame("before", "<p>a</p>"), frame("after", "<p>b</p>")];
    let comparison = Some("<table></table>".to_owned());
    let server = Server::start(Content { comparison, ..content(frames) }).unwrap();
    let window = get(&server, "").body;
    for part in ["<table></table>", "src=\"page/0\"", "src=\"page/1\"", "before", "after"] {
        assert!(window.contains(part), "{part}: {window}");
    }
    assert_eq!(get(&server, "page/1").body, "<p>b</p>");
}

#[test]
fn a_page_was_shown_when_all_of_it_was_fetched() {
    let frames = vec![frame("before", "a"), frame("after", "b")];
    let server = Server::start(content(frames)).unwrap();
    let (host, word) = parts(&server);
    get(&server, "page/0");
    ask(&server, &request("HEAD", &format!("{word}page/1"), host));
    assert!(!server.was_shown());
    get(&server, "page/1");
    // The answer is on its way before the note is made.
    let noted = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        server.was_shown()
    });
    assert!(noted);
}

#[test]
fn each_server_has_a_word_of_its_own_and_is_gone_in_the_end() {
    let (one, other) = (start(), start());
    assert_ne!(parts(&one).1, parts(&other).1);
    let address = parts(&one).0.to_owned();
    let started = std::time::Instant::now();
    drop(one);
    assert!(started.elapsed() < Duration::from_secs(10));
    // The port may be somebody else's by now, but not this server's.
    if let Ok(mut stream) = TcpStream::connect(&address) {
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let _ = stream.write_all(request("GET", "/", &address).as_bytes());
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        assert!(!text.contains("tiny-http"), "{text}");
    }
}
