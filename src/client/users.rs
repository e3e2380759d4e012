//! Who may come in, with which password, how many at once, and as whom at the server.
//!
//! `auth.mode = "users"`: the configuration knows. `"passthrough"`: the server knows, and what it has confirmed is
//! remembered for a while, at most so many, oldest out; memory is zeroised when an entry goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;

use super::places::{Place, Places};
use crate::backend::{Account, AccountIds, Party};
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
    /// When accounts were last changed at the server.
    renewed: Mutex<Option<Instant>>,
}

/// One of `[[auth.users]]`.
#[derive(Debug)]
struct Listed {
    password: Secret,
    party: Party,
    backend_user: Option<String>,
    places: Places,
}

impl Users {
    /// As configured; nothing remembered yet.
    #[must_use]
    pub fn new(auth: &config::Auth) -> Self {
        let listed = auth.users.iter().map(|user| {
            let listed = Listed {
                password: Secret::from(user.password.as_str()),
                party: Party {
                    name: user.name.as_str().into(),
                    listed: true,
                    weight: user.weight,
                    max_connections: user.max_connections,
                    max_waiting: user.max_waiting,
                },
                backend_user: user.backend_user.clone(),
                places: Places::new(user.max_clients),
            };
            (user.name.clone(), listed)
        });
        Self {
            mode: auth.mode,
            listed: listed.collect(),
            remembered: Mutex::new(Remembered::new(auth.remember, auth.remember_max)),
            accounts: Mutex::default(),
            renewed: Mutex::default(),
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

    /// The server has confirmed this password, by a login that began at `began`. Does nothing in `users` mode.
    pub fn remember(&self, user: &str, password: &Secret, began: Instant, now: Instant) {
        if self.is_passthrough() && self.is_current(began) {
            self.remembered.lock().put(user, password, now);
        }
    }

    /// Has the server confirmed this password not long ago?
    #[must_use]
    pub fn has_proven(&self, user: &str, password: &Secret, now: Instant) -> bool {
        self.is_passthrough() && self.remembered.lock().get(user, now).is_some_and(|known| known == *password)
    }

    /// The server has refused this password. If another has been confirmed since, that one stays.
    pub fn forget(&self, user: &str, password: &Secret) {
        self.remembered.lock().forget(user, password);
    }

    /// Who a user is to the server. The same user and password give the same account for as long as anybody holds it.
    #[must_use]
    pub fn account(&self, user: &str, password: &Secret) -> Arc<Account> {
        let (backend_user, party) = self.at_the_server(user);
        self.accounts.lock().intern(backend_user, password, &party)
    }

    /// Who a user is to the server, and whose connections those are.
    fn at_the_server<'a>(&'a self, user: &'a str) -> (&'a str, Party) {
        match self.listed.get(user) {
            Some(it) => (it.backend_user.as_deref().unwrap_or(user), it.party.clone()),
            None => (user, Party { name: user.into(), ..Party::default() }),
        }
    }

    /// An account of its own, whatever others there are with the same password: no connection that was opened before can
    /// stand in for the login that proves it.
    #[must_use]
    pub fn unproven_account(&self, user: &str, password: &Secret) -> Arc<Account> {
        let (backend_user, party) = self.at_the_server(user);
        Arc::new(self.accounts.lock().ids.make(backend_user, password, party))
    }

    /// The server has let this account in, by a login that began at `began`. Returns the account that from now on is the one
    /// for its user and password: this one, or one that was proven meanwhile, so that clients who come together share
    /// their connections.
    #[must_use]
    pub fn adopt_account(&self, account: &Arc<Account>, began: Instant) -> Arc<Account> {
        let mut accounts = self.accounts.lock();
        if !self.is_current(began) {
            return Arc::clone(account);
        }
        let known = accounts.by_user.entry(Arc::clone(&account.party.name)).or_default();
        let proven_since = |it: &&Interned| it.proven.is_some_and(|proven| proven >= began);
        let same = known.iter().filter(proven_since).filter_map(|it| it.account.upgrade());
        if let Some(same) = same.into_iter().find(|it| it.password == account.password && !it.is_outgrown()) {
            return same;
        }
        known.insert(0, Interned { account: Arc::downgrade(account), proven: Some(Instant::now()) });
        Arc::clone(account)
    }

    /// Accounts or their rights were changed at the server: passwords are proven anew, and whoever comes from now on gets
    /// connections that are opened from now on. Those who are here keep theirs, as they would have without a proxy.
    pub fn renew(&self) {
        *self.renewed.lock() = Some(Instant::now());
        self.remembered.lock().clear();
        self.accounts.lock().by_user.clear();
    }

    /// The account that clients share now which log in as this one did: itself, unless accounts were changed since.
    #[must_use]
    pub fn current(&self, account: &Arc<Account>) -> Arc<Account> {
        self.accounts.lock().intern(&account.user, &account.password, &account.party)
    }

    /// Does what was proven by a login that began at `began` still hold?
    fn is_current(&self, began: Instant) -> bool {
        self.renewed.lock().is_none_or(|renewed| began > renewed)
    }

    /// Counts one more client of this user, until the place is dropped.
    ///
    /// # Errors
    /// If that would be more than the user's `max_clients`.
    pub fn enter(&self, user: &str) -> Result<Place, UserLimit> {
        match self.listed.get(user) {
            Some(it) => it.places.take().map_err(|limit| UserLimit { limit }),
            None => Ok(Place::unlimited()),
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

    fn clear(&mut self) {
        self.by_user.clear();
        self.by_age.clear();
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
    by_user: HashMap<Arc<str>, Vec<Interned>>,
    /// When there are this many users, those whose accounts are gone are swept out.
    sweep_at: usize,
}

#[derive(Debug)]
struct Interned {
    account: Weak<Account>,
    /// When the server let it in, in `passthrough` mode.
    proven: Option<Instant>,
}

impl Interned {
    fn is_held(&self) -> bool {
        self.account.strong_count() > 0
    }
}

impl Accounts {
    /// Never sweeps fewer.
    const SWEEP_MIN: usize = 64;

    fn intern(&mut self, user: &str, password: &Secret, party: &Party) -> Arc<Account> {
        if self.by_user.len() >= self.sweep_at {
            self.by_user.retain(|_, accounts| accounts.iter().any(Interned::is_held));
            self.sweep_at = Self::SWEEP_MIN.max(2 * self.by_user.len());
        }
        let accounts = self.by_user.entry(Arc::clone(&party.name)).or_default();
        accounts.retain(Interned::is_held);
        let same = |it: &Arc<Account>| it.password == *password && !it.is_outgrown();
        if let Some(same) = accounts.iter().filter_map(|it| it.account.upgrade()).find(same) {
            return same;
        }
        let account = Arc::new(self.ids.make(user, password, party.clone()));
        accounts.push(Interned { account: Arc::downgrade(&account), proven: None });
        account
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    const KEEP: Duration = Duration::from_secs(600);

    fn user(name: &str, max_clients: usize, backend_user: Option<&str>) -> config::User {
        let password = Zeroizing::new(format!("{name}-secret"));
        config::User {
            name: name.into(),
            password,
            max_clients,
            backend_user: backend_user.map(str::to_owned),
            ..config::User::default()
        }
    }

    fn users(mode: config::AuthMode, remember_max: usize) -> Users {
        let users = vec![user("app", 2, None), user("web", 0, Some("app"))];
        Users::new(&config::Auth { mode, remember: KEEP, remember_max, private_key: None, users })
    }

    fn remembered(users: &Users, user: &str, now: Instant) -> Option<Secret> {
        match users.look_up(user, now) {
            Credentials::Remembered(password) => Some(password),
            Credentials::Unknown => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn listed_users_are_known_and_nobody_else_is() {
        let (users, now) = (users(config::AuthMode::Users, 10), Instant::now());
        assert!(matches!(users.look_up("app", now), Credentials::Known(it) if it == Secret::from("app-secret")));
        for name in ["App", "app ", "", "root"] {
            assert!(matches!(users.look_up(name, now), Credentials::Nobody), "{name}");
        }
        users.remember("root", &Secret::from("x"), now, now);
        assert!(matches!(users.look_up("root", now), Credentials::Nobody), "the list is all there is");
    }

    #[test]
    fn a_confirmed_password_is_remembered_for_its_time() {
        let (users, start) = (users(config::AuthMode::Passthrough, 10), Instant::now());
        let password = Secret::from("x");
        assert_eq!(remembered(&users, "app", start), None, "not even listed users are known");
        users.remember("app", &password, start, start);
        assert_eq!(remembered(&users, "app", start + KEEP - Duration::from_secs(1)), Some(password.clone()));
        assert_eq!(remembered(&users, "app", start + KEEP), None);
        assert!(users.remembered.lock().by_user.is_empty(), "and its memory is gone");

        users.remember("app", &password, start, start);
        users.remember("app", &password, start + KEEP / 2, start + KEEP / 2);
        assert_eq!(remembered(&users, "app", start + KEEP), Some(password), "confirming again starts the time again");
        assert_eq!(remembered(&users, "app", start + KEEP * 2), None);
    }

    #[test]
    fn the_oldest_make_room() {
        let (users, now) = (users(config::AuthMode::Passthrough, 3), Instant::now());
        for name in ["a", "b", "c"] {
            users.remember(name, &Secret::from(name), now, now);
        }
        users.remember("a", &Secret::from("a2"), now, now);
        users.remember("d", &Secret::from("d"), now, now);
        let left: Vec<_> = ["a", "b", "c", "d"].into_iter().filter_map(|name| remembered(&users, name, now)).collect();
        assert_eq!(left, ["a2", "c", "d"].map(Secret::from));
        let inside = users.remembered.lock();
        assert_eq!((inside.by_user.len(), inside.by_age.len()), (3, 3));
    }

    #[test]
    fn nothing_is_remembered_if_nothing_may_be() {
        let (users, now) = (users(config::AuthMode::Passthrough, 0), Instant::now());
        users.remember("app", &Secret::from("x"), now, now);
        assert_eq!(remembered(&users, "app", now), None);
    }

    #[test]
    fn only_the_password_that_was_refused_is_forgotten() {
        let (users, now) = (users(config::AuthMode::Passthrough, 10), Instant::now());
        users.remember("app", &Secret::from("new"), now, now);
        users.forget("app", &Secret::from("old"));
        users.forget("nobody", &Secret::from("old"));
        assert_eq!(remembered(&users, "app", now), Some(Secret::from("new")));
        users.forget("app", &Secret::from("new"));
        assert_eq!(remembered(&users, "app", now), None);
        assert!(users.remembered.lock().by_age.is_empty());
    }

    #[test]
    fn after_a_change_of_accounts_everything_is_proven_anew() {
        let users = users(config::AuthMode::Passthrough, 10);
        let (password, before) = (Secret::from("x"), Instant::now());
        let old = users.account("app", &password);
        users.remember("app", &password, before, before);
        users.renew();
        assert_eq!(remembered(&users, "app", before), None);
        let new = users.account("app", &password);
        assert_ne!(new, old, "new clients share nothing with old ones");
        assert_eq!(users.current(&old), new, "until those need a new connection");
        // What was proven by a login that had begun before.
        users.remember("app", &password, before, before);
        assert_eq!(remembered(&users, "app", before), None);
        let late = users.unproven_account("web", &password);
        assert!(Arc::ptr_eq(&users.adopt_account(&late, before), &late));
        assert_ne!(users.account("web", &password), late);
        let now = users.renewed.lock().unwrap() + Duration::from_nanos(1);
        users.remember("app", &password, now, now);
        assert_eq!(remembered(&users, "app", now), Some(password));
    }

    #[test]
    fn accounts_are_interned() {
        let users = users(config::AuthMode::Users, 10);
        let (x, y) = (Secret::from("x"), Secret::from("y"));
        let app = users.account("app", &x);
        assert!(Arc::ptr_eq(&app, &users.account("app", &x)));
        assert_eq!((app.user.as_str(), &app.password), ("app", &x));
        let web = users.account("web", &x);
        assert_eq!((web.user.as_str(), &web.password, &*web.party.name), ("app", &x, "web"));
        assert_ne!(app, web, "the same at the server, but each has connections of its own, to be limited by");
        let other = users.account("app", &y);
        assert_ne!(app, other);
        assert_ne!(app, users.account("root", &x));
        let id = app.id;
        drop(app);
        assert_ne!(users.account("app", &x).id, id, "a number is never used twice");
        assert!(Arc::ptr_eq(&other, &users.account("app", &y)));
    }

    #[test]
    fn who_is_let_in_together_is_the_same_and_who_comes_later_is_not() {
        let (users, x) = (users(config::AuthMode::Passthrough, 10), Secret::from("x"));
        let (began, [one, two, other]) =
            (Instant::now(), ["app", "app", "root"].map(|it| users.unproven_account(it, &x)));
        assert!(one != two);
        assert!(Arc::ptr_eq(&users.adopt_account(&one, began), &one));
        assert!(Arc::ptr_eq(&users.adopt_account(&two, began), &one));
        assert!(Arc::ptr_eq(&users.adopt_account(&other, began), &other));
        let wrong = users.unproven_account("app", &Secret::from("y"));
        assert!(Arc::ptr_eq(&users.adopt_account(&wrong, began), &wrong));
        assert!(Arc::ptr_eq(&users.account("app", &x), &one));
        // An account may have been dropped and made again: its old connections are for those who came before.
        let later = Instant::now() + Duration::from_secs(1);
        assert!(Arc::ptr_eq(&users.adopt_account(&two, later), &two));
        assert!(Arc::ptr_eq(&users.account("app", &x), &two));
    }

    #[test]
    fn accounts_that_nobody_holds_are_dropped() {
        let users = users(config::AuthMode::Passthrough, 10);
        let kept: Vec<_> = (0..100).map(|n| users.account(&format!("kept{n}"), &Secret::from("x"))).collect();
        for n in 0..10_000 {
            let _ = users.account(&format!("user{n}"), &Secret::from("x"));
            let _ = users.account("one", &Secret::from(format!("password{n}").as_str()));
        }
        let inside = users.accounts.lock();
        assert!(inside.by_user.len() <= 2 * (kept.len() + 1).max(Accounts::SWEEP_MIN), "{}", inside.by_user.len());
        assert!(inside.by_user["one"].len() <= 1);
        drop(inside);
        assert!(kept.iter().all(|it| Arc::ptr_eq(it, &users.account(&it.user, &Secret::from("x")))));
    }

    #[test]
    fn a_user_has_so_many_clients_and_no_more() {
        let users = users(config::AuthMode::Users, 10);
        let (one, two) = (users.enter("app").unwrap(), users.enter("app").unwrap());
        assert_eq!(users.enter("app").unwrap_err(), UserLimit { limit: 2 });
        drop(one);
        let three = users.enter("app").unwrap();
        assert!(users.enter("app").is_err());
        let many: Vec<_> = (0..1000).map(|_| users.enter("web").unwrap()).collect();
        drop((two, three, many));
        assert!(users.listed.values().all(|it| it.places.are_free()), "all places are free again");
        assert!(users.enter("unlisted").is_ok());
    }

    #[test]
    fn passwords_are_not_shown() {
        let (users, now) = (users(config::AuthMode::Passthrough, 10), Instant::now());
        users.remember("app", &Secret::from("remembered-secret"), now, now);
        let _account = users.account("app", &Secret::from("account-secret"));
        let shown = format!("{users:?}");
        assert!(shown.contains("app") && !shown.contains("-secret"), "{shown}");
    }
}
