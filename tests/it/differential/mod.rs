//! A differential tester of sessions: random scripts of many interleaved clients, whose every step runs on a private
//! connection and through the proxy, with fewer backends than clients. Every packet is compared.
//!
//! ```text
//!   seed -> author + kinds -> script -> theatre -> play -> world (the server itself), world (the proxy)
//!                                          |         +--> normal, tolerate: what may differ
//!                                          +--> shrink, show: what is left of a script that fails
//! ```
//!
//! [`leaks`] tests the tester. How to run it for long is in docs/TESTING.md.

mod author;
mod dice;
mod kinds;
mod leaks;
mod naive;
mod normal;
mod play;
mod script;
mod show;
mod shrink;
mod stage;
mod tally;
mod theatre;
mod tolerate;
mod world;

use crate::support::Kind;
use theatre::Plan;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb() {
    theatre::season(Kind::MariaDb, Plan::from_environment()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql() {
    theatre::season(Kind::MySql, Plan::from_environment()).await;
}
