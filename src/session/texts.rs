//! The texts of prepared statements, each kept once: 100,000 clients prepare the same few.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::sql::{Effects, Mode};

/// A prepared statement's text. Compare with [`Arc::ptr_eq`] (or by [`Text::id`]).
#[derive(Debug)]
pub struct Text {
    /// Its number, never given twice by one [`Texts`].
    pub id: u64,
    bytes: Box<[u8]>,
    mode: Mode,
    effects: Effects,
    hash: u64,
    home: Weak<Shelf>,
}

impl Text {
    /// As the client wrote it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How it was read.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What it does.
    #[must_use]
    pub fn effects(&self) -> &Effects {
        &self.effects
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if let Some(shelf) = self.home.upgrade() {
            shelf.forget(self.hash, self.id);
        }
    }
}

/// Keeps texts, each only once and only as long as somebody holds it.
#[derive(Debug, Default)]
pub struct Texts {
    shelf: Arc<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_hash: Mutex<HashMap<u64, Bucket>>,
    hasher: RandomState,
    next_id: AtomicU64,
}

/// Texts of one hash, with their numbers.
type Bucket = Vec<(u64, Weak<Text>)>;

impl Texts {
    /// The one text of these bytes, as read in this mode; `effects` is what it does.
    #[must_use]
    pub fn intern(&self, bytes: &[u8], mode: Mode, effects: Effects) -> Arc<Text> {
        let shelf = &self.shelf;
        let hash = shelf.hasher.hash_one((bytes, mode));
        // Whatever is upgraded below may be the last holder by now: it must be dropped after the lock.
        let mut upgraded = Vec::new();
        let mut by_hash = shelf.by_hash.lock();
        let bucket = by_hash.entry(hash).or_default();
        upgraded.extend(bucket.iter().filter_map(|(_, weak)| weak.upgrade()));
        if let Some(text) = upgraded.iter().find(|text| *text.bytes == *bytes && text.mode == mode) {
            let text = Arc::clone(text);
            drop(by_hash);
            return text;
        }
        let id = shelf.next_id.fetch_add(1, Ordering::Relaxed);
        let text = Arc::new(Text { id, bytes: bytes.into(), mode, effects, hash, home: Arc::downgrade(shelf) });
        bucket.push((id, Arc::downgrade(&text)));
        drop(by_hash);
        text
    }

    /// A text that was not kept.
    #[must_use]
    pub fn nameless(&self, mode: Mode, effects: Effects) -> Arc<Text> {
        let id = self.shelf.next_id.fetch_add(1, Ordering::Relaxed);
        Arc::new(Text { id, bytes: Box::default(), mode, effects, hash: 0, home: Weak::new() })
    }

    /// How many are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shelf.by_hash.lock().values().map(Vec::len).sum()
    }

    /// Whether none is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shelf {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql;

    #[test]
    fn the_same_text_is_the_same_object_as_long_as_it_is_used() {
        let texts = Texts::default();
        let mode = Mode::default();
        let ansi = Mode { ansi_quotes: true, ..mode };
        let intern = |bytes: &[u8], mode| texts.intern(bytes, mode, sql::effects(bytes, mode));
        let one = intern(b"SELECT \"a\"", mode);
        assert!(Arc::ptr_eq(&one, &intern(b"SELECT \"a\"", mode)));
        assert!(!Arc::ptr_eq(&one, &intern(b"SELECT \"a\"", ansi)));
        let other = intern(b"SELECT 2", mode);
        assert_eq!(texts.len(), 2);
        let gone = one.id;
        drop((one, other));
        assert!(texts.is_empty());
        assert!(intern(b"SELECT \"a\"", mode).id > gone);
    }
}
