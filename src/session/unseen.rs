//! Code that is not seen in a text: the bodies of stored routines, looked up after they ran.
//!
//! Whoever may call a routine sees it in `information_schema.routines`, and its body if it is his own or his rights
//! suffice. A body that leaves nothing but what the trackers report does not pin; nor does one that calls only such.
//! What is not found, has no body to be read, or leaves anything else, pins as before. (Between the end of a statement
//! and the question somebody may replace a routine; that is the one moment for which the answer is no proof.)

use std::fmt::Write;

use super::{Ask, PinReason, PinSet, Rows, Session};
use crate::sql::{self, Flags, Mentions, Mode, Routine};

/// A routine, by its full name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// As spelled.
    pub schema: Box<[u8]>,
    /// In lower case.
    pub name: Box<str>,
    /// A procedure, not a function.
    pub procedure: bool,
}

/// What a turn calls.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Still to be asked for.
    wanted: Vec<Target>,
    /// Asked for, and nothing was found against them.
    cleared: Vec<Target>,
    /// One of them names user variables: what it leaves is different each time.
    varies: bool,
    /// What the turn at hand calls is among them.
    expected: bool,
    /// Called in the transaction that is still open: to be asked for when that is over. (A question may be the first to
    /// read, and would fix what the transaction sees.)
    deferred: bool,
}

/// Who looks at the traces or the counters of what runs on a backend that is kept anyway must not find ours there.
const WATCHED: PinSet = PinSet::of(PinReason::Trace).and(PinSet::of(PinReason::StatusCounters));

/// How many routines are looked at for one turn.
const MOST: usize = 64;

/// The statement that tells what routines do: no quote in it, and no byte in the answer that could be read in two ways.
pub(super) fn question(targets: &[Target]) -> String {
    let mut text = "SELECT ROUTINE_TYPE, HEX(ROUTINE_SCHEMA), HEX(ROUTINE_NAME), HEX(CONVERT(ROUTINE_DEFINITION USING utf8mb4)), \
                    SQL_MODE, ROUTINE_BODY, IFNULL(EXTERNAL_LANGUAGE, ROUTINE_BODY) FROM information_schema.ROUTINES WHERE "
        .to_owned();
    for (n, target) in targets.iter().enumerate() {
        let or = if n == 0 { "" } else { " OR " };
        let _ = write!(text, "{or}(ROUTINE_SCHEMA = _utf8mb4 0x{} AND ", hex(&target.schema));
        let _ = write!(text, "ROUTINE_NAME = _utf8mb4 0x{})", hex(target.name.as_bytes()));
    }
    // Overrides the session's `sql_select_limit`.
    let _ = write!(text, " LIMIT {}", 2 * MOST);
    text
}

impl Session {
    /// The text of the command to come calls these and nothing else that is not seen; to be called before
    /// [`Session::begin`]. Those that an operator vouches for, or that are known, are left out.
    pub fn expect_calls(&mut self, calls: Vec<Target>) {
        let unseen = self.rare().unseen.get_or_insert_default();
        unseen.expected = true;
        unseen.wanted.extend(calls);
    }

    /// The full name of a routine that a text of this session calls; none if no schema is chosen.
    #[must_use]
    pub fn target(&self, routine: &Routine) -> Option<Target> {
        let schema = match &routine.schema {
            Some(schema) => schema.as_bytes().into(),
            None => self.state.schema()?.into(),
        };
        Some(Target { schema, name: routine.name.clone(), procedure: routine.procedure })
    }

    /// Routines that were found to leave nothing, by the turn that has just ended; tells each once.
    pub fn cleared(&mut self) -> Vec<Target> {
        let unseen = self.rare.as_mut().and_then(|rare| rare.unseen.take_if(|unseen| !unseen.deferred));
        unseen.filter(|unseen| !unseen.varies).map(|unseen| unseen.cleared).unwrap_or_default()
    }

    /// The turn is over: what it called is asked for, if nothing else speaks against letting go.
    pub(super) fn end_unseen(&mut self) {
        let turn = &self.turn;
        let Some(rare) = &mut self.rare else { return };
        let Some(mut unseen) = rare.unseen.take() else { return };
        if self.pins.intersects(WATCHED) {
            // The question would show, and nothing would come of it.
            return;
        }
        let in_transaction = self.pins.contains(PinReason::Transaction);
        if turn.flags.any(Flags::RUNS_UNSEEN) {
            let alone = unseen.expected && !turn.flags.any(Flags::EXECUTE | Flags::COMPOUND);
            // Of what fails half way nothing is reported.
            let whole = if turn.failed { turn.missing && !in_transaction } else { turn.oks > 0 };
            let first = unseen.deferred || !turn.before.contains(PinReason::Call);
            if !alone || !whole || !first || turn.surprised || unseen.wanted.len() > MOST {
                return;
            }
        } else if !unseen.deferred {
            return;
        }
        unseen.expected = false;
        unseen.deferred = in_transaction;
        if in_transaction {
            // Later.
        } else if !unseen.wanted.is_empty() {
            rare.asks.push(Ask::Routines(unseen.wanted.clone()));
        } else if !turn.missing {
            self.pins.remove(PinReason::Call);
            return;
        }
        rare.unseen = Some(unseen);
    }

