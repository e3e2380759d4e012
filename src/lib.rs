//! Myriad: a MySQL wire-protocol proxy and connection multiplexer.
//!
//! Many client connections come in, few backend connections go out. A session (the client's logical state) outlives
//! any lease on a backend; a lease lasts one turn (a command and its whole reply) unless something pins it.
//!
//! # The reading path of one query
//! 1. [`client`] accepts, authenticates, and waits without a buffer;
//! 2. [`sql`] lexes the statement, [`session`] decides what must be carried along;
//! 3. [`pool`] lends a backend, now or in strict order of arrival;
//! 4. [`relay`] writes restore + command in one go and streams the reply, looking at headers only ([`protocol`]);
//! 5. [`session`] observes what the server reported; without a pin the lease ends and the backend goes back.
//!
//! [`net`] owns sockets, [`backend`] one server connection, [`config`] the settings, [`metrics`] the numbers;
//! [`app`] builds every room once. docs/ARCHITECTURE.md has the map and the import rules.

pub mod app;
pub mod backend;
pub mod client;
pub mod config;
#[cfg(feature = "demo")]
pub mod demo;
pub mod load;
pub mod metrics;
pub mod net;
pub mod pool;
pub mod protocol;
pub mod relay;
pub mod session;
pub mod sql;
