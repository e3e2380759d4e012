//! Shelves: where equal things are found again, so that each is there only once and only as long as somebody holds it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Things by the hash of their contents. The last holder of one takes it off again, by [`Place::leave`] when it is
/// dropped.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    by_hash: Mutex<HashMap<u64, Bucket<T>>>,
    hasher: RandomState,
    next_id: AtomicU64,
}

/// Things of one hash, with their numbers.
type Bucket<T> = Vec<(u64, Weak<T>)>;

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { by_hash: Mutex::default(), hasher: RandomState::new(), next_id: AtomicU64::new(0) }
    }
}

impl<T> Shelf<T> {
    /// A number that was never given before.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The one whose contents are these, as `is` tells, else what `make` makes of them and of its number and place.
    pub(super) fn intern<K: Hash>(
        self: &Arc<Self>,
        contents: K,
        is: impl Fn(&T, &K) -> bool,
        make: impl FnOnce(K, u64, Place<T>) -> T,
    ) -> Arc<T> {
        let hash = self.hasher.hash_one(&contents);
        // Whatever is upgraded below may be the last holder by now: it must be dropped after the lock.
        let mut upgraded = Vec::new();
        let mut by_hash = self.by_hash.lock();
        let bucket = by_hash.entry(hash).or_default();
        upgraded.extend(bucket.iter().filter_map(|(_, weak)| weak.upgrade()));
        if let Some(known) = upgraded.iter().find(|known| is(known, &contents)) {
            let known = Arc::clone(known);
            drop(by_hash);
            return known;
        }
        let id = self.next_id();
        let made = Arc::new(make(contents, id, Place { hash, shelf: Arc::downgrade(self) }));
        bucket.push((id, Arc::downgrade(&made)));
        drop(by_hash);
        made
    }

    /// How many are in use.
    pub(super) fn len(&self) -> usize {
        self.by_hash.lock().values().map(Vec::len).sum()
    }

    fn forget(&self, hash: u64, id: u64) {
        let mut by_hash = self.by_hash.lock();
        if let Some(bucket) = by_hash.get_mut(&hash) {
            bucket.retain(|(other, _)| *other != id);
            if bucket.is_empty() {
                by_hash.remove(&hash);
            }
        }
    }
}

/// Where a thing stands.
#[derive(Debug)]
pub(super) struct Place<T> {
    hash: u64,
    shelf: Weak<Shelf<T>>,
}

impl<T> Place<T> {
    /// Of what stands on no shelf.
    pub(super) const fn nowhere() -> Self {
        Self { hash: 0, shelf: Weak::new() }
    }

    /// The thing with this number is gone.
    pub(super) fn leave(&self, id: u64) {
        if let Some(shelf) = self.shelf.upgrade() {
            shelf.forget(self.hash, id);
        }
    }
}
