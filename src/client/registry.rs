//! Who is connected: ids, limits, and the three ways to reach a client from outside (kill, drain, idle timeout).

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use atomic_waker::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::metrics::{CloseReason, Limit};
use crate::pool::{Lease, Server};

/// Ids start here, far above any server's own, so that a server's id is never taken for a client's.
const FIRST_ID: u32 = 1 << 30;

/// So many belong to each instance of a proxy: more than clients there may be, and as many as leave 256 instances their own.
const IDS: u32 = 1 << 22;

/// What somebody else wants of a client. The first wish stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Summons {
    /// KILL CONNECTION
    Kill = 1,
    /// The proxy is shutting down: leave when nothing is open.
    Drain = 2,
    /// Idle for longer than `server.idle_timeout`.
    IdleTimeout = 3,
    /// The proxy is shutting down, and its patience is over.
    CutOff = 4,
}

impl Summons {
    /// Whether it means now, whatever is open.
    const fn is_final(self) -> bool {
        matches!(self, Self::Kill | Self::CutOff)
    }
}

/// What the outside knows of one client.
#[derive(Debug)]
pub struct Entry {
    /// The id that the greeting showed.
    pub id: u32,
    address: Option<IpAddr>,
    user: Mutex<Option<Arc<str>>>,
    /// The client's task, which alone waits here.
    wake: AtomicWaker,
    summons: AtomicU8,
    /// In seconds of the registry's clock.
    active: AtomicU32,
    running: Mutex<Running>,
    /// A backend that somebody else took over and could not have, and whose it is.
    kept: Mutex<Option<Box<Kept>>>,
}

/// A backend that was given back, and the session's number.
type Kept = (u64, Lease<Server>);

/// The backend that works for a client now, and who is about to kill its statement.
#[derive(Debug, Default)]
struct Running {
    thread_id: Option<u32>,
    kills: u32,
    was_killed: bool,
}

impl Entry {
    /// What is wanted of this client, if anything.
    #[must_use]
    pub fn summons(&self) -> Option<Summons> {
        match self.summons.load(Ordering::Acquire) {
            1 => Some(Summons::Kill),
            2 => Some(Summons::Drain),
            3 => Some(Summons::IdleTimeout),
            4 => Some(Summons::CutOff),
            _ => None,
        }
    }

    /// What is wanted of this client, if anything; the client's task is woken when that changes, when a backend is given back
    /// to it, and when a kill has arrived.
    pub fn watch(&self, cx: &Context<'_>) -> Option<Summons> {
        self.wake.register(cx.waker());
        self.summons()
    }

    /// As [`watch`](Self::watch), but only what this client is to go for whatever is open.
    pub fn watch_kill(&self, cx: &Context<'_>) -> Option<Summons> {
        self.watch(cx).filter(|summons| summons.is_final())
    }

