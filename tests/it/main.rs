//! Integration tests: every one against a real MariaDB and a real MySQL, each with a proxy of its own on port 0.
//!
//! `tests/run` starts the servers and sets `MYRIAD_TEST_MARIADB` and `MYRIAD_TEST_MYSQL`; for a shell of one's own
//! `tests/run --servers` prints them.

#![allow(clippy::large_futures, reason = "only an idle client of the proxy must be small")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]
#![allow(clippy::disallowed_methods, reason = "here we are the clients")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it measured, compared or skipped")]

mod aborts;
mod bench;
mod bytes;
mod cases;
mod chatter;
mod compression;
mod conditions;
mod crowd;
mod dialects;
mod differential;
mod drain;
mod ended;
mod eras;
mod globals;
mod instances;
mod interner;
mod kill_whom;
mod kills;
mod leaks;
mod limits;
mod login;
mod named;
mod neverset;
mod openings;
mod outages;
mod packets;
mod page;
mod pins;
mod prepared;
mod query_cache;
mod questions;
mod roles;
mod scheduler;
mod schema;
mod session_mode;
mod sharing;
mod sources;
mod state;
mod storms;
mod support;
mod unseen;
mod uservars;
