//! Statements that have a name: prepared as text, by `PREPARE name FROM 'literal'`.
//!
//! The session keeps the whole `PREPARE` as the client wrote it, and what the statement in it does; so it can be prepared
//! again on another backend, in the state of its preparation, once something is said about it there. What executing it
//! does is known as if its text had been sent itself. Measured on both servers: that holds for everything that a
//! statement leaves behind as well; a `PREPARE` that fails has deallocated what had the name before, unless the server
//! could not read it at all.
//!
//! It pins as long as one of them is there whose text is not known (it came from a variable, or too long, or in another
//! form), that asks about the statement before it, or that reads user variables on MySQL, which fixes their types when it is
//! prepared.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::state::State;
use super::texts::Text;
use super::{PinReason, PinSet, Session};
use crate::sql::{Effects, Flags, Word};

/// How many names are told apart. With more, the session is pinned until it is reset.
const MOST: usize = 256;

/// How many bytes of texts are kept. What exceeds them is not known.
const MOST_BYTES: usize = 1 << 20;

/// A statement that has a name. Compare with [`Arc::ptr_eq`]: each preparation is another one.
#[derive(Debug)]
pub struct Named {
    /// In lower case.
    pub name: Box<str>,
    /// The whole `PREPARE`. Its effects are those of the statement in it.
    pub text: Arc<Text>,
    /// What it means: see [`meaning`](super::meaning).
    pub state: Arc<State>,
}

/// What is known of a name.
#[derive(Clone, Debug)]
pub enum Known {
    /// This is what it names.
    Statement(Arc<Named>),
    /// It names nothing.
    Nothing,
    /// Who knows.
    Unseen,
}

/// What a text does to a name.
#[derive(Clone, Debug)]
pub enum Deed {
    /// It names a statement.
    Prepare {
        /// The name, in lower case.
        name: Box<str>,
        /// It is spelled without quotes.
        bare: bool,
        /// The statement, if that is known.
        named: Option<Arc<Named>>,
        /// The server reads what it comes from.
        read: bool,
    },
    /// It names nothing from here on.
    Deallocate(Box<str>),
}

/// All names of a session.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<Box<str>, Entry>,
    /// There may be others, and these may be others.
    unsure: bool,
    /// What the command to come does.
    deed: Option<Box<Deed>>,
}

#[derive(Debug)]
struct Entry {
    /// None: its text is not known.
    named: Option<Arc<Named>>,
    /// The server has read its name without quotes.
    bare: bool,
    /// It must stay on its backend.
    stays: bool,
}

impl Names {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty() && !self.unsure
    }

    fn pins(&self) -> bool {
        self.unsure || self.by_name.values().any(|entry| entry.stays)
    }

    fn insert(&mut self, name: Box<str>, entry: Entry) {
        if self.by_name.len() < MOST || self.by_name.contains_key(&name) {
            self.by_name.insert(name, entry);
        } else {
            self.lose_track();
        }
    }

    /// Something was done to them that was not seen.
    fn lose_track(&mut self) {
        self.by_name.clear();
        self.unsure = true;
    }

    fn bytes(&self) -> usize {
        let named = self.by_name.values().filter_map(|entry| entry.named.as_ref());
        named.map(|named| named.text.bytes().len()).sum()
    }
}

impl Session {
    /// What this names.
    #[must_use]
    pub fn named(&self, name: &str) -> Known {
        let unseen: PinSet = [PinReason::Call, PinReason::Unexplained].into_iter().collect();
        let names = self.rare.as_ref().map(|rare| &rare.names);
        let entry = names.and_then(|names| names.by_name.get(name));
        match (entry, names.is_some_and(|names| names.unsure)) {
            _ if self.pins.intersects(unseen) => Known::Unseen,
            (Some(entry), _) => entry.named.clone().map_or(Known::Unseen, Known::Statement),
            (None, true) => Known::Unseen,
            (None, false) => Known::Nothing,
        }
    }

    /// Whether the server has read this name without quotes.
    #[must_use]
    pub fn is_bare(&self, name: &str) -> bool {
        let entry = self.rare.as_ref().and_then(|rare| rare.names.by_name.get(name));
        entry.is_none_or(|entry| entry.bare)
    }

    /// All statements that have a name and are known.
    pub fn all_named(&self) -> impl Iterator<Item = &Arc<Named>> {
        let entries = self.rare.iter().flat_map(|rare| rare.names.by_name.values());
        entries.filter_map(|entry| entry.named.as_ref())
    }

    /// Whether there is room for a text of so many bytes.
    #[must_use]
    pub fn may_name(&self, bytes: usize) -> bool {
        let used = self.rare.as_ref().map_or(0, |rare| rare.names.bytes());
        used.saturating_add(bytes) <= MOST_BYTES
    }