    /// Resolves when something is wanted of this client.
    pub async fn summoned(&self) -> Summons {
        poll_fn(|cx| self.watch(cx).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Wants something of this client. A kill overrides the rest.
    pub fn summon(&self, summons: Summons) {
        let set = if summons.is_final() {
            self.summons.swap(summons as u8, Ordering::AcqRel) != summons as u8
        } else {
            self.summons.compare_exchange(0, summons as u8, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        if set {
            self.wake.wake();
        }
    }

    /// Gives a backend back to its session `owner`, which must keep it.
    pub fn keep(&self, owner: u64, lease: Lease<Server>) {
        *self.kept.lock() = Some(Box::new((owner, lease)));
        self.wake.wake();
    }

    /// The backend that was given back to session `owner`: see [`watch`](Self::watch).
    #[must_use]
    pub fn take_kept(&self, owner: u64) -> Option<Lease<Server>> {
        let (of, lease) = *self.kept.lock().take()?;
        if of == owner {
            return Some(lease);
        }
        lease.discard(CloseReason::Dirty);
        None
    }

    /// Who logged in.
    pub fn logged_in(&self, user: Arc<str>) {
        *self.user.lock() = Some(user);
    }

    /// The name given at login.
    #[must_use]
    pub fn user(&self) -> Option<Arc<str>> {
        self.user.lock().clone()
    }

    /// From here on a kill means this backend's statement.
    pub fn runs_on(&self, thread_id: u32) {
        let mut running = self.running.lock();
        running.thread_id = Some(thread_id);
        running.was_killed = false;
    }

    /// From here on a kill finds nothing to hit. Resolves once those under way have arrived; true if there were any,
    /// and the backend may then still hold a kill that has not been noticed.
    pub async fn runs_nothing(&self) -> bool {
        poll_fn(|cx| {
            let mut running = self.running.lock();
            running.thread_id = None;
            if running.kills == 0 {
                return Poll::Ready(running.was_killed);
            }
            // Under the lock that every kill takes when it has arrived: none is missed.
            self.wake.register(cx.waker());
            Poll::Pending
        })
        .await
    }

    /// The thread whose statement a kill must hit, held in place until the guard is dropped.
    #[must_use]
    pub fn aim(self: &Arc<Self>) -> Option<Aim> {
        let mut running = self.running.lock();
        let thread_id = running.thread_id?;
        running.kills += 1;
        running.was_killed = true;
        Some(Aim { entry: Arc::clone(self), thread_id })
    }
}

/// The right to kill what runs on one server thread: while it exists, the client keeps that backend.
#[derive(Debug)]
pub struct Aim {
    entry: Arc<Entry>,
    /// The server's id of the connection.
    pub thread_id: u32,
}

impl Drop for Aim {
    fn drop(&mut self) {
        self.entry.running.lock().kills -= 1;
        self.entry.wake.wake();
    }
}

/// All clients of one proxy.
#[derive(Debug)]
pub struct Registry {
    inner: Mutex<Inner>,
    started: Instant,
    now: AtomicU32,
    first_id: u32,
    max_clients: usize,
    max_per_address: usize,
}

#[derive(Debug)]
struct Inner {
    clients: HashMap<u32, Arc<Entry>>,
    per_address: HashMap<IpAddr, usize>,
    /// Counted from the instance's first.
    next_id: u32,
}

impl Registry {
    /// An empty registry; `max_per_address` 0 is no limit. Proxies that share a port are different instances, so that an id
    /// of one is never one of another.
    #[must_use]
    pub fn new(max_clients: usize, max_per_address: usize, instance: u8) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner { clients: HashMap::new(), per_address: HashMap::new(), next_id: 0 }),
            started: Instant::now(),
            now: AtomicU32::new(0),
            first_id: FIRST_ID + u32::from(instance) * IDS,
            max_clients,
            max_per_address,
        })
    }

    /// Takes a client in.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn enter(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Registered, Limit> {
        let mut inner = self.inner.lock();
        if inner.clients.len() >= self.max_clients {
            return Err(Limit::MaxClients);
        }
        let counted = address.filter(|_| self.max_per_address > 0);
        if let Some(address) = counted {
            let count = inner.per_address.entry(address).or_default();
            if *count >= self.max_per_address {
                return Err(Limit::MaxClientsPerAddress);
            }
            *count += 1;
        }
        let id = loop {
            let id = self.first_id + inner.next_id;
            inner.next_id = (inner.next_id + 1) % IDS;
            if !inner.clients.contains_key(&id) {
                break id;
            }
        };
        let entry = Arc::new(Entry {
            id,
            address: counted,
            user: Mutex::new(None),
            wake: AtomicWaker::new(),
            summons: AtomicU8::new(0),
            active: AtomicU32::new(self.now.load(Ordering::Relaxed)),
            running: Mutex::new(Running::default()),
            kept: Mutex::new(None),
        });
        inner.clients.insert(id, Arc::clone(&entry));
        Ok(Registered { registry: Arc::clone(self), entry })
    }

    /// How many clients there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.lock().clients.len()
    }

    /// Is nobody there?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The client with this id.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<Arc<Entry>> {
        self.inner.lock().clients.get(&id).cloned()
    }

    /// Is this the id of a client, of this instance or another, whether there is one or not?
    #[must_use]
    pub const fn is_id(id: u32) -> bool {
        id >= FIRST_ID
    }

    /// The client that this thread of the server works for at this moment. Looks at every client.
    #[must_use]
    pub fn find_by_thread(&self, thread_id: u32) -> Option<Arc<Entry>> {
        let inner = self.inner.lock();
        inner.clients.values().find(|entry| entry.running.lock().thread_id == Some(thread_id)).cloned()
    }

    /// The clients that logged in by this name. Looks at every client.
    #[must_use]
    pub fn of_user(&self, name: &str) -> Vec<Arc<Entry>> {
        let inner = self.inner.lock();
        inner.clients.values().filter(|entry| entry.user().is_some_and(|user| *user == *name)).cloned().collect()
    }

    /// Wants something of every client.
    pub fn summon_all(&self, summons: Summons) {
        let all: Vec<_> = self.inner.lock().clients.values().cloned().collect();
        for entry in all {
            entry.summon(summons);
        }
    }

    /// Keeps the coarse clock and summons the clients that were idle for `timeout` (zero: never). Runs until dropped.
    pub async fn sweep(self: Arc<Self>, timeout: Duration) {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        loop {
            tick.tick().await;
            let now = u32::try_from(self.started.elapsed().as_secs()).unwrap_or(u32::MAX);
            self.now.store(now, Ordering::Relaxed);
            let timeout = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX);
            if timeout == 0 || now % timeout.div_ceil(20) != 0 {
                continue;
            }
            let overdue: Vec<_> = {
                let inner = self.inner.lock();
                let idle = |entry: &Entry| {
                    now.saturating_sub(entry.active.load(Ordering::Relaxed)) > timeout
                        && entry.running.lock().thread_id.is_none()
                };
                inner.clients.values().filter(|entry| idle(entry)).cloned().collect()
            };
            for entry in overdue {
                entry.summon(Summons::IdleTimeout);
            }
        }
    }
}

