//! Who we are to a server: a user and its password.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use super::Opening;
use crate::protocol::auth::Secret;

/// A user at the server with its password, interned: the same user and password are the same account, so that
/// comparing two is comparing two numbers. Only whoever interns makes them.
#[derive(Debug)]
pub struct Account {
    /// Different for every account that was ever made by one [`AccountIds`]; never used twice.
    pub id: u64,
    /// The name at the server.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// What its sessions begin with, as learned at its last login.
    pub(super) opening: ArcSwapOption<Opening>,
}

impl Account {
    /// What its sessions begin with, if that was learned since this many doubts of its server.
    #[must_use]
    pub fn opening(&self, doubts: u64) -> Option<Arc<Opening>> {
        self.opening.load_full().filter(|opening| opening.as_of == doubts)
    }
}

impl PartialEq for Account {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Account {}

impl Hash for Account {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Gives every account its number.
#[derive(Debug, Default)]
pub struct AccountIds(AtomicU64);

impl AccountIds {
    /// A new account, different from all others.
    #[must_use]
    pub fn make(&self, user: &str, password: &Secret) -> Account {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        let (user, password) = (user.to_owned(), password.clone());
        Account { id, user, password, opening: ArcSwapOption::empty() }
    }
}
