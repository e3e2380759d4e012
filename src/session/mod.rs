//! What the session of a client is, apart from any connection. Pure.
//!
//! A session outlives any lease of a backend. This room decides what of it can be carried to another backend and what
//! pins it to the one it has. It must not know sockets, clocks, backends or the pool: it is told of commands and
//! replies, and answers with a state, a set of pins, and questions to ask.
//!
//! # A turn
//! ```text
//!   begin(command, effects) -> observe_ok / observe_err / observe_prepared ... -> end()
//!                                                                                 | Ask -> answer() -> end() again
//!                                                                                 | None: pinned or not, see pins()
//! ```
//! Later, when somebody else is to have the backend: put the questions of [`Session::owes`] to it and [`Session::answer`]
//! each (one that fails pins: then there is no hand-over), then [`Session::moved`]. That returns what the backend holds,
//! and [`plan`] says how it becomes what the next session wants.
//!
//! # Where the truth comes from
//! - **Trackers** (in every OK): schema, variables, transaction. A value is believed where setting it again gives the
//!   same (`variables` knows the exceptions).
//! - **The lexer** ([`crate::sql`]): what no tracker reports, and what text began or may have ended. Beginnings count on
//!   suspicion, ends only where the whole text is known and succeeded.
//! - **Questions**: `collation_connection` is never reported with `SET NAMES`, MariaDB reports nothing of `SET @@x = ..`
//!   (without a scope) and reports values that `SET STATEMENT` has taken back already; an OK's insert id is not always
//!   `LAST_INSERT_ID()`; what a stored routine does is in its body (`unseen`).
//! - What none of these explains pins, and only a reset ends it.
//!
//! # Prepared statements
//! The session knows its statements by ids of its own ([`Session::statement`]): a text, what it means, the types last bound.
//! They pin nothing, unless a backend's statement must serve this session alone (`statements`). Executing one has the
//! effects of its text. Those that are prepared as text have names (`named`).
//!
//! Known limits: a trigger, or a view that calls a stored function, may take a lock or write a user variable by other means than
//! SET (which is reported), and nobody sees it. MariaDB reports nothing of `SET @@x` in code that is not seen either, so
//! unseen code (`CALL`, `EXECUTE` of what is not known, a function of somebody's own) pins. An ERR reports nothing: a
//! variable that a trigger sets before its statement fails is learnt only if a later OK reports it. A sequence (MariaDB)
//! that is drawn from by a column's DEFAULT or a trigger does not pin, so `LASTVAL()` must follow at once.
//!
//! Tested from tables of texts and OK packets as both servers write them, and by a model server that is restored to
//! random states.

mod ask;
mod binding;
mod endings;
mod mark;
mod memory;
mod named;
mod observe;
mod pin;
mod recall;
mod refusals;
mod restore;
mod shelf;
mod shown;
mod state;
mod statements;
mod tally;
mod texts;
mod turn;
mod unseen;
mod untold;
mod user_value;
mod user_variables;
mod variables;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::BytesMut;

use crate::protocol::packet::session_track::{Flavour, Told, Wishes};
use crate::sql::{Mode, Multibyte, Plain};

pub use ask::{Ask, Followup, Rows};
pub use binding::{Bound, Rehearsal};
pub use memory::Memory;
pub use named::{Deed, Known, Named};
pub use pin::{PinReason, PinSet};
pub use recall::Recall;
pub use restore::{BackendState, Plan, Restore, assignment, falls_back, plan, unset};
pub use shown::told_to_all;
pub use state::{Charset, Interner, State, StateSpec, Value};
pub use statements::{Statement, meaning, to_prepare_in};
pub use texts::{Text, Texts};
pub use turn::PARSE_ERROR;
pub use unseen::Target;
pub use user_variables::UserVariables;
pub use variables::{is_inheritable, note_initial};

use memory::Found;
use named::Names;
use statements::Statements;
use tally::Tally;
use turn::AtHand;
use unseen::Unseen;
use untold::Untold;

