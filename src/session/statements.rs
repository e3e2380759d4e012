//! Statements that the client has prepared by COM_STMT_PREPARE, under the ids that it knows.
//!
//! A client's ids are its own, counted from 1 as a server does; a backend's statement is found for each execute. So a
//! statement pins nothing, but where a backend's statement must serve this one alone (it is *held*): as long as long data
//! waits in it or a cursor is open, and if it was prepared for this client only.
//!
//! What a statement means depends on the session's state when it was prepared: [`meaning`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::binding::Bound;
use super::state::{Interner, State, StateSpec};
use super::texts::Text;
use super::{PinReason, PinSet, Session};
use crate::sql::Effects;

/// MariaDB: the statement prepared last.
const LAST: u32 = u32::MAX;

/// Variables that decide nothing about what a statement means: they may change between its preparation and its use
/// (some of them cannot even be changed back within a transaction, or would end it).
const MEANINGLESS: [&str; 15] = [
    "autocommit",
    "completion_type",
    "idle_readonly_transaction_timeout",
    "idle_transaction_timeout",
    "innodb_lock_wait_timeout",
    "interactive_timeout",
    "lock_wait_timeout",
    "max_execution_time",
    "max_statement_time",
    "timestamp",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "wait_timeout",
];

/// As much of a state as decides what a text means when it is prepared.
#[must_use]
pub fn meaning(interner: &Interner, state: &Arc<State>) -> Arc<State> {
    if MEANINGLESS.iter().all(|name| state.variable(name).is_none()) {
        return Arc::clone(state);
    }
    interner.changed(state, |spec| spec.variables.retain(|name, _| !MEANINGLESS.contains(&&**name)))
}

/// The state in which a statement of this meaning is prepared for a session that is in `now`.
#[must_use]
pub fn to_prepare_in(interner: &Interner, meaning: &Arc<State>, now: &Arc<State>) -> Arc<State> {
    let mut spec: StateSpec = meaning.spec().clone();
    let kept = now.spec().variables.iter().filter(|(name, _)| MEANINGLESS.contains(&&***name));
    spec.variables.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    // No command leads out of a schema; a text prepared without one names every schema itself.
    spec.schema = spec.schema.or_else(|| now.spec().schema.clone());
    interner.intern(spec)
}

/// A statement of the client.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text.
    pub text: Arc<Text>,
    /// What it means: see [`meaning`].
    pub state: Arc<State>,
    /// The types of its parameters as the client sent them last.
    pub bound: Option<Arc<Bound>>,
    /// The backend's statement that serves this one alone.
    pub held: Option<u32>,
    /// How many parameters it has.
    pub params: u16,
    /// It was prepared for this client only, who keeps the backend until it is closed.
    pub private: bool,
    /// Long data waits in it.
    pub long_data: bool,
    /// Long data for it could not be delivered.
    pub lost_data: bool,
    /// It has an open cursor.
    pub cursor: bool,
}

impl Statement {
    /// A statement that was just prepared.
    #[must_use]
    pub fn new(text: Arc<Text>, state: Arc<State>, params: u16) -> Self {
        Self {
            text,
            state,
            bound: None,
            held: None,
            params,
            private: false,
            long_data: false,
            lost_data: false,
            cursor: false,
        }
    }

    /// Whether the backend's statement that it has must serve it alone from here on.
    #[must_use]
    pub fn must_hold(&self) -> bool {
        self.private || self.long_data || self.cursor
    }
}

/// All statements of one client.
#[derive(Debug, Default)]
pub(super) struct Statements {
    by_id: BTreeMap<u32, Statement>,
    /// The one prepared last, if that went well and it is still there.
    last: Option<u32>,
}

impl Statements {
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

impl Session {
    /// The number of open statements.
    #[must_use]
    pub fn statement_count(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.statements.by_id.len())
    }

    /// The id that this one means, if there is such a statement.
    #[must_use]
    pub fn statement_id(&self, id: u32) -> Option<u32> {
        let statements = &self.rare.as_ref()?.statements;
        let id = if id == LAST && self.options.mariadb { statements.last? } else { id };
        statements.by_id.contains_key(&id).then_some(id)
    }

    /// The statement of this id.
    #[must_use]
    pub fn statement(&self, id: u32) -> Option<&Statement> {
        self.rare.as_ref()?.statements.by_id.get(&id)
    }