    /// The command to come does this and nothing else; to be called before [`Session::begin`].
    pub fn expect_deed(&mut self, deed: Deed) {
        self.rare().names.deed = Some(Box::new(deed));
    }

    /// What executing it does, by a text that does `by`.
    #[must_use]
    pub fn effects_of_named(&self, named: &Named, by: &Effects) -> Effects {
        self.adapted(&named.text, &named.state).executed(by)
    }

    /// What a command does that is about to be sent.
    pub(super) fn take_deed(&mut self) -> Option<Box<Deed>> {
        self.rare.as_mut()?.names.deed.take()
    }

    /// A text is about to run that prepares something.
    pub(super) fn begin_naming(&mut self, effects: &Effects) {
        if self.turn.deed.is_none() {
            self.turn.odd = effects.flags.common(Flags::PREPARE | Flags::DEALLOCATE);
        }
        if !effects.may(Flags::PREPARE) {
            return;
        }
        let Some(Deed::Prepare { named: Some(named), .. }) = self.turn.deed.as_deref() else {
            self.pins.insert(PinReason::TextPrepare);
            return;
        };
        let inner = *named.text.effects();
        // MariaDB empties the list of warnings if the statement uses a table.
        let flags = self.turn.flags.without(Flags::READS_TABLE);
        let stays = self.must_stay(named);
        self.turn.flags = if uses_table(named.text.effects()) { flags | Flags::READS_TABLE } else { flags };
        if stays {
            self.pins.insert(PinReason::TextPrepare);
        }
        self.note_created(&inner);
    }

    /// Whether this statement cannot be prepared on another backend.
    fn must_stay(&self, named: &Named) -> bool {
        let effects = named.text.effects();
        let fixed = !self.options.mariadb && effects.reads_user_variables();
        fixed || effects.may(Flags::READS_DIAGNOSTICS)
    }

    /// The turn is over: which names there are now.
    pub(super) fn end_naming(&mut self) {
        let succeeded = self.turn.succeeded();
        let unread = self.turn.failed && self.turn.unread && self.turn.oks == 0;
        if succeeded && self.turn.first == Word::Execute {
            // It was not there, as far as we knew.
            self.pins.insert(PinReason::Call);
        }
        let Some(deed) = self.turn.deed.take() else { return self.end_odd_naming(unread) };
        let stays = match &*deed {
            Deed::Prepare { named: Some(named), .. } => self.must_stay(named),
            _ => true,
        };
        let names = &mut self.rare().names;
        match *deed {
            Deed::Prepare { name, bare, named, .. } if succeeded => names.insert(name, Entry { named, bare, stays }),
            // Perhaps the server could not read the name as it is spelled here, or what the statement comes from; or it could,
            // but not the statement.
            Deed::Prepare { name, bare, read, .. }
                if unread && names.by_name.get(&name).is_some_and(|entry| !read || (bare && !entry.bare)) =>
            {
                if let Some(entry) = names.by_name.get_mut(&name) {
                    (entry.named, entry.stays) = (None, true);
                }
            }
            Deed::Prepare { name, .. } => drop(names.by_name.remove(&name)),
            Deed::Deallocate(name) if succeeded => drop(names.by_name.remove(&name)),
            Deed::Deallocate(_) => {}
        }
        let pins = names.pins();
        self.pins.put(PinReason::TextPrepare, pins);
    }

    /// A text of no known form may have prepared or deallocated anything, even if it failed.
    fn end_odd_naming(&mut self, unread: bool) {
        let odd = self.turn.odd;
        let any = self.rare.as_ref().is_some_and(|rare| !rare.names.is_empty());
        let failed = unread || (self.turn.certain && self.turn.failed);
        if (odd.any(Flags::PREPARE) && !failed) || (any && !odd.is_empty()) {
            self.rare().names.lose_track();
            self.pins.insert(PinReason::TextPrepare);
        }
    }
}

/// Whether the server looks at a table when it prepares this.
fn uses_table(effects: &Effects) -> bool {
    let without = matches!(
        effects.first,
        Word::Begin
            | Word::Call
            | Word::Commit
            | Word::Do
            | Word::Explain
            | Word::Get
            | Word::Kill
            | Word::Release
            | Word::Rollback
            | Word::Savepoint
            | Word::Select
            | Word::Set
            | Word::Start
            | Word::Use
            | Word::Values
    );
    let shows = effects.first == Word::Show && effects.may(Flags::READS_WARNINGS);
    !(without || shows) || effects.may(Flags::READS_TABLE)
}
