//! What the session learns while its turn passes by.

use bytes::BytesMut;

use super::Door;
use super::chatter::Said;
use super::echo::Asked;
use super::remember::may_redefine;
use crate::backend::Changing;
use crate::protocol::capability::{OF_ONE_STATEMENT, StatusFlags};
use crate::protocol::command::Command;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::prepare::PrepareOk;
use crate::protocol::response::{Body, End};
use crate::relay::Witness;
use crate::session::Session;
use crate::sql::{Effects, Flags, Lexer};

/// Tells the session what passes.
pub(super) struct Watch<'a> {
    session: &'a mut Session,
    status: &'a mut StatusFlags,
    door: &'a Door,
    command: Command,
    /// The text may set a global variable, and is not answered yet.
    changing: Option<Changing<'a>>,
    /// The text may change what statements are that were prepared before.
    redefines: bool,
    /// The id by which the client shall know what is prepared, and what the server said of it.
    pub(super) prepares: Option<(u32, Option<PrepareOk>)>,
    /// What a text does that was read as it passed.
    pub(super) late: Option<Box<Effects>>,
    /// The answer to the SET under way is worth remembering.
    pub(super) asked: Option<&'a mut Asked>,
    /// The text may change accounts.
    changes_accounts: bool,
    /// The backend's trackers are the client's own, for this turn.
    own_trackers: bool,
    /// Reads a text that was too large to be read beforehand.
    lexer: Option<Box<Lexer>>,
    /// How many warnings the OK to a command that is no statement counts, if the backend does not know.
    counted: Option<u16>,
    /// How many bytes in front of the text are still to pass: the command's code and attributes.
    skip: usize,
    taken: bool,
    /// The error that ended the reply; 0: none.
    error: u16,
}

impl<'a> Watch<'a> {
    /// `effects` is what the command's text does; none if the text is still on its way.
    pub(super) fn new(
        session: &'a mut Session,
        status: &'a mut StatusFlags,
        door: &'a Door,
        command: Command,
        effects: Option<&Effects>,
        own_trackers: bool,
    ) -> Self {
        let lexer = effects.is_none().then(|| Box::new(Lexer::new(session.mode())));
        let is_other = matches!(command, Command::InitDb | Command::SetOption | Command::Debug);
        let counted = if is_other { session.counted_warnings() } else { None };
        let mut watch = Self {
            session,
            status,
            door,
            command,
            changing: None,
            changes_accounts: false,
            redefines: false,
            prepares: None,
            late: None,
            asked: None,
            own_trackers,
            lexer,
            counted,
            skip: 1,
            taken: false,
            error: 0,
        };
        watch.note(effects);
        watch
    }

    /// The text begins only behind its attributes, which are so long.
    pub(super) fn skip_attributes(&mut self, len: u32) {
        self.skip += len as usize;
    }

    fn note(&mut self, effects: Option<&Effects>) {
        let runs = self.command.runs_statement();
        let sets_globals = runs && effects.is_some_and(|effects| effects.may(Flags::SET_GLOBAL));
        self.changing = sets_globals.then(|| self.door.connector.changing());
        self.changes_accounts = runs && effects.is_some_and(|effects| effects.may(Flags::CHANGES_ACCOUNTS));
        self.redefines = runs && effects.is_none_or(may_redefine);
    }

    /// The error that the reply ended with; 0: none.
    pub(super) fn error(&self) -> u16 {
        self.error
    }

    /// Was the whole command taken from the client?
    pub(super) fn is_taken(&self) -> bool {
        self.taken
    }
}

impl Witness for Watch<'_> {
    fn command(&mut self, payload: &[u8]) {
        if let Some(lexer) = &mut self.lexer {
            let skipped = self.skip.min(payload.len());
            self.skip -= skipped;
            lexer.feed(payload.get(skipped..).unwrap_or_default());
        }
    }

    fn command_taken(&mut self) {
        self.taken = true;
        if let Some(lexer) = self.lexer.take() {
            let effects = lexer.finish();
            self.note(Some(&effects));
            self.session.late_effects(effects);
            self.late = Some(Box::new(effects));
        }
    }

    fn prepared(&mut self, prepared: &PrepareOk) -> u32 {
        self.session.observe_prepared(prepared.warnings);
        let Some((id, ok)) = &mut self.prepares else { return prepared.statement_id };
        *ok = Some(*prepared);
        *id
    }

    fn end(&mut self, end: &End<'_>) {
        if self.redefines {
            // Before the client hears of it: what is prepared after that must be what is there now.
            self.door.remembered.forget();
        }
        self.error = match &end.body {
            Body::Err(err) => err.code,
            _ => 0,
        };
        match &end.body {
            Body::Ok(ok) => {
                *self.status = ok.status;
                self.session.observe_ok(ok, None);
                if let Some(asked) = &mut self.asked {
                    asked.said = Said::of(ok);
                    if ok.warnings > 0 {
                        self.session.ask_for_list();
                    }
                }
                if self.changing.is_some() {
                    // Before the client hears of it: whoever comes after that must see the new default.
                    self.door.globals_changed();
                }
                if self.changes_accounts {
                    self.door.accounts_changed();
                }
            }
            Body::RowsEnd(ok) => {
                *self.status = ok.status;
                self.session.observe_ok(ok, Some(end.rows));
            }
            Body::RowsEndEof(eof) => {
                *self.status = eof.status;
                let ok = OkPacket {
                    header: OkPacket::END,
                    affected_rows: 0,
                    insert_id: 0,
                    status: eof.status,
                    warnings: eof.warnings,
                    info: b"",
                    session_state: b"",
                };
                self.session.observe_ok(&ok, Some(end.rows));
            }
            Body::Err(err) => {
                self.door.metrics.relay.error(err.code);
                self.session.observe_err(err.code);
                self.session.observe_other_err(err.code, err.message);
                self.session.observe_state(err.state);
            }
            Body::Text => {}
        }
        self.status.remove(OF_ONE_STATEMENT);
    }

    fn warnings(&self, said: u16) -> u16 {
        self.counted.unwrap_or(said)
    }

    fn tell(&mut self, changes: &[u8], out: &mut BytesMut) -> bool {
        if self.own_trackers {
            out.extend_from_slice(changes);
            return true;
        }
        self.session.filter(changes, out)
    }
}
