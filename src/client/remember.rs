//! What backends answered to COM_STMT_PREPARE, for the next client that prepares the same; and which schemas there are, for the
//! next one that logs in to one.
//!
//! The answer describes the statement's parameters and columns: the same for everybody of one account and class, as long
//! as nobody changes a definition. So everything is forgotten as soon as a text has run that may do that, and each answer
//! after [`TTL`] in any case, since others may work on the server past the proxy.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::backend::Class;
use crate::protocol::packet::prepare::PrepareOk;
use crate::session::{State, Text};
use crate::sql::{Effects, Flags, Word};

/// How long an answer may be used.
const TTL: Duration = Duration::from_secs(5);

/// An answer larger than this is not kept, in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// What each answer costs besides, in bytes: many are a few bytes long.
const COST: usize = 256;

/// How many schemas are known at most; then it starts over.
const MAX_SCHEMAS: usize = 10_000;

/// All answers together, in bytes; then it starts over.
const MAX_BYTES: usize = 16 << 20;

/// The answer to a preparation.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its first packet; none if it is an error.
    pub(super) ok: Option<PrepareOk>,
    /// All packets, as the server wrote them; of an error the payload.
    pub(super) raw: Vec<u8>,
}

/// Whose answer it is: account, class, text, meaning.
pub(super) type Key = (u64, u32, u64, u64);

pub(super) fn key(class: &Class, text: &Text, state: &State) -> Key {
    (class.account.id, class.flags().bits(), text.id, state.id)
}

/// Answers that may be given again.
#[derive(Debug, Default)]
pub struct Remembered {
    answers: Mutex<Answers>,
    /// How often everything was forgotten.
    forgotten: AtomicU64,
}

#[derive(Debug, Default)]
struct Answers {
    by_key: HashMap<Key, (Instant, Arc<Answer>)>,
    bytes: usize,
    /// Schemas that accounts could choose, and when.
    schemas: HashMap<u64, HashMap<Box<[u8]>, Instant>>,
    schema_count: usize,
}

impl Remembered {
    /// The answer, if it is young enough.
    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Arc<Answer>> {
        let answers = self.answers.lock();
        let (at, answer) = answers.by_key.get(key)?;
        (now.saturating_duration_since(*at) < TTL).then(|| Arc::clone(answer))
    }

