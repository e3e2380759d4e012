//! Who may come in, with which password, how many at once, and as whom at the server.
//!
//! `auth.mode = "users"`: the configuration knows. `"passthrough"`: the server knows, and what it has confirmed is
//! remembered for a while, at most so many, oldest out; memory is zeroised when an entry goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;

use crate::backend::{Account, AccountIds};
use crate::config;
use crate::protocol::auth::Secret;
use crate::protocol::handshake::Credentials;

/// Everybody who may come in.
#[derive(Debug)]
pub struct Users {
    mode: config::AuthMode,
    listed: HashMap<String, Listed>,
    remembered: Mutex<Remembered>,
    accounts: Mutex<Accounts>,
}

/// One of `[[auth.users]]`.
#[derive(Debug)]
struct Listed {
    password: Secret,
    backend_user: Option<String>,
    max_clients: usize,
    clients: Arc<AtomicUsize>,
}

impl Users {
    /// As configured; nothing remembered yet.
    #[must_use]
    pub fn new(auth: &config::Auth) -> Self {
        let listed = auth.users.iter().map(|user| {
            let listed = Listed {
                password: Secret::from(user.password.as_str()),
                backend_user: user.backend_user.clone(),
                max_clients: user.max_clients,
                clients: Arc::default(),
            };
            (user.name.clone(), listed)
        });
        Self {
            mode: auth.mode,
            listed: listed.collect(),
            remembered: Mutex::new(Remembered::new(auth.remember, auth.remember_max)),
            accounts: Mutex::default(),
        }
    }

    /// Are passwords taken from clients and verified by the server?
    #[must_use]
    pub fn is_passthrough(&self) -> bool {
        self.mode == config::AuthMode::Passthrough
    }

    /// What is known about a user.
    #[must_use]
    pub fn look_up(&self, user: &str, now: Instant) -> Credentials {
        match self.mode {
            config::AuthMode::Users => {
                self.listed.get(user).map_or(Credentials::Nobody, |it| Credentials::Known(it.password.clone()))
            }
            config::AuthMode::Passthrough => {
                self.remembered.lock().get(user, now).map_or(Credentials::Unknown, Credentials::Remembered)
            }
        }
    }

    /// The server has confirmed this password. Does nothing in `users` mode.
    pub fn remember(&self, user: &str, password: &Secret, now: Instant) {
        if self.mode == config::AuthMode::Passthrough {
            self.remembered.lock().put(user, password, now);
        }
    }

    /// The server has refused this password. If another has been confirmed since, that one stays.
    pub fn forget(&self, user: &str, password: &Secret) {
        self.remembered.lock().forget(user, password);
    }

    /// Who a user is to the server. The same user and password give the same account for as long as anybody holds it.
    #[must_use]
    pub fn account(&self, user: &str, password: &Secret) -> Arc<Account> {
        let listed = self.listed.get(user).and_then(|it| it.backend_user.as_deref());
        self.accounts.lock().intern(listed.unwrap_or(user), password)
    }

    /// Counts one more client of this user, until the slot is dropped.
    ///
    /// # Errors
    /// If that would be more than the user's `max_clients`.
    pub fn enter(&self, user: &str) -> Result<UserSlot, UserLimit> {
        match self.listed.get(user) {
            Some(it) => it.enter(),
            None => Ok(UserSlot(None)),
        }
    }
}

impl Listed {
    fn enter(&self) -> Result<UserSlot, UserLimit> {
        let limit = if self.max_clients == 0 { usize::MAX } else { self.max_clients };
        let one_more = |clients| if clients < limit { Some(clients + 1) } else { None };
        match self.clients.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(UserSlot(Some(Arc::clone(&self.clients)))),
            Err(_) => Err(UserLimit { limit }),
        }
    }
}

/// The right of one client to be here.
#[derive(Debug)]
#[must_use = "dropping it gives the place away"]
pub struct UserSlot(Option<Arc<AtomicUsize>>);

impl Drop for UserSlot {
    fn drop(&mut self) {
        if let Some(clients) = &self.0 {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The user has as many clients as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the user has {limit} clients, which is its max_clients in [[auth.users]]")]
pub struct UserLimit {
    /// What the configuration says.
    pub limit: usize,
}

/// Passwords that the server has confirmed, by user.
#[derive(Debug)]
struct Remembered {
    keep: Duration,
    max: usize,
    by_user: HashMap<String, Confirmed>,
    /// Users by the order of their confirmation, which is also the order in which they expire.
    by_age: BTreeMap<u64, String>,
    next: u64,
}

#[derive(Debug)]
struct Confirmed {
    password: Secret,
    at: Instant,
    age: u64,
}

impl Remembered {
    fn new(keep: Duration, max: usize) -> Self {
        Self { keep, max, by_user: HashMap::new(), by_age: BTreeMap::new(), next: 0 }
    }

    fn get(&mut self, user: &str, now: Instant) -> Option<Secret> {
        self.expire(now);
        self.by_user.get(user).map(|it| it.password.clone())
    }

    fn put(&mut self, user: &str, password: &Secret, now: Instant) {
        self.expire(now);
        self.remove(user);
        if self.max == 0 {
            return;
        }
        while self.by_user.len() >= self.max && self.drop_oldest() {}
        let age = self.next;
        self.next += 1;
        self.by_age.insert(age, user.to_owned());
        self.by_user.insert(user.to_owned(), Confirmed { password: password.clone(), at: now, age });
    }

    fn forget(&mut self, user: &str, password: &Secret) {
        if self.by_user.get(user).is_some_and(|it| it.password == *password) {
            self.remove(user);
        }
    }

    fn remove(&mut self, user: &str) {
        if let Some(gone) = self.by_user.remove(user) {
            self.by_age.remove(&gone.age);
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let oldest = self.by_age.pop_first();
        oldest.is_some_and(|(_, user)| self.by_user.remove(&user).is_some())
    }

    fn expire(&mut self, now: Instant) {
        while let Some((_, user)) = self.by_age.first_key_value()
            && self.by_user.get(user).is_none_or(|it| now.saturating_duration_since(it.at) >= self.keep)
        {
            self.drop_oldest();
        }
    }
}

/// Accounts in use, by user; usually one each, more while a password changes.
#[derive(Debug, Default)]
struct Accounts {
    ids: AccountIds,
    by_user: HashMap<String, Vec<Weak<Account>>>,
    /// When there are this many users, those whose accounts are gone are swept out.
    sweep_at: usize,
}

impl Accounts {
    /// Never sweeps fewer.
    const SWEEP_MIN: usize = 64;

    fn intern(&mut self, user: &str, password: &Secret) -> Arc<Account> {
        if self.by_user.len() >= self.sweep_at {
            self.by_user.retain(|_, accounts| accounts.iter().any(|it| it.strong_count() > 0));
            self.sweep_at = Self::SWEEP_MIN.max(2 * self.by_user.len());
        }
        let accounts = self.by_user.entry(user.to_owned()).or_default();
        accounts.retain(|it| it.strong_count() > 0);
        if let Some(same) = accounts.iter().filter_map(Weak::upgrade).find(|it| it.password == *password) {
            return same;
        }
        let account = Arc::new(self.ids.make(user, password));
        accounts.push(Arc::downgrade(&account));
        account
    }
}
