//! One connection to a server: dialing, logging in, asking it something.
//!
//! Knows sockets and packets and what a session's state is, but no client and no pool. A connection is made by the
//! [`Connector`] and is of one [`Class`]: connections of a class are interchangeable. Tested against real servers
//! and scripted ones in tests/.

mod account;
mod change_user;
mod class;
mod connection;
mod connector;
mod defaults;
mod dial;
mod eras;
mod error;
mod facts;
mod globals;
mod kill;
mod learn;
mod loan;
mod meeting;
mod named;
mod opening;
mod prepared;
mod query;
mod query_cache;
mod restore;
mod role;
mod source;

pub use account::{Account, AccountIds, Party};
pub use class::Class;
pub use connection::{Backend, Served};
pub use connector::Connector;
pub use defaults::Defaults;
pub use eras::Changing;
pub use error::OpenError;
pub use facts::{Collation, ServerFacts, Settings};
pub use globals::{GlobalChanges, Globals, GlobalsWatch};
pub use loan::{Answer, Loan, Settlement};
pub use named::NamesThere;
pub use opening::Opening;
pub use prepared::{Prepared, Wanted};
pub use query::{QueryError, Rows};
pub use restore::Prefix;
pub use role::Role;
