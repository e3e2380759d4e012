//! What servers have shown that a SET of literals does, for the next client that says the same in the same state.
//!
//! What clients say when they connect (`SET NAMES`, `SET autocommit=1`, ..) is the same from all of them, and a storm of
//! connects would else bring each of these statements to a server. What one does follows from the state it is run in, the
//! account and the class; it is believed for [`TTL`], since others may work on the server past the proxy.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::protocol::capability::StatusFlags;
use crate::session::{Rows, State};

/// How long it is believed.
const TTL: Duration = Duration::from_secs(30);

/// A longer text is not kept, in bytes.
pub(super) const MAX_TEXT: usize = 4 << 10;

/// What each costs besides its text and its answer, in bytes: it keeps two states.
const COST: usize = 1 << 10;

/// How many there are at most, and what they hold together, in bytes.
const MAX_ENTRIES: usize = 20_000;
const MAX_BYTES: usize = 16 << 20;

/// Where a text means the same: account, class, era of the global variables, state, and whether several statements may stand
/// in one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) account: u64,
    pub(super) flags: u32,
    pub(super) era: u64,
    pub(super) state: u64,
    pub(super) several: bool,
}

/// What a server answered.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) status: StatusFlags,
    pub(super) warnings: u16,
    /// The trackers' entries, as a backend tells them.
    pub(super) changes: Vec<u8>,
    /// What it warned of.
    pub(super) list: Rows,
}

/// What a SET does.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) said: Said,
    /// The state that it is run in: as long as it is here it keeps its number.
    pub(super) _before: Arc<State>,
    /// The state that it leads to.
    pub(super) after: Arc<State>,
}

/// What was shown, and when.
type Entry = (Instant, Arc<Shown>);

/// Everything that was shown, those used last at hand.
#[derive(Debug, Default)]
pub struct Chatter(Mutex<Generations>);

/// Two generations: what is used moves to the young one, and when that is full, the old one is forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    by_place: HashMap<Place, HashMap<Box<[u8]>, Entry>>,
    entries: usize,
    bytes: usize,
}

impl Chatter {
    /// What this text does there, if it was shown not long ago.
    pub(super) fn get(&self, place: &Place, text: &[u8], now: Instant) -> Option<Arc<Shown>> {
        let mut all = self.0.lock();
        let (at, shown, is_old) = match (all.young.find(place, text), all.old.find(place, text)) {
            (Some((at, shown)), _) => (at, shown, false),
            (None, Some((at, shown))) => (at, shown, true),
            (None, None) => return None,
        };
        if now.saturating_duration_since(at) >= TTL {
            return None;
        }
        if is_old {
            all.old.remove(place, text);
            all.insert(*place, text.into(), (at, Arc::clone(&shown)));
        }
        Some(shown)
    }

    /// A server has shown what this text does there.
    pub(super) fn keep(&self, place: Place, text: Box<[u8]>, shown: Shown, now: Instant) {
        let mut all = self.0.lock();
        all.old.remove(&place, &text);
        all.insert(place, text, (now, Arc::new(shown)));
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        let all = self.0.lock();
        all.young.entries + all.old.entries
    }
}

impl Generations {
    fn insert(&mut self, place: Place, text: Box<[u8]>, entry: Entry) {
        self.young.remove(&place, &text);
        let size = size(&text, &entry.1);
        if self.young.entries >= MAX_ENTRIES / 2 || self.young.bytes + size > MAX_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.entries += 1;
        self.young.bytes += size;
        self.young.by_place.entry(place).or_default().insert(text, entry);
    }
}

impl Generation {
    fn find(&self, place: &Place, text: &[u8]) -> Option<Entry> {
        let (at, shown) = self.by_place.get(place)?.get(text)?;
        Some((*at, Arc::clone(shown)))
    }

    fn remove(&mut self, place: &Place, text: &[u8]) {
        let Some(texts) = self.by_place.get_mut(place) else { return };
        if let Some((_, shown)) = texts.remove(text) {
            self.entries -= 1;
            self.bytes -= size(text, &shown);
        }
        if texts.is_empty() {
            self.by_place.remove(place);
        }
    }
}

fn size(text: &[u8], shown: &Shown) -> usize {
    let list = shown.said.list.iter().flatten().flatten().map(Vec::len).sum::<usize>();
    COST + text.len() + shown.said.changes.len() + list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Interner, StateSpec};

    fn shown(interner: &Interner, bytes: usize) -> Shown {
        let state = interner.intern(StateSpec::default());
        let said = Said { status: StatusFlags::empty(), warnings: 0, changes: vec![0; bytes], list: Rows::new() };
        Shown { said, _before: Arc::clone(&state), after: state }
    }

    fn place(state: u64) -> Place {
        Place { account: 1, flags: 2, era: 3, state, several: false }
    }

    #[test]
    fn what_was_shown_is_believed_for_a_while_and_only_there() {
        let (chatter, interner, now) = (Chatter::default(), Interner::new(), Instant::now());
        chatter.keep(place(4), b"SET a=1"[..].into(), shown(&interner, 1), now);
        assert!(chatter.get(&place(4), b"SET a=1", now).is_some());
        assert!(chatter.get(&place(5), b"SET a=1", now).is_none());
        assert!(chatter.get(&place(4), b"SET a=2", now).is_none());
        for other in [
            Place { account: 9, ..place(4) },
            Place { flags: 9, ..place(4) },
            Place { era: 9, ..place(4) },
            Place { several: true, ..place(4) },
        ] {
            assert!(chatter.get(&other, b"SET a=1", now).is_none());
        }
        assert!(chatter.get(&place(4), b"SET a=1", now + TTL).is_none());
        // To use it does not make it younger.
        chatter.keep(place(4), b"SET a=1"[..].into(), shown(&interner, 1), now + TTL);
        assert!(chatter.get(&place(4), b"SET a=1", now + TTL).is_some());
        assert_eq!(chatter.len(), 1);
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let (chatter, interner, now) = (Chatter::default(), Interner::new(), Instant::now());
        chatter.keep(place(0), b"SET often=1"[..].into(), shown(&interner, 1), now);
        for n in 0..50_000_u64 {
            chatter.keep(place(n % 100), format!("SET a={n}").into_bytes().into(), shown(&interner, 100), now);
            assert!(chatter.get(&place(0), b"SET often=1", now).is_some());
            if n % 1000 == 0 {
                let all = chatter.0.lock();
                assert!(all.young.bytes + all.old.bytes <= MAX_BYTES);
                assert!(all.young.entries + all.old.entries <= MAX_ENTRIES);
            }
        }
        assert!(chatter.len() <= MAX_ENTRIES && chatter.get(&place(99), b"SET a=49999", now).is_some());
        // What is counted is what is there.
        let all = chatter.0.lock();
        let held = |generation: &Generation| generation.by_place.values().map(HashMap::len).sum::<usize>();
        assert_eq!((held(&all.young), held(&all.old)), (all.young.entries, all.old.entries));
    }
}
