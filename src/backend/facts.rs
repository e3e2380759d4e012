//! What is known of a server: its greeting, and what its collation numbers mean.

use std::collections::HashMap;
use std::sync::Arc;

use crate::protocol::capability::{CapabilityFlags, StatusFlags};

/// A character set and one of its collations, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Collation {
    /// As in character_set_client.
    pub charset: Box<str>,
    /// As in collation_connection.
    pub name: Box<str>,
}

/// What is known of a server.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// As in its greeting.
    pub version: Vec<u8>,
    /// What it offers.
    pub capabilities: CapabilityFlags,
    /// The collation in its greeting.
    pub collation: u8,
    /// The status flags in its greeting.
    pub status: StatusFlags,
    /// MariaDB, or MySQL and kin.
    pub mariadb: bool,
    /// What collation numbers mean; empty until the first login.
    pub collations: Arc<HashMap<u16, Collation>>,
}

impl ServerFacts {
    /// Can the server report what a statement does to its session?
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
    }
}