/// What a session is told when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The server is MariaDB.
    pub mariadb: bool,
    /// The client asked for CLIENT_MULTI_STATEMENTS.
    pub multi_statements: bool,
    /// The client asked for CLIENT_SESSION_TRACK.
    pub tracks: bool,
    /// The server's own `sql_mode` has ANSI_QUOTES.
    pub ansi_quotes: bool,
    /// The server's own `sql_mode` has NO_BACKSLASH_ESCAPES.
    pub no_backslash_escapes: bool,
    /// The server's own `sql_mode` has IGNORE_SPACE.
    pub ignore_space: bool,
    /// The server's own default is `autocommit=0`. MySQL's status says so only after a first statement.
    pub autocommit_off: bool,
    /// The server's version: 80,017 is 8.0.17. 0: not known.
    pub version: u32,
    /// How many bytes of user variables are carried along; with more, the session is pinned.
    pub user_variables: usize,
}

impl Options {
    const fn flavour(self) -> Flavour {
        if self.mariadb { Flavour::MariaDb } else { Flavour::MySql }
    }
}

/// A client's session. There are 100,000 of them, so what is rare is in a box.
#[derive(Debug)]
pub struct Session {
    state: Arc<State>,
    interner: Arc<Interner>,
    options: Options,
    pins: PinSet,
    /// `None`: only the backend knows.
    last_insert_id: Option<u64>,
    memory: Memory,
    /// `None`: it never had any.
    user_variables: Option<Arc<UserVariables>>,
    wishes: Arc<Wishes>,
    told: Told,
    untold: Untold,
    /// The client changed the trackers; ours must be set again.
    rearm: bool,
    /// The backend's list of warnings may hold something.
    warned: bool,
    /// Whether autocommit is on, as the last status said; `None`: none came yet, and it is on by default.
    autocommit: Option<bool>,
    /// The id that the last COM_STMT_PREPARE used up.
    last_statement: u32,
    turn: AtHand,
    rare: Option<Box<Rare>>,
}

/// What few sessions have.
#[derive(Debug, Default)]
struct Rare {
    /// Statements prepared by COM_STMT_PREPARE.
    statements: Statements,
    /// Statements prepared as text.
    names: Names,
    /// User locks.
    locks: Tally,
    /// Temporary tables.
    tables: Tally,
    /// `HANDLER .. OPEN` less `.. CLOSE`.
    handlers: Tally,
    /// Questions that the end of this turn calls for.
    asks: Vec<Ask>,
    /// Variables to be asked for at the end of this turn.
    doubtful: Vec<Box<str>>,
    /// The routines that the turn at hand calls, as far as it is not known what they do.
    unseen: Option<Unseen>,
}

impl Session {
    /// A session that has just logged in; `initial` is what its backends have after login.
    #[must_use]
    pub fn new(initial: Arc<State>, interner: Arc<Interner>, options: Options) -> Self {
        Self {
            state: initial,
            interner,
            options,
            pins: PinSet::EMPTY,
            last_insert_id: Some(0),
            memory: Memory::default(),
            user_variables: None,
            wishes: Arc::new(Wishes::new(options.flavour())),
            told: Told::default(),
            untold: Untold::default(),
            rearm: false,
            warned: false,
            autocommit: options.autocommit_off.then_some(false),
            last_statement: 0,
            turn: AtHand::default(),
            rare: None,
        }
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Its backends have other defaults from here on than it began with: these variables, if it has set none of them, keep
    /// their values.
    pub fn inherit(&mut self, values: &[(Box<str>, Value)]) {
        let lacks = |name: &str| !variables::names_of(name).any(|name| self.state.variable(name).is_some());
        let lacking: Vec<_> = values.iter().filter(|(name, _)| lacks(name)).collect();
        self.state = self.interner.changed(&self.state, |spec| {
            for (name, value) in lacking {
                variables::note(spec, name, Some(&value.0));
            }
        });
    }

    /// What it was told when it began; `multi_statements` may have changed since.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// Why it keeps its backend. Final once the turn is over.
    #[must_use]
    pub fn pins(&self) -> PinSet {
        self.pins
    }

    /// Whether it keeps its backend.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        !self.pins.is_empty()
    }

    /// Whether its backend may be reset, for all that may be prepared in XA on it. MariaDB forgets that then: it says that it
    /// commits, and does not, and the connection inserts nothing any more. MySQL 9.7 falls over, with everybody on it, where
    /// `xa_detach_on_prepare` is off.
    #[must_use]
    pub fn bears_reset(&self) -> bool {
        let unseen = PinSet::of(PinReason::Transaction).and(PinSet::of(PinReason::Call));
        let may_be_prepared = self.pins.contains(PinReason::Xa) || self.pins.common(unseen) == unseen;
        !may_be_prepared
    }