    /// What was found of these routines.
    pub(super) fn judge(&mut self, targets: &[Target], rows: Rows) {
        let mode = Mode { mariadb: self.options.mariadb, version: self.options.version, ..Mode::default() };
        let missing = self.turn.missing;
        let Some(rare) = &mut self.rare else { return };
        rare.asks.retain(|ask| !matches!(ask, Ask::Routines(asked) if asked == targets));
        let Some(mut unseen) = rare.unseen.take() else { return };
        let mut variables = Mentions::default();
        let found: Vec<Found> = rows.iter().filter_map(|row| Found::of(row)).collect();
        // Two schemas may differ in case alone: then both must be harmless.
        let of = |target: &Target| found.iter().filter(|found| found.is(target)).collect::<Vec<_>>();
        if missing {
            // None of them exists, so none can have run.
            if targets.iter().all(|target| of(target).is_empty()) && unseen.cleared.is_empty() {
                self.pins.remove(PinReason::Call);
            }
            return;
        }
        let mut next = Vec::new();
        for target in targets {
            let all = of(target);
            if all.is_empty() {
                return;
            }
            for found in all {
                let Some((calls, names)) = found.calls(mode) else { return };
                next.extend(calls);
                variables.join(&names);
                unseen.varies |= !names.is_empty();
            }
            unseen.cleared.push(target.clone());
        }
        let known = |target: &Target| unseen.cleared.contains(target);
        next.retain(|target| !known(target));
        next.dedup();
        if next.is_empty() {
            self.pins.remove(PinReason::Call);
            rare.unseen = Some(Unseen { wanted: Vec::new(), ..unseen });
        } else if next.len() + unseen.cleared.len() <= MOST {
            rare.asks.push(Ask::Routines(next));
            rare.unseen = Some(unseen);
        }
        self.note_mentions(&variables);
    }
}

/// A routine as the server describes it.
struct Found {
    procedure: bool,
    schema: Vec<u8>,
    name: Vec<u8>,
    body: Option<Vec<u8>>,
    mode: Vec<u8>,
}

impl Found {
    fn of(row: &[Option<Vec<u8>>]) -> Option<Self> {
        let [Some(kind), Some(schema), Some(name), body, Some(mode), Some(written), Some(language)] = row else {
            return None;
        };
        let sql = written == b"SQL" && language == b"SQL";
        Some(Self {
            procedure: kind == b"PROCEDURE",
            schema: unhex(schema)?,
            name: unhex(name)?,
            body: body.as_deref().filter(|_| sql && matches!(&**kind, b"PROCEDURE" | b"FUNCTION")).and_then(unhex),
            mode: mode.clone(),
        })
    }

    fn is(&self, target: &Target) -> bool {
        self.procedure == target.procedure
            && self.schema.eq_ignore_ascii_case(&target.schema)
            && self.name.eq_ignore_ascii_case(target.name.as_bytes())
    }

    /// What its body calls, and the user variables that it names, if it leaves nothing else that is not reported.
    fn calls(&self, server: Mode) -> Option<(Vec<Target>, Mentions)> {
        let has = |word: &[u8]| self.mode.split(|b| *b == b',').any(|mode| mode == word);
        // In the one a procedure is called by its mere name, for the other servers spell strings with backslashes again.
        if has(b"ORACLE") || has(b"NO_BACKSLASH_ESCAPES") {
            return None;
        }
        let mode = Mode { ansi_quotes: has(b"ANSI_QUOTES"), ignore_space: has(b"IGNORE_SPACE"), ..server };
        let code = sql::code(self.body.as_deref()?, mode);
        let target = |routine: Routine| Target {
            schema: routine.schema.map_or_else(|| self.schema.clone().into(), |schema| schema.as_bytes().into()),
            name: routine.name,
            procedure: routine.procedure,
        };
        let calls = code.calls.filter(|_| code.reported)?;
        Some((calls.into_iter().map(target).collect(), code.variables))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02X}");
        hex
    })
}

fn unhex(digits: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.as_ref().chunks(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}
