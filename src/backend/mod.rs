//! One connection to a server: dialing, logging in, restoring a session, killing a statement.

mod account;

pub use account::{Account, AccountIds};
