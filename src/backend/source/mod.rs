//! Where connections come from: which address of this host is next, and which of its ports.
//!
//! Pure: no socket, no clock and no randomness of its own. [`Ledger`] is told what happens, and when, and says what to try.
//! `backend/dial` does the trying.
//!
//! ```text
//!                         take                 connected
//!   free ports of a line ──────▶ Place, tried ──────────▶ in use
//!      ▲  never used first,         │ refused: somebody     │
//!      │  then first freed          ▼ else has it           │ give_back
//!      └──────────────── the end of the queue ◀─────────────┘
//! ```
//!
//! A *line* is one address of ours to one address of a server: ports are scarce for each such pair, not for all together. A port
//! that was freed waits at the end of its queue, so that it is used again as late as possible: until then either side may
//! remember its last connection (TIME_WAIT).
//!
//! The system says no for three reasons ([`Refusal`]). None of them says anything about the server. After a few in a row the
//! line pauses for a while, and the others go on.
//!
//! Tests: tables of events, and random ones against a plain model.

mod ledger;
mod ports;
#[cfg(test)]
mod tests;

pub(super) use ledger::{Ledger, Place, Refusal, Shortage};
pub(super) use ports::Ports;