    /// How the server reads its texts.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let Options { mariadb, ansi_quotes, no_backslash_escapes, ignore_space, version, .. } = self.options;
        let multibyte = Multibyte::default();
        self.state.mode(Mode { ansi_quotes, no_backslash_escapes, ignore_space, mariadb, version, multibyte })
    }

    /// What a backend must hold to serve it. Between turns this is also what its own backend holds.
    ///
    /// While the session [owes](Session::owes) its last insert id, the number in here is not known to be right.
    #[must_use]
    pub fn held(&self) -> BackendState {
        BackendState {
            state: Arc::clone(&self.state),
            last_insert_id: self.last_insert_id.unwrap_or(0),
            multi_statements: self.options.multi_statements,
            warned: self.warned,
            user_variables: self.user_variables.clone(),
        }
    }

    /// It begins with the wishes that its server has for new sessions.
    pub fn wish(&mut self, wishes: Arc<Wishes>) {
        self.wishes = wishes;
    }

    /// What the client asked to be told by the trackers.
    #[must_use]
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// Appends the tracker entries of `raw` that the client wants to see. Call it after `observe_ok`, for every OK and in
    /// order. `true`: SERVER_SESSION_STATE_CHANGED is to be set.
    pub fn filter(&mut self, raw: &[u8], out: &mut BytesMut) -> bool {
        match self.untold {
            Untold::Nothing => self.options.tracks && self.wishes.filter(&mut self.told, raw, out),
            _ => self.filter_late(raw, out),
        }
    }

    /// Whether the client changed the trackers, so that the proxy's own must be set again on this backend. Says so once,
    /// when asked after [`Session::end`] has returned [`Followup::None`].
    pub fn rearm_trackers(&mut self) -> bool {
        std::mem::take(&mut self.rearm)
    }

    /// What must be asked on its backend before somebody else may use that, in this order.
    ///
    /// Only then: as long as the client itself comes next, the server still knows.
    #[must_use]
    pub fn owes(&self) -> Vec<Ask> {
        let mut asks = Vec::new();
        if self.warned && !self.memory.list_moved && self.memory.list.is_none() {
            asks.push(Ask::Warnings);
        }
        if self.memory.found == Found::OnBackend {
            asks.push(Ask::FoundRows);
        }
        if self.last_insert_id.is_none() {
            asks.push(Ask::Variables(vec!["last_insert_id".into()]));
        }
        asks.extend(self.ask_user_variables());
        asks
    }

    /// The backend is about to serve somebody else: from here on the memory is the only truth. Returns what the backend
    /// holds, which is no longer this session's affair.
    pub fn moved(&mut self) -> BackendState {
        let held = self.held();
        self.memory.left();
        self.warned = false;
        held
    }

    /// What it remembers of its last statement.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// This list was answered from [`Session::recall`]'s rows.
    pub fn answered(&mut self, plain: Plain) {
        self.memory.answered(plain);
    }

    /// A statement of the proxy's own has run on the backend, after the questions of [`Session::owes`].
    pub fn overrun(&mut self) {
        self.memory.left();
    }

    /// COM_PING was answered without the backend.
    pub fn pinged(&mut self) {
        self.memory.observe_other(true);
    }

    /// COM_SET_OPTION was answered: several statements in one text are allowed, or not.
    pub fn observe_option(&mut self, multi_statements: bool) {
        self.options.multi_statements = multi_statements;
    }

    /// COM_RESET_CONNECTION succeeded; `state` is what the session has now.
    pub fn reset(&mut self, state: Arc<State>) {
        // Whether a reset takes a thread out of its resource group, no manual says.
        let pins = self.pins.common(PinSet::of(PinReason::ResourceGroup));
        *self = Self { pins, ..Self::new(state, Arc::clone(&self.interner), self.options).after(self) };
    }

    /// The reset has left it with another role than that of its login.
    pub fn keep_role(&mut self) {
        self.pins.insert(PinReason::Role);
    }

    /// The session of the same connection after COM_CHANGE_USER: no id of a statement is given twice, what COM_SET_OPTION
    /// said still holds, and `FOUND_ROWS()` is what it was.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        let options = Options { multi_statements: before.options.multi_statements, ..self.options };
        Self { last_statement: before.last_statement, options, memory: before.memory.after_reset(), ..self }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}
