//! One client from accept to goodbye.
//!
//! `listener` accepts within the limits, `login` greets and authenticates, `serve` is the loop: wait without a
//! buffer, answer here (`local`) or lease a backend (`lend`) and relay one turn. `registry` knows who is there,
//! so that a client can be killed, drained or counted. `reply` is the only place that words an error.

mod borrow;
mod chatter;
mod command;
mod door;
mod echo;
mod execute;
mod host;
mod kill;
mod kill_whom;
mod killer;
mod lend;
pub mod listener;
mod local;
mod login;
mod named;
mod opening;
mod own;
mod pace;
mod packets;
mod places;
mod prepare;
mod proofs;
mod recall;
pub mod registry;
mod remember;
pub mod reply;
mod routines;
mod schemas;
mod serve;
mod settle;
mod state;
mod statements;
mod tune;
mod turn;
mod turnstile;
mod unset;
pub mod users;
mod watch;

pub use chatter::Chatter;
pub use door::{Door, Proven, Settings};
pub use opening::Openings;
pub use pace::Pace;
pub use proofs::Proofs;
pub use remember::Remembered;
pub use routines::Routines;
pub use schemas::Schemas;

use host::Host;
