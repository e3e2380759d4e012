//! The statements that a connection has prepared, for whoever executes the same next.
//!
//! Found by text, by what that means ([`meaning`](crate::session::meaning)), by the kinds of the parameters' types (see
//! [`Bound`]) and by whether it opens cursors: MySQL answers an execute without a cursor wrongly after one with. At most
//! `pool.prepared_statements` are kept; the one not used for longest goes first. A statement that a session *holds*
//! (long data, an open cursor, a text too long to keep) counts as well, but is nobody else's and does not go.
//!
//! What goes is closed in front of the next command: COM_STMT_CLOSE has no answer to wait for.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;

use super::query::append_command;
use crate::metrics::Metrics;
use crate::protocol::command::Command;
use crate::session::{Bound, State, Statement, Text};

/// How many bytes of texts are kept on one connection.
const MAX_BYTES: usize = 1 << 20;

/// What a statement on a backend must be to serve.
#[derive(Clone, Debug)]
pub struct Wanted {
    text: Arc<Text>,
    state: Arc<State>,
    /// Absent: the server must not know any types yet.
    bound: Option<Arc<Bound>>,
    cursor: bool,
}

impl Wanted {
    /// What an execute of this statement needs, with a cursor or without.
    #[must_use]
    pub fn new(statement: &Statement, cursor: bool) -> Self {
        let bound = statement.bound.clone();
        Self { text: Arc::clone(&statement.text), state: Arc::clone(&statement.state), bound, cursor }
    }

    /// A statement that was just prepared.
    #[must_use]
    pub fn fresh(text: Arc<Text>, state: Arc<State>) -> Self {
        Self { text, state, bound: None, cursor: false }
    }

    /// The same, but of another text.
    #[must_use]
    pub fn reworded(&self, text: Arc<Text>) -> Self {
        Self { text, ..self.clone() }
    }

    /// A client's statement of this text and meaning, with so many parameters.
    #[must_use]
    pub fn statement(&self, params: u16) -> Statement {
        Statement::new(Arc::clone(&self.text), Arc::clone(&self.state), params)
    }

    /// A cursor is wanted.
    #[must_use]
    pub fn cursor(&self) -> bool {
        self.cursor
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.text.bytes()
    }

    /// What it means.
    #[must_use]
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    fn key(&self) -> Key {
        (self.text.id, self.state.id)
    }
}

type Key = (u64, u64);

/// A statement on this backend.
#[derive(Debug)]
struct Entry {
    id: u32,
    text: Arc<Text>,
    state: Arc<State>,
    cursor: bool,
    /// The kinds of types that it was ever bound by; none: it never was.
    kinds: Option<Arc<Bound>>,
    /// The types that the server knows now, as far as we are sure.
    bound: Option<Arc<Bound>>,
    /// It was executed in ways that others must not notice.
    spoilt: bool,
    used: u64,
}

impl Entry {
    fn is_fresh(&self) -> bool {
        self.kinds.is_none() && !self.cursor
    }

    fn serves(&self, wanted: &Wanted) -> bool {
        let same = match (&self.kinds, &wanted.bound) {
            (Some(have), Some(want)) => Arc::ptr_eq(have, want) || have.kinds() == want.kinds(),
            (None, None) => true,
            _ => false,
        };
        same && self.cursor == wanted.cursor
    }
}

/// A backend's statements.
#[derive(Debug)]
pub struct Prepared {
    limit: usize,
    shared: HashMap<Key, Vec<Entry>>,
    held: Vec<Entry>,
    /// How many are in [`Prepared::shared`], and the bytes of their texts.
    count: usize,
    bytes: usize,
    /// Counts uses, to know which is the oldest.
    clock: u64,
    /// To be closed in front of the next command.
    closing: Vec<u32>,
    metrics: Arc<Metrics>,
}

