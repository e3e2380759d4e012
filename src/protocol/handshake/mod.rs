//! Logging in, from either end. Pure: whole packets in, bytes and decisions out.
//!
//! ```text
//!  server                                    client
//!    | ---- greeting (nonce, plugin) --------> |
//!    | <--- [SSLRequest] --------------------- |   then TLS, and the rest inside it
//!    | <--- response (user, reply, ...) ------ |
//!    | ---- [AuthSwitchRequest] -------------> |   another plugin, another reply
//!    | ---- [AuthMoreData 4: the password] --> |   caching_sha2_password: inside TLS in clear,
//!    | <--- [2: your public key] ------------- |   else encrypted
//!    | ---- [AuthMoreData 3] OK, or ERR -----> |
//! ```
//!
//! [`ServerSide`] is us towards a client, [`ClientSide`] is us towards a server; the tests let one step the other in
//! every combination. Neither knows a socket or who the users are: they ask.

mod as_client;
mod as_server;
mod error;
mod login_request;
#[cfg(test)]
mod tests;

pub use as_client::{ClientSide, ClientStep, LoginSpec, ServerGreeting, TlsWish, fuzz_as_client};
pub use as_server::{Credentials, Greeting, Policy, ServerSide, Step, fuzz_as_server};
pub use error::{Answer, Fault, HandshakeError, LoginError};
pub use login_request::LoginRequest;

/// The largest packet either side sends before it is logged in: 64 KiB of attributes and some room.
///
/// Real ones are a few hundred bytes. Whoever reads packets checks it at the header, so that a stranger cannot make
/// us wait for 16 MiB.
pub const MAX_PACKET: usize = 72 << 10;
