//! Pages in, HTTP out: shows pages to the browsers of this machine while they change.
//!
//! A [`Server`] listens on the loopback address, on a port that the system chooses, and answers `GET`
//! and `HEAD` below a path that cannot be guessed. It knows no files: what it serves is the
//! [`Content`] that it was given, and nothing that a request says reaches anything else.

mod answer;
mod board;
mod content;
mod server;
mod shell;
mod token;

pub use content::{Content, Frame};
pub use server::Server;