impl Prepared {
    /// None yet; `limit` is `pool.prepared_statements`.
    #[must_use]
    pub fn new(limit: usize, metrics: Arc<Metrics>) -> Self {
        let (shared, held, closing) = (HashMap::new(), Vec::new(), Vec::new());
        Self { limit, shared, held, count: 0, bytes: 0, clock: 0, closing, metrics }
    }

    /// The id of a statement that serves, if there is one; and whether nobody has executed it yet.
    pub fn find(&mut self, wanted: &Wanted) -> Option<(u32, bool)> {
        self.clock += 1;
        let entries = self.shared.get_mut(&wanted.key())?;
        let at = entries.iter().position(|entry| entry.serves(wanted));
        // One that nobody has executed yet may become anything.
        let at = at.or_else(|| entries.iter().position(Entry::is_fresh))?;
        let entry = entries.get_mut(at)?;
        let is_new = entry.is_fresh();
        entry.used = self.clock;
        entry.cursor = wanted.cursor;
        if entry.kinds.is_none() {
            entry.kinds.clone_from(&wanted.bound);
        }
        Some((entry.id, is_new))
    }

    /// The types that the server knows of this statement, if that is sure.
    #[must_use]
    pub fn bound(&self, id: u32, wanted: &Wanted) -> Option<&Arc<Bound>> {
        let shared = self.shared.get(&wanted.key()).into_iter().flatten();
        shared.chain(&self.held).find(|entry| entry.id == id)?.bound.as_ref()
    }

    /// The server now knows these types of it; `None`: who knows which.
    pub fn bind(&mut self, id: u32, wanted: &Wanted, bound: Option<Arc<Bound>>) {
        let shared = self.shared.get_mut(&wanted.key()).into_iter().flatten();
        if let Some(entry) = shared.chain(&mut self.held).find(|entry| entry.id == id) {
            entry.bound = bound;
        }
    }

    /// The server has prepared this.
    pub fn insert(&mut self, id: u32, wanted: &Wanted) {
        self.metrics.backend.prepares.inc();
        self.metrics.backend.statements.inc();
        let (text, state) = (Arc::clone(&wanted.text), Arc::clone(&wanted.state));
        let (cursor, kinds) = (wanted.cursor, wanted.bound.clone());
        self.share(Entry { id, text, state, cursor, kinds, bound: None, spoilt: false, used: 0 });
    }

    /// The server has prepared this because a client asked for it. Those that it had of the same text are from before:
    /// of one whose table has changed since, it would say so to whoever has prepared it after that.
    pub fn insert_anew(&mut self, id: u32, wanted: &Wanted) {
        for old in self.shared.remove(&wanted.key()).unwrap_or_default() {
            self.count -= 1;
            self.bytes -= old.text.bytes().len();
            self.close(old.id);
        }
        self.insert(id, wanted);
    }

    /// The server has prepared this for one session only.
    pub fn insert_held(&mut self, id: u32, wanted: &Wanted) {
        self.insert(id, wanted);
        self.hold(id, wanted);
    }

    /// A session needs this statement for itself until it is [released](Prepared::release).
    pub fn hold(&mut self, id: u32, wanted: &Wanted) {
        let Some(entries) = self.shared.get_mut(&wanted.key()) else { return };
        let Some(at) = entries.iter().position(|entry| entry.id == id) else { return };
        let entry = entries.swap_remove(at);
        if entries.is_empty() {
            self.shared.remove(&wanted.key());
        }
        self.count -= 1;
        self.bytes -= entry.text.bytes().len();
        self.held.push(entry);
    }

    /// The session that holds this statement executes it like this.
    pub fn use_held(&mut self, id: u32, wanted: &Wanted) {
        let Some(entry) = self.held.iter_mut().find(|entry| entry.id == id) else { return };
        if entry.is_fresh() {
            entry.kinds.clone_from(&wanted.bound);
            entry.cursor = wanted.cursor;
        }
        entry.spoilt |= !entry.serves(wanted);
    }

    /// The session that held this statement needs it for itself no longer.
    pub fn release(&mut self, id: u32) {
        match self.take_held(id) {
            Some(entry) if entry.spoilt => self.close(entry.id),
            Some(entry) => self.share(entry),
            None => {}
        }
    }

