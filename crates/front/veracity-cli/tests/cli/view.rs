//! `veracity view`: served for real, asked over a socket.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bundle::{write_policy, write_recorded_policy};
use crate::support::Desk;

const CHECK: &str = "check policy --engine embedded";

/// The command while it runs; ended when it goes out of sight.
struct View {
    child: Child,
    host: String,
    word: String,
}

impl View {
    fn start(desk: &Desk, arguments: &str) -> Self {
        let mut command = desk.command(&format!("view {arguments} --no-open"));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://127.0.0.1:").expect(&line);
        let (port, word) = rest.split_once('/').unwrap();
        Self { child, host: format!("127.0.0.1:{port}"), word: format!("/{word}") }
    }

    /// The body of what stands at a path below the word.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let Self { host, word, .. } = self;
        let request =
            format!("GET {word}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Waits until something else than `version` is shown; gives the numbers of content and pages.
    fn next(&self, version: u64) -> Vec<u64> {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < Duration::from_mins(1), "nothing changes");
            let numbers = self.get(&format!("changes?since={version}"));
            if !numbers.is_empty() {
                return numbers.split(' ').map(|number| number.parse().unwrap()).collect();
            }
        }
    }

    /// Ends it as Ctrl-C does, and gives its exit code.
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn desk(wrong: f32) -> Desk {
    let desk = Desk::new();
    write_recorded_policy(&desk, wrong);
    desk
}

#[test]
fn the_page_is_that_of_the_report_until_ctrl_c() {
    let desk = desk(0.25);
    desk.run(&format!("{CHECK} --save --html page.html"));
    let view = View::start(&desk, "policy");
    assert!(view.get("page/0") == desk.read("page.html"));
    assert_eq!(view.interrupt(), Some(0), "what the page says is no business of the exit code");
}

#[test]
fn a_changed_file_is_shown_again() {
    let desk = desk(0.25);
    desk.run(&format!("{CHECK} --output proof.json"));
    let view = View::start(&desk, "proof.json");
    assert!(view.get("page/0").contains("class=\"verdict disproved\""));
    let tolerance = "--tolerance atol=1,rtol=0";
    desk.run(&format!("{CHECK} {tolerance} --output proof.json")).done();
    assert_eq!(view.next(1), [2, 2]);
    assert!(view.get("page/0").contains("class=\"verdict proved\""));
}

#[test]
fn half_a_file_leaves_the_page_and_is_said() {
    let desk = desk(0.0);
    desk.run(&format!("{CHECK} --output proof.json")).done();
    let whole = desk.read("proof.json");
    let view = View::start(&desk, "proof.json");
    let page = view.get("page/0");
    std::fs::write(desk.path("proof.json"), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(view.next(1), [2, 1], "the page has its old number");
    assert!(view.get("above").contains("this is the page of before"));
    assert!(view.get("page/0") == page);
    std::fs::write(desk.path("proof.json"), &whole).unwrap();
    assert_eq!(view.next(2), [3, 1]);
    assert_eq!(view.get("above"), "");
}

#[test]
fn a_bundle_without_a_proof_is_a_picture_and_no_verdict() {
    let desk = Desk::new();
    write_policy(&desk);
    let view = View::start(&desk, "policy");
    let page = view.get("page/0");
    assert!(page.contains("no proof"), "{page}");
    for part in ["<svg", "memory", "scale"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let marks = ["verdict proved", "verdict disproved", "class=\"proved", "class=\"disproved"];
    assert!(!marks.iter().any(|mark| page.contains(mark)), "{page}");
}

#[test]
fn a_proof_about_other_files_is_called_so() {
    let desk = desk(0.0);
    desk.run(&format!("{CHECK} --save")).done();
    let view = View::start(&desk, "policy");
    assert_eq!(view.get("above"), "");
    desk.edit("policy/policy.yaml", "frequency: 50", "frequency: 60");
    view.next(1);
    let above = view.get("above");
    assert!(above.contains("the proof is stale"), "{above}");
}

#[test]
fn a_damaged_model_is_said_beside_its_proof() {
    let desk = desk(0.0);
    desk.run(&format!("{CHECK} --save")).done();
    let view = View::start(&desk, "policy");
    let model = std::fs::read_dir(desk.path("policy")).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        (path.extension().is_some_and(|ending| ending == "onnx")).then_some(path)
    });
    let mut bytes = std::fs::read(model.as_ref().unwrap()).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(model.unwrap(), bytes).unwrap();
    view.next(1);
    let above = view.get("above");
    assert!(above.contains("the proof is about other files"), "{above}");
}

#[test]
fn two_proofs_stand_side_by_side_below_their_difference() {
    let desk = desk(0.25);
    desk.run(&format!("{CHECK} --output bad.json"));
    desk.run(&format!("{CHECK} --tolerance atol=1,rtol=0 --output good.json")).done();
    let view = View::start(&desk, "bad.json good.json");
    assert!(view.get("page/0").contains("class=\"verdict disproved\""));
    assert!(view.get("page/1").contains("class=\"verdict proved\""));
    let window = view.get("");
    for part in ["bad.json", "good.json", "<td class=\"good\">better</td>", "memory/action"] {
        assert!(window.contains(part), "{part}: {window}");
    }
}

#[test]
fn once_ends_when_the_page_was_fetched() {
    let desk = desk(0.0);
    desk.run(&format!("{CHECK} --output proof.json")).done();
    let mut view = View::start(&desk, "proof.json --once");
    view.get("");
    assert!(view.child.try_wait().unwrap().is_none(), "the window alone shows nothing");
    view.get("page/0");
    assert_eq!(view.child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let desk = desk(0.0);
    std::fs::write(desk.path("no.json"), "{}").unwrap();
    assert!(desk.run("view no.json").stderr.contains("error[VER1425]"));
    for arguments in ["view no.json", "view nowhere", "view policy nowhere", "view nowhere.json"] {
        let said = desk.run(&format!("{arguments} --no-open"));
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{arguments}");
        assert!(said.stderr.contains("error[VER"), "{arguments}: {}", said.stderr);
    }
}
