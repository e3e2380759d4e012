//! The role that is active on a connection. Measured: COM_RESET_CONNECTION leaves it as it is, on both servers; only a
//! login sets the account's own. So after each reset it is looked at, and a connection with another role than that of its
//! login is nobody else's.
//!
//! Which one that is can be changed for an account at any time (`SET DEFAULT ROLE`), for the logins that follow. So the first
//! login that comes with another role than those before it outgrows its account: it is not for the sessions of that one,
//! and those who come from then on share an account, and connections, of their own.

use super::{Account, Backend, Rows};

/// What asks for it, in hexadecimal; NULL or `NONE` where there is none.
pub(super) const ROLE: &str = "SELECT HEX(CONVERT(CURRENT_ROLE() USING utf8mb4)) LIMIT 1";

/// MySQL has roles since then (8.0.11), MariaDB since before it reported what statements do to a session.
const SINCE: u32 = 80_011;

/// The role of a connection.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// The server has such a thing.
    known: bool,
    at_login: Option<Vec<u8>>,
    now: Option<Vec<u8>>,
    /// Its login came with another role than the first one of its account.
    misfit: bool,
}

impl Role {
    /// Of a connection to such a server.
    #[must_use]
    pub fn of(mariadb: bool, version: u32) -> Self {
        Self { known: mariadb || version >= SINCE, ..Self::default() }
    }

    /// Whether the server has roles.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// What [`ROLE`] was answered.
    pub(super) fn note(&mut self, rows: &Rows) {
        self.now = rows.fields(0).into_iter().next().flatten();
    }

    /// The connection has just logged in as this account.
    pub(super) fn logged_in(&mut self, account: &Account) {
        self.misfit = !account.came_with(self.now.as_deref());
        self.at_login.clone_from(&self.now);
    }
}

impl Backend {
    /// Whether a reset has left another role than that of the login.
    #[must_use]
    pub fn has_strange_role(&self) -> bool {
        self.role.now != self.role.at_login
    }

    /// Whether its login came with another role than those of its account before: see [`Account::is_outgrown`].
    #[must_use]
    pub fn is_misfit(&self) -> bool {
        self.role.misfit
    }

    /// Whether this, as the server told it just now, is the role of the login.
    #[must_use]
    pub fn is_own_role(&self, role: Option<&[u8]>) -> bool {
        self.role.at_login.as_deref() == role
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_with_roles() {
        assert!(Role::of(true, 100_222).is_known() && Role::of(false, 90_704).is_known());
        assert!(!Role::of(false, 50_744).is_known() && !Role::of(false, 0).is_known());
    }
}