    /// The session that held this statement has closed it.
    pub fn close_held(&mut self, id: u32) {
        if self.take_held(id).is_some() {
            self.close(id);
        }
    }

    fn take_held(&mut self, id: u32) -> Option<Entry> {
        let at = self.held.iter().position(|entry| entry.id == id)?;
        Some(self.held.swap_remove(at))
    }

    fn share(&mut self, mut entry: Entry) {
        self.clock += 1;
        entry.used = self.clock;
        self.count += 1;
        self.bytes += entry.text.bytes().len();
        self.shared.entry((entry.text.id, entry.state.id)).or_default().push(entry);
        while self.count > self.limit || (self.bytes > MAX_BYTES && self.count > 1) {
            self.evict_oldest();
        }
    }

    fn evict_oldest(&mut self) {
        let all = self.shared.iter().flat_map(|(key, entries)| entries.iter().map(move |entry| (key, entry)));
        let Some((key, id)) = all.min_by_key(|(_, entry)| entry.used).map(|(key, entry)| (*key, entry.id)) else {
            return;
        };
        if let Some(entries) = self.shared.get_mut(&key) {
            for gone in entries.extract_if(.., |entry| entry.id == id) {
                self.bytes -= gone.text.bytes().len();
            }
            if entries.is_empty() {
                self.shared.remove(&key);
            }
        }
        self.count -= 1;
        self.metrics.backend.evictions.inc();
        self.close(id);
    }

    fn close(&mut self, id: u32) {
        self.metrics.backend.statements.dec();
        self.closing.push(id);
    }

    /// Gives back whatever nobody holds: the server has no room. Was there any?
    pub fn give_back(&mut self) -> bool {
        let any = self.count > 0;
        while self.count > 0 {
            self.evict_oldest();
        }
        any
    }

    /// The server's session was reset: it has forgotten them all.
    pub fn clear(&mut self) {
        self.metrics.backend.statements.sub(i64::try_from(self.count + self.held.len()).unwrap_or(0));
        self.shared.clear();
        self.held.clear();
        self.closing.clear();
        (self.count, self.bytes) = (0, 0);
    }

    /// The COM_STMT_CLOSE packets that are due, to be sent in front of the next command.
    #[must_use]
    pub fn closes(&mut self) -> BytesMut {
        let mut out = BytesMut::new();
        for id in self.closing.drain(..) {
            append_command(&mut out, Command::StmtClose, &id.to_le_bytes());
        }
        out
    }

    /// How many statements the server has prepared for us and was not yet told to close.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count + self.held.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Interner, StateSpec, Texts};

    struct Stage {
        prepared: Prepared,
        texts: Texts,
        interner: Interner,
        next: u32,
    }

    impl Stage {
        fn new(limit: usize) -> Self {
            let prepared = Prepared::new(limit, Arc::new(Metrics::new()));
            Self { prepared, texts: Texts::default(), interner: Interner::new(), next: 0 }
        }

        fn text(&self, sql: &str) -> Wanted {
            let text = self.texts.intern(sql.as_bytes(), Default::default(), Default::default());
            Wanted::fresh(text, self.interner.intern(StateSpec::default()))
        }

        fn bound(&self, sql: &str, types: &[u8]) -> Wanted {
            let wanted = self.text(sql);
            let bound = Bound::new(types, &[], None, &wanted.state, false);
            Wanted { bound: Some(Arc::new(bound)), ..wanted }
        }

        /// As an execute does: found, or prepared.
        fn execute(&mut self, wanted: &Wanted) -> u32 {
            self.prepared.find(wanted).map(|(id, _)| id).unwrap_or_else(|| {
                self.next += 1;
                self.prepared.insert(self.next, wanted);
                self.next
            })
        }

        fn closed(&mut self) -> Vec<u32> {
            let bytes = self.prepared.closes();
            bytes.chunks(9).map(|packet| u32::from_le_bytes(packet[5..].try_into().unwrap())).collect()
        }
    }