    /// Changes the statement of this id, and the pins with it.
    pub fn change_statement(&mut self, id: u32, change: impl FnOnce(&mut Statement)) {
        let Some(statement) = self.rare.as_mut().and_then(|rare| rare.statements.by_id.get_mut(&id)) else { return };
        let pins = |statement: &Statement| (statement.private, statement.long_data, statement.cursor);
        let before = pins(statement);
        change(statement);
        if pins(statement) != before {
            self.pin_statements();
        }
    }

    /// COM_STMT_PREPARE is about to be answered, well or not: the id that it uses up.
    pub fn next_statement_id(&mut self) -> u32 {
        self.last_statement = match self.last_statement.wrapping_add(1) {
            0 | LAST => 1,
            id => id,
        };
        if let Some(rare) = &mut self.rare {
            rare.statements.last = None;
        }
        self.last_statement
    }

    /// The client has a new statement.
    pub fn add_statement(&mut self, id: u32, statement: Statement) {
        let statements = &mut self.rare().statements;
        let private = statement.private;
        statements.by_id.insert(id, statement);
        statements.last = Some(id);
        if private {
            self.pin_statements();
        }
    }

    /// COM_STMT_CLOSE: the statement is gone; returns what it was.
    pub fn close_statement(&mut self, id: u32) -> Option<Statement> {
        let statements = &mut self.rare.as_mut()?.statements;
        let closed = statements.by_id.remove(&id)?;
        if statements.last == Some(id) {
            statements.last = None;
        }
        if closed.must_hold() {
            self.pin_statements();
        }
        self.forget_rare();
        Some(closed)
    }

    /// What executing this statement may do now.
    #[must_use]
    pub fn effects_of(&self, statement: &Statement) -> Effects {
        self.adapted(&statement.text, &statement.state)
    }

    /// What a text does that meant this when it was prepared.
    pub(super) fn adapted(&self, text: &Text, state: &State) -> Effects {
        let mut effects = *text.effects();
        // Names in it mean something in the schema, and in the spelling, that it was prepared in.
        if state.schema() != self.state.schema() || text.mode() != self.mode() {
            (effects.name, effects.locking) = (None, None);
        }
        effects
    }

    /// Whether the answer to a preparation may come from memory: only then does nobody miss what the real one does. A
    /// real one empties the list of warnings (MariaDB: only if the text names a table), and what else pins may mean that
    /// the text means something else here (temporary tables, roles).
    #[must_use]
    pub fn may_prepare_from_memory(&self) -> bool {
        self.is_plain() && (!self.options.mariadb || (!self.warned && self.memory.warnings == 0))
    }

    /// The answer to a preparation came from memory. The real one would have emptied MySQL's list of warnings: what the
    /// backend has of it does not count any more.
    pub fn observe_remembered_preparation(&mut self) {
        if !self.options.mariadb && (self.warned || self.memory.warnings > 0) {
            self.memory.forget_list();
            (self.memory.list_moved, self.memory.counted) = (true, 0);
        }
    }

    /// Whether nothing but perhaps a transaction pins it: then a text means what it means to any other session in the
    /// same state.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.pins.without(PinSet::of(PinReason::Transaction)).is_empty()
    }

    /// COM_STMT_RESET was answered without asking the server.
    pub fn observe_reset_statement(&mut self) {
        self.memory.observe_other(true);
        self.memory.counted = 0;
    }

    /// A statement was reset that the client did not ask for: the server has forgotten a number of rows over that.
    pub fn observe_cleaned(&mut self) {
        self.memory.count_moved = true;
    }

    /// Whether the execute or fetch that was just answered left a cursor open; `None`: nothing was said about it.
    #[must_use]
    pub fn saw_cursor(&self) -> Option<bool> {
        self.turn.cursor
    }

    /// The pins of all statements.
    fn pin_statements(&mut self) {
        let Some(rare) = &self.rare else { return };
        let all = || rare.statements.by_id.values();
        let reasons = [
            (PinReason::PreparedStatement, all().any(|statement| statement.private)),
            (PinReason::LongData, all().any(|statement| statement.long_data)),
            (PinReason::Cursor, all().any(|statement| statement.cursor)),
        ];
        for (reason, on) in reasons {
            self.pins.put(reason, on);
        }
    }
}
