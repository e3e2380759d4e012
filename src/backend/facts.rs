//! What is known of a server: its greeting, and what its collation numbers mean.

use std::collections::HashMap;
use std::sync::Arc;

use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::session::Charset;

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
    /// What only a session can tell; empty until the first login.
    pub settings: Settings,
}

/// What a logged-in session can tell of its server.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What collation numbers mean.
    pub collations: Arc<HashMap<u16, Collation>>,
    /// What a connection gets whose client names no collation that the server knows.
    pub default_charset: Charset,
    /// The sql_mode of new sessions.
    pub sql_mode: String,
}

impl ServerFacts {
    /// The character sets of a connection whose client named this collation. A number that the server does not know
    /// gets the server's default, as do character sets that no client can speak.
    #[must_use]
    pub fn charset(&self, collation: u16) -> Charset {
        let known = self
            .settings
            .collations
            .get(&collation)
            .filter(|it| !matches!(&*it.charset, "ucs2" | "utf16" | "utf16le" | "utf32"));
        match known {
            Some(it) => Charset::names(&it.charset, &it.name),
            None => self.settings.default_charset.clone(),
        }
    }

    /// Does the sql_mode of new sessions have this word?
    #[must_use]
    pub fn has_mode(&self, word: &str) -> bool {
        self.settings.sql_mode.split(',').any(|mode| mode.eq_ignore_ascii_case(word))
    }

    /// Was there a login, so that all is known?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.settings.collations.is_empty()
    }

    /// Can the server report what a statement does to its session?
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
    }
}