    const LONG: [u8; 2] = [3, 0];
    const TINY: [u8; 2] = [1, 0];
    const TEXT: [u8; 2] = [0xfd, 0];

    #[test]
    fn kinds_of_types_do_not_mix() {
        let mut t = Stage::new(9);
        let fresh = t.text("SELECT ?");
        assert_eq!(t.execute(&fresh), 1);
        let (long, tiny, text) = (t.bound("SELECT ?", &LONG), t.bound("SELECT ?", &TINY), t.bound("SELECT ?", &TEXT));
        assert_eq!(t.execute(&long), 1, "the fresh one becomes it");
        assert_eq!(t.execute(&text), 2);
        assert_eq!(t.execute(&tiny), 1);
        assert_eq!(t.execute(&fresh), 3, "never bound by anybody");
        t.prepared.bind(1, &long, long.bound.clone());
        assert!(t.prepared.bound(1, &tiny).unwrap().means(long.bound.as_ref().unwrap()));
        assert!(t.prepared.bound(2, &text).is_none());
        let cursor = Wanted { cursor: true, ..long.clone() };
        assert_eq!(t.execute(&cursor), 3, "still as it was prepared");
        assert_eq!((t.execute(&long), t.execute(&fresh), t.execute(&cursor), t.prepared.len()), (1, 4, 3, 4));
    }

    #[test]
    fn what_a_client_has_prepared_takes_the_place_of_older_ones() {
        let mut t = Stage::new(9);
        let (fresh, long) = (t.text("SELECT ?"), t.bound("SELECT ?", &LONG));
        let (text, other) = (t.bound("SELECT ?", &TEXT), t.text("SELECT 2"));
        assert_eq!([&long, &text, &other].map(|wanted| t.execute(wanted)), [1, 2, 3]);
        t.prepared.insert_anew(4, &fresh);
        assert_eq!((t.closed(), t.prepared.len()), (vec![1, 2], 2));
        assert_eq!([&long, &other].map(|wanted| t.execute(wanted)), [4, 3]);
    }

    #[test]
    fn the_one_not_used_for_longest_goes_and_what_is_held_stays() {
        let mut t = Stage::new(2);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|sql| t.text(sql));
        assert_eq!([&a, &b, &a, &c].map(|wanted| t.execute(wanted)), [1, 2, 1, 3]);
        assert_eq!((t.closed(), t.prepared.len()), (vec![2], 2));
        t.prepared.hold(1, &a);
        assert_eq!([&d, &a].map(|wanted| t.execute(wanted)), [4, 5], "another of the same text");
        assert_eq!(t.closed(), [3]);
        t.prepared.release(1);
        assert_eq!((t.closed(), t.prepared.len()), (vec![4], 2));
        t.prepared.hold(5, &a);
        t.prepared.close_held(5);
        assert!(t.prepared.give_back() && !t.prepared.give_back());
        assert_eq!((t.closed(), t.prepared.is_empty()), (vec![5, 1], true));
    }

    #[test]
    fn a_reset_forgets_everything_and_texts_are_bounded() {
        let mut t = Stage::new(9);
        let large = "x".repeat(MAX_BYTES / 2);
        for (n, end) in ["a", "b", "c"].iter().enumerate() {
            let wanted = t.text(&format!("{large}{end}"));
            t.execute(&wanted);
            assert!(t.prepared.len() <= 1 && t.prepared.bytes <= MAX_BYTES, "{n}");
        }
        let metrics = Arc::clone(&t.prepared.metrics);
        assert_eq!(metrics.backend.statements.get(), 1);
        t.prepared.clear();
        assert!(t.closed().is_empty() && t.prepared.is_empty());
        assert_eq!(metrics.backend.statements.get(), 0);
        assert_eq!((metrics.backend.prepares.get(), metrics.backend.evictions.get()), (3, 2));
        assert!(t.texts.is_empty());
    }
}
