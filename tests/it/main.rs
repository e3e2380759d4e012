//! Integration tests: every one against a real MariaDB and a real MySQL, each with a proxy of its own on port 0.
//!
//! `tests/run` starts the servers and sets `MYRIAD_TEST_MARIADB` and `MYRIAD_TEST_MYSQL`; for a shell of one's own
//! `tests/run --servers` prints them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what a test has measured, for whoever asks to see it")]

mod aborts;
mod bytes;
mod crowd;
mod dialects;
mod drain;
mod globals;
mod interner;
mod kills;
mod limits;
mod login;
mod outages;
mod packets;
mod pins;
mod schema;
mod sharing;
mod state;
mod support;
