//! Who we are to a server: a user and its password.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

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
    /// Whose connections these are.
    pub party: Party,
    /// What its sessions begin with, as learned at its last login.
    pub(super) opening: ArcSwapOption<Opening>,
    /// Which variables it may set, of those that had another default once.
    settable: Mutex<HashMap<Box<str>, bool>>,
}

/// Who shares the server with others: a user of the proxy, with what it may have of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// The name that its clients give.
    pub name: Arc<str>,
    /// Is it in the configuration?
    pub listed: bool,
    /// Its part, where several parties wait. Zero counts as one.
    pub weight: u32,
    /// Connections at once; zero is no limit of its own.
    pub max_connections: usize,
    /// Commands in line at once; zero is no limit of its own.
    pub max_waiting: usize,
}

impl Account {
    /// What its sessions begin with, if that was learned in this era of the global variables.
    #[must_use]
    pub fn opening(&self, era: u64) -> Option<Arc<Opening>> {
        self.opening.load_full().filter(|opening| opening.as_of == era)
    }

    /// May it set this variable of its sessions, as far as it was tried?
    pub(super) fn may_set(&self, name: &str) -> bool {
        self.settable.lock().get(name).copied().unwrap_or(false)
    }

    pub(super) fn has_tried(&self, name: &str) -> bool {
        self.settable.lock().contains_key(name)
    }

    /// It tried to set this variable, and the server has accepted that or not.
    pub(super) fn tried(&self, name: &str, accepted: bool) {
        self.settable.lock().insert(name.into(), accepted);
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
    pub fn make(&self, user: &str, password: &Secret, party: Party) -> Account {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        let (user, password) = (user.to_owned(), password.clone());
        Account { id, user, password, party, opening: ArcSwapOption::empty(), settable: Mutex::default() }
    }
}