/// A client's place in the registry, given up when dropped.
#[derive(Debug)]
pub struct Registered {
    registry: Arc<Registry>,
    /// What the outside knows of the client.
    pub entry: Arc<Entry>,
}

impl Registered {
    /// The client did something.
    pub fn touch(&self) {
        self.entry.active.store(self.registry.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut inner = self.registry.inner.lock();
        inner.clients.remove(&self.entry.id);
        if let Some(address) = self.entry.address
            && let Some(count) = inner.per_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                inner.per_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_kept_and_places_given_up() {
        let registry = Registry::new(2, 1, 0);
        let here = Some(IpAddr::from([127, 0, 0, 1]));
        let first = registry.enter(here).unwrap();
        assert_eq!(registry.enter(here).unwrap_err(), Limit::MaxClientsPerAddress);
        let second = registry.enter(None).unwrap();
        assert_eq!(registry.enter(None).unwrap_err(), Limit::MaxClients);
        assert_ne!(first.entry.id, second.entry.id);
        drop(first);
        assert_eq!(registry.len(), 1);
        assert!(registry.enter(here).is_ok());
    }

    #[test]
    fn every_instance_has_ids_of_its_own() {
        let mut ends = Vec::new();
        for instance in [0, 1, 2, u8::MAX] {
            let registry = Registry::new(3, 0, instance);
            let first = registry.enter(None).unwrap();
            registry.inner.lock().next_id = IDS - 1;
            let last = registry.enter(None).unwrap();
            // From the start again, past the one that is in use.
            let next = registry.enter(None).unwrap();
            let [first, last, next] = [first, last, next].map(|client| client.entry.id);
            assert_eq!((last - first, next - first), (IDS - 1, 1));
            assert!(Registry::is_id(first) && Registry::is_id(last));
            assert!(ends.last().is_none_or(|end| *end < first));
            ends.push(last);
        }
        assert_eq!(ends, [FIRST_ID + IDS - 1, FIRST_ID + 2 * IDS - 1, FIRST_ID + 3 * IDS - 1, 2 * FIRST_ID - 1]);
    }

    #[tokio::test]
    async fn a_backend_is_kept_until_every_kill_aimed_at_it_has_arrived() {
        let registry = Registry::new(2, 0, 0);
        let client = registry.enter(None).unwrap();
        assert!(client.entry.aim().is_none());
        client.entry.runs_on(7);
        let aim = client.entry.aim().unwrap();
        assert_eq!(aim.thread_id, 7);
        let entry = Arc::clone(&client.entry);
        let done = tokio::spawn(async move { entry.runs_nothing().await });
        tokio::task::yield_now().await;
        assert!(!done.is_finished());
        drop(aim);
        assert!(done.await.unwrap());
        assert!(client.entry.aim().is_none());
        client.entry.runs_on(8);
        assert!(!client.entry.runs_nothing().await);
    }

    #[test]
    fn the_first_wish_stands_but_a_kill_overrides() {
        let registry = Registry::new(1, 0, 0);
        let client = registry.enter(None).unwrap();
        client.entry.summon(Summons::Drain);
        client.entry.summon(Summons::IdleTimeout);
        assert_eq!(client.entry.summons(), Some(Summons::Drain));
        client.entry.summon(Summons::Kill);
        assert_eq!(client.entry.summons(), Some(Summons::Kill));
    }

    #[tokio::test]
    async fn whoever_watches_is_woken() {
        let registry = Registry::new(1, 0, 0);
        let client = registry.enter(None).unwrap();
        let entry = Arc::clone(&client.entry);
        let watched = tokio::spawn(async move {
            let drained = poll_fn(|cx| entry.watch(cx).map_or(Poll::Pending, Poll::Ready)).await;
            let killed = poll_fn(|cx| entry.watch_kill(cx).map_or(Poll::Pending, Poll::Ready)).await;
            (drained, killed)
        });
        for summons in [Summons::Drain, Summons::CutOff] {
            tokio::task::yield_now().await;
            assert!(!watched.is_finished());
            client.entry.summon(summons);
        }
        assert_eq!(watched.await.unwrap(), (Summons::Drain, Summons::CutOff));
    }
}
