//! The load generator behind `myriad bench`: drives many clients from few threads and measures what they see.
//!
//! One task a client, and no buffer while it idles or waits, so that 10,000 clients are cheap and a measurement of the
//! proxy is not a measurement of its load. A run has two halves: [`Fleet::connect`] logs everybody in at a steady
//! ramp and leaves them idle; [`Fleet::drive`] lets them ask for a while and says good-bye. [`run`] does both.
//! [`Remote`] does the same in a child process, so that the parent's memory and descriptors are the proxy's alone.
//!
//! Knows no proxy: anything that speaks the MySQL protocol is a target. Tested against the demo's embedded server.

mod bar;
mod client;
mod fleet;
mod login;
mod plan;
mod probe;
mod recorder;
mod remote;
mod report;
mod statement;
pub mod table;
mod turn;
mod usage;
mod work;

pub use bar::Bar;
pub use fleet::{Fleet, run};
pub use plan::{Plan, PlanError};
pub use probe::{ProbeError, first_row};
pub use remote::{Remote, RemoteError, WORKER, worker};
pub use report::{ErrorCount, FailureKind, Latency, Phase, Report, Snapshot};
pub use statement::{Statement, StatementError};
pub use work::Work;