    /// To be asked before a server is: what it says counts only if nothing was forgotten meanwhile.
    pub(super) fn era(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    /// A server that was asked in this era has answered.
    pub(super) fn keep(&self, key: Key, answer: Arc<Answer>, era: u64, now: Instant) {
        if answer.raw.len() > MAX_ANSWER {
            return;
        }
        let size = COST + answer.raw.len();
        let mut answers = self.answers.lock();
        if self.era() != era {
            return;
        }
        if answers.bytes + size > MAX_BYTES {
            (answers.by_key, answers.bytes) = (HashMap::new(), 0);
        }
        answers.bytes += size;
        if let Some((_, old)) = answers.by_key.insert(key, (now, answer)) {
            answers.bytes -= COST + old.raw.len();
        }
    }

    /// Could this account choose this schema, not long ago?
    pub(super) fn has_schema(&self, account: u64, schema: &[u8], now: Instant) -> bool {
        let answers = self.answers.lock();
        let at = answers.schemas.get(&account).and_then(|of_account| of_account.get(schema));
        at.is_some_and(|at| now.saturating_duration_since(*at) < TTL)
    }

    /// A server that was asked in this era has let this account choose this schema.
    pub(super) fn keep_schema(&self, account: u64, schema: &[u8], era: u64, now: Instant) {
        let mut answers = self.answers.lock();
        if self.era() != era {
            return;
        }
        if answers.schema_count >= MAX_SCHEMAS {
            (answers.schemas, answers.schema_count) = (HashMap::new(), 0);
        }
        if answers.schemas.entry(account).or_default().insert(schema.into(), now).is_none() {
            answers.schema_count += 1;
        }
    }

    /// A definition may have changed.
    pub(super) fn forget(&self) {
        let mut answers = self.answers.lock();
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        if !answers.by_key.is_empty() || answers.schema_count > 0 {
            *answers = Answers::default();
        }
    }
}

/// Whether the text may change what a statement's parameters and columns are, or who may prepare it: unless it is surely
/// nothing of the kind.
pub(super) fn may_redefine(effects: &Effects) -> bool {
    let harmless = matches!(
        effects.first,
        Word::None
            | Word::Begin
            | Word::Commit
            | Word::Deallocate
            | Word::Delete
            | Word::Desc
            | Word::Describe
            | Word::Do
            | Word::Explain
            | Word::Get
            | Word::Handler
            | Word::Insert
            | Word::Kill
            | Word::Load
            | Word::Lock
            | Word::Prepare
            | Word::Release
            | Word::Replace
            | Word::Rollback
            | Word::Savepoint
            | Word::Select
            | Word::Set
            | Word::Show
            | Word::Start
            | Word::Table
            | Word::Unlock
            | Word::Update
            | Word::Use
            | Word::Values
            | Word::With
            | Word::Xa
    );
    !harmless || effects.statements > 1 || effects.may(Flags::RUNS_UNSEEN | Flags::OPAQUE | Flags::CREATE_TEMPORARY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{self, Mode};

    fn answer(size: usize) -> Arc<Answer> {
        let ok = PrepareOk { statement_id: 1, columns: 0, params: 0, warnings: 0 };
        Arc::new(Answer { ok: Some(ok), raw: vec![0; size] })
    }

    #[test]
    fn an_answer_is_given_until_it_is_old_or_something_may_have_changed() {
        let (remembered, now) = (Remembered::default(), Instant::now());
        let key = (1, 2, 3, 4);
        remembered.keep(key, answer(9), remembered.era(), now);
        assert!(remembered.get(&key, now).is_some() && remembered.get(&(1, 2, 3, 5), now).is_none());
        assert!(remembered.get(&key, now + TTL).is_none());
        let era = remembered.era();
        remembered.forget();
        assert!(remembered.get(&key, now).is_none());
        remembered.keep(key, answer(9), era, now);
        assert!(remembered.get(&key, now).is_none(), "asked before the change");
        remembered.keep(key, answer(MAX_ANSWER + 1), remembered.era(), now);
        assert!(remembered.get(&key, now).is_none(), "too large");
    }

    #[test]
    fn a_schema_is_known_until_it_is_old_or_something_may_have_changed() {
        let (remembered, now) = (Remembered::default(), Instant::now());
        remembered.keep_schema(1, b"shop", remembered.era(), now);
        assert!(remembered.has_schema(1, b"shop", now));
        assert!(!remembered.has_schema(2, b"shop", now) && !remembered.has_schema(1, b"Shop", now));
        assert!(!remembered.has_schema(1, b"shop", now + TTL));
        let era = remembered.era();
        remembered.forget();
        assert!(!remembered.has_schema(1, b"shop", now));
        remembered.keep_schema(1, b"shop", era, now);
        assert!(!remembered.has_schema(1, b"shop", now), "asked before the change");
        for n in 0..100_000_u32 {
            remembered.keep_schema(u64::from(n % 7), &n.to_be_bytes(), remembered.era(), now);
        }
        let answers = remembered.answers.lock();
        let held = answers.schemas.values().map(HashMap::len).sum::<usize>();
        assert!(held == answers.schema_count && held <= MAX_SCHEMAS);
    }

    #[test]
    fn memory_is_bounded() {
        let (remembered, now) = (Remembered::default(), Instant::now());
        for n in 0..1000 {
            remembered.keep((n, 0, 0, 0), answer(MAX_ANSWER), 0, now);
            remembered.keep((n, 0, 0, 0), answer(MAX_ANSWER), 0, now);
            assert!(remembered.answers.lock().bytes <= MAX_BYTES);
        }
        assert!(remembered.get(&(999, 0, 0, 0), now).is_some());
        // Small ones take room too.
        (0..100_000).for_each(|n| remembered.keep((n, 1, 0, 0), answer(12), 0, now));
        assert!(remembered.answers.lock().by_key.len() <= MAX_BYTES / COST);
    }

    #[test]
    fn texts_that_may_change_a_definition() {
        for (text, wanted) in [
            ("SELECT 1", false),
            ("insert into t values (1)", false),
            ("/* hm */ update t set n = 1", false),
            ("SET NAMES utf8mb4", false),
            ("", false),
            ("ALTER TABLE t ADD COLUMN n INT", true),
            ("/*!50000 ALTER TABLE t ADD COLUMN n INT */", true),
            ("CALL p()", true),
            ("EXECUTE p", true),
            ("SELECT 1; SELECT 2", true),
            ("GRANT SELECT ON t TO u", true),
            ("FLUSH PRIVILEGES", true),
            ("RENAME TABLE t TO u", true),
            ("BEGIN NOT ATOMIC DROP TABLE t; END", true),
            ("something new", true),
        ] {
            assert_eq!(may_redefine(&sql::effects(text.as_bytes(), Mode::default())), wanted, "{text}");
        }
    }
}
