//! What is known of a server: its greeting, and what its collation numbers mean.

use std::collections::HashMap;
use std::sync::Arc;

use crate::protocol::capability::{CapabilityFlags, StatusFlags};
use crate::protocol::packet::session_track::Wishes;
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
    /// In which era of the global variables it was greeted by: see [`Defaults`](super::Defaults).
    pub greeted: u64,
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
    /// The collation whose clients get that as well: a global character set was changed, and this is its default one.
    pub defaulting: Option<String>,
    /// What new sessions are told of changes.
    pub wishes: Arc<Wishes>,
    /// The sql_mode of new sessions, if the server has such a thing.
    pub sql_mode: Option<String>,
    /// New sessions run nothing, whoever they are of.
    pub begins_plain: bool,
    /// New sessions begin without autocommit.
    pub autocommit_off: bool,
    /// In which era of the global variables this was learned: see [`Defaults`](super::Defaults).
    pub as_of: u64,
}

impl ServerFacts {
    /// The character set of this collation, if it is one that no client can speak: the server refuses such a login.
    #[must_use]
    pub fn unspoken_charset(&self, collation: u16) -> Option<&str> {
        let known = self.settings.collations.get(&collation).map(|it| &*it.charset);
        known.filter(|charset| matches!(*charset, "ucs2" | "utf16" | "utf16le" | "utf32"))
    }

    /// The character sets of a connection whose client named this collation. A number that the server does not know
    /// gets the server's default, and so does on MySQL the collation that goes with it.
    #[must_use]
    pub fn charset(&self, collation: u16) -> Charset {
        match self.settings.collations.get(&collation) {
            Some(it) if self.settings.defaulting.as_deref() != Some(&*it.name) => Charset::names(&it.charset, &it.name),
            _ => self.settings.default_charset.clone(),
        }
    }

    /// The sql_mode of a new session whose client has these capabilities, spelled as the server does.
    #[must_use]
    pub fn sql_mode(&self, client: CapabilityFlags) -> Option<String> {
        const BEFORE: [&str; 3] = ["REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES"];
        const IGNORE_SPACE: &str = "IGNORE_SPACE";
        let server = self.settings.sql_mode.as_deref()?;
        let mut modes: Vec<&str> = server.split(',').filter(|mode| !mode.is_empty()).collect();
        if client.contains(CapabilityFlags::CLIENT_IGNORE_SPACE) && !modes.contains(&IGNORE_SPACE) {
            let at = modes.iter().take_while(|mode| BEFORE.contains(mode)).count();
            modes.insert(at, IGNORE_SPACE);
        }
        Some(modes.join(","))
    }

    /// Was there a login in this era of the global variables, so that all is known?
    #[must_use]
    pub fn is_complete(&self, era: u64) -> bool {
        !self.settings.collations.is_empty() && self.settings.as_of == era
    }

    /// Its version as a number: 80,017 is 8.0.17. 0: none that can be read.
    #[must_use]
    pub fn number(&self) -> u32 {
        version_number(&self.version)
    }

    /// Can the server report what a statement does to its session?
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
    }
}

/// A version as a number.
pub(super) fn version_number(version: &[u8]) -> u32 {
    // What MariaDB puts in front for old replicas.
    let text = version.strip_prefix(b"5.5.5-").unwrap_or(version);
    let mut parts = text.split(|byte| !byte.is_ascii_digit()).map(|part| {
        std::str::from_utf8(part).ok().and_then(|digits| digits.parse::<u32>().ok()).filter(|part| *part < 100)
    });
    match (parts.next().flatten(), parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor), Some(patch)) => major * 10_000 + minor * 100 + patch,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(sql_mode: Option<&str>) -> ServerFacts {
        ServerFacts {
            version: Vec::new(),
            capabilities: CapabilityFlags::empty(),
            collation: 45,
            status: StatusFlags::empty(),
            mariadb: false,
            greeted: 0,
            settings: Settings { sql_mode: sql_mode.map(Into::into), ..Settings::default() },
        }
    }

    #[test]
    fn a_client_that_ignores_space_has_it_in_its_mode_where_the_server_puts_it() {
        let (plain, ignoring) = (CapabilityFlags::empty(), CapabilityFlags::CLIENT_IGNORE_SPACE);
        for (server, wanted) in [
            ("", "IGNORE_SPACE"),
            ("STRICT_TRANS_TABLES", "IGNORE_SPACE,STRICT_TRANS_TABLES"),
            ("PIPES_AS_CONCAT,ANSI_QUOTES,NO_ZERO_DATE", "PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,NO_ZERO_DATE"),
            ("IGNORE_SPACE,NO_ZERO_DATE", "IGNORE_SPACE,NO_ZERO_DATE"),
        ] {
            assert_eq!(facts(Some(server)).sql_mode(plain).as_deref(), Some(server));
            assert_eq!(facts(Some(server)).sql_mode(ignoring).as_deref(), Some(wanted));
        }
        assert_eq!(facts(None).sql_mode(ignoring), None);
    }

    #[test]
    fn versions_as_numbers() {
        for (text, number) in [
            ("9.7.4", 90_704),
            ("8.0.17-debug", 80_017),
            ("8.0.36-28.1", 80_036),
            ("10.11.19-MariaDB-log", 101_119),
            ("5.5.5-10.6.12-MariaDB", 100_612),
            ("8.0", 0),
            ("8.0.1000", 0),
            ("mine", 0),
            ("", 0),
        ] {
            let facts = ServerFacts { version: text.into(), ..facts(None) };
            assert_eq!(facts.number(), number, "{text}");
        }
    }

    #[test]
    fn a_new_era_makes_facts_incomplete() {
        let mut facts = facts(None);
        assert!(!facts.is_complete(0));
        let collation = Collation { charset: "utf8mb4".into(), name: "utf8mb4_bin".into() };
        facts.settings.collations = Arc::new(HashMap::from([(46, collation)]));
        assert!(facts.is_complete(0) && !facts.is_complete(1));
    }
}
