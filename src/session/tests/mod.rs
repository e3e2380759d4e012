//! Tests of the session: a small stage on which texts and replies are played, and the plays.

mod asks;
mod diagnostics;
mod named;
mod pins;
mod restores;
mod statements;
mod unseen;
mod user_variables;
mod variables;

use std::sync::Arc;

use bytes::BytesMut;

use super::*;
use crate::protocol::capability::StatusFlags;
use crate::protocol::command::Command;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::session_track::Change;
use crate::sql::{self, Effects};

const MYSQL: Options = Options {
    mariadb: false,
    multi_statements: false,
    tracks: false,
    ansi_quotes: false,
    no_backslash_escapes: false,
    ignore_space: false,
    autocommit_off: false,
    version: 90_704,
    user_variables: 100,
};
const MARIA: Options = Options { mariadb: true, version: 101_119, ..MYSQL };

/// One reply of the server.
#[derive(Clone, Debug)]
struct Reply {
    error: Option<u16>,
    affected: u64,
    insert_id: u64,
    status: StatusFlags,
    warnings: u16,
    rows: Option<u64>,
    changes: BytesMut,
}

fn ok() -> Reply {
    Reply {
        error: None,
        affected: 0,
        insert_id: 0,
        status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        warnings: 0,
        rows: None,
        changes: BytesMut::new(),
    }
}

fn rows(rows: u64) -> Reply {
    Reply { rows: Some(rows), ..ok() }
}

fn err(code: u16) -> Reply {
    Reply { error: Some(code), ..ok() }
}

impl Reply {
    fn with(mut self, change: Change<'_>) -> Self {
        change.encode(&mut self.changes);
        self
    }
    fn state(self) -> Self {
        self.with(Change::StateChanged(true))
    }
    fn var(self, name: &str, value: &str) -> Self {
        self.with(Change::Variable { name: name.as_bytes(), value: value.as_bytes() })
    }
    /// As the servers report an assignment.
    fn set(self, name: &str, value: &str) -> Self {
        self.var(name, value).state()
    }
    fn names(self, charset: &str) -> Self {
        self.var("character_set_client", charset)
            .var("character_set_connection", charset)
            .set("character_set_results", charset)
    }
    fn schema(self, name: &str) -> Self {
        self.with(Change::Schema(name.as_bytes())).state()
    }
    fn trx(self, state: &str) -> Self {
        self.with(Change::Transaction(state.as_bytes()))
    }
    fn chars(self, text: &str) -> Self {
        self.with(Change::Characteristics(text.as_bytes()))
    }
    fn status(mut self, flags: StatusFlags) -> Self {
        self.status |= flags;
        self
    }
    fn in_trans(self) -> Self {
        self.status(StatusFlags::SERVER_STATUS_IN_TRANS)
    }
    /// Under autocommit=0.
    fn manual(mut self) -> Self {
        self.status.remove(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        self
    }
    fn affected(self, affected: u64) -> Self {
        Self { affected, ..self }
    }
    fn id(self, insert_id: u64) -> Self {
        Self { insert_id, affected: 1, ..self }
    }
    fn warned(self, warnings: u16) -> Self {
        Self { warnings, ..self }
    }
}

/// A session and what is played with it.
struct Stage {
    session: Session,
    interner: Arc<Interner>,
}

fn base() -> StateSpec {
    StateSpec { charset: Charset::names("utf8mb4", "utf8mb4_general_ci"), ..StateSpec::default() }
}

impl Stage {
    fn new(options: Options) -> Self {
        let interner = Arc::new(Interner::new());
        let session = Session::new(interner.intern(base()), Arc::clone(&interner), options);
        Self { session, interner }
    }

    /// On both servers.
    fn both() -> [Self; 2] {
        [Self::new(MYSQL), Self::new(MARIA)]
    }

    /// Plays one command and its replies, up to but not including the end of the turn.
    fn command(&mut self, command: Command, effects: Effects, replies: &[Reply]) -> &mut Self {
        self.session.begin(command, &effects);
        self.replies(replies)
    }

    fn replies(&mut self, replies: &[Reply]) -> &mut Self {
        for reply in replies {
            if let Some(code) = reply.error {
                self.session.observe_err(code);
                continue;
            }
            let packet = OkPacket {
                header: if reply.rows.is_some() { OkPacket::END } else { OkPacket::OK },
                affected_rows: reply.affected,
                insert_id: reply.insert_id,
                status: reply.status,
                warnings: reply.warnings,
                info: b"",
                session_state: &reply.changes,
            };
            self.session.observe_ok(&packet, reply.rows);
        }
        self
    }

    fn effects(&self, text: &str) -> Effects {
        sql::effects(text.as_bytes(), self.session.mode())
    }

    /// Plays a COM_QUERY, whose turn is expected to end without a question.
    fn query(&mut self, text: &str, replies: &[Reply]) -> &mut Self {
        let effects = self.spoken(text);
        self.command(Command::Query, effects, replies);
        assert_eq!(self.session.end(), Followup::None, "after {text}");
        self
    }

    /// Plays a COM_QUERY, and answers each question of its end by `answers`: variables and their values.
    fn asked(&mut self, text: &str, replies: &[Reply], answers: &[(&str, Option<&str>)]) -> Vec<String> {
        let effects = self.effects(text);
        self.command(Command::Query, effects, replies);
        self.answer(answers)
    }

    fn answer(&mut self, answers: &[(&str, Option<&str>)]) -> Vec<String> {
        let mut texts = Vec::new();
        while let Followup::Ask(ask) = self.session.end() {
            texts.push(ask.text());
            let rows = match &ask {
                Ask::FoundRows => Some(vec![vec![Some(b"1".to_vec())]]),
                Ask::Warnings | Ask::Mark | Ask::UserVariables { .. } | Ask::UserVariableNames => Some(vec![]),
                Ask::Schema => {
                    let told = answers.iter().find(|(known, _)| *known == "schema");
                    told.map(|(_, schema)| vec![vec![schema.map(|schema| schema.as_bytes().to_vec())]])
                }
                Ask::Routines(_) | Ask::Role => None,
                Ask::Variables(names) => {
                    let value = |name: &str| answers.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
                    let row: Option<Vec<_>> = names.iter().map(|name| value(name)).collect();
                    row.map(|row| vec![row.into_iter().map(|v| v.map(|v| v.as_bytes().to_vec())).collect()])
                }
            };
            self.session.answer(&ask, rows);
            assert!(texts.len() < 10, "questions without an end: {texts:?}");
        }
        texts
    }

    /// Plays COM_STMT_PREPARE.
    fn prepare(&mut self, text: &str, id: u32) -> &mut Self {
        let effects = self.effects(text);
        self.session.begin(Command::StmtPrepare, &effects);
        self.session.observe_prepared(0);
        assert_eq!(self.session.end(), Followup::None);
        let text = Texts::default().intern(text.as_bytes(), self.session.mode(), effects);
        let state = meaning(&self.interner, self.session.state());
        self.session.add_statement(id, Statement::new(text, state, 0));
        self
    }

    /// Plays COM_STMT_EXECUTE, whose turn is not ended.
    fn execute(&mut self, id: u32, replies: &[Reply]) -> &mut Self {
        let effects = self.effects_of(id);
        self.command(Command::StmtExecute, effects, replies)
    }

    fn effects_of(&self, id: u32) -> Effects {
        self.session.effects_of(self.session.statement(id).expect("a statement"))
    }

    #[track_caller]
    fn pinned(&mut self, labels: &[&str]) -> &mut Self {
        let pins: Vec<_> = self.session.pins().iter().map(PinReason::label).collect();
        assert_eq!(pins, labels);
        self
    }

    #[track_caller]
    fn variables(&mut self, expected: &[(&str, &str)]) -> &mut Self {
        let spec = self.session.state().spec();
        let found: Vec<_> = spec
            .variables
            .iter()
            .map(|(name, value)| (&**name, String::from_utf8_lossy(&value.0).into_owned()))
            .collect();
        let found: Vec<_> = found.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(found, expected);
        self
    }
}

#[test]
fn a_session_is_small() {
    assert!(size_of::<Session>() <= 288, "{} bytes", size_of::<Session>());
}

#[test]
fn the_box_of_rare_things_is_given_back() {
    for mut stage in Stage::both() {
        stage.query("HANDLER t OPEN", &[ok()]).query("HANDLER t CLOSE", &[ok()]);
        stage.prepare("SELECT @@a", 1);
        assert!(stage.session.close_statement(1).is_some());
        stage.query("DO 1", &[ok()]).pinned(&[]);
        assert!(stage.session.rare.is_none());
    }
}

#[test]
fn equal_states_are_one() {
    let mut a = Stage::new(MYSQL);
    let before = Arc::clone(a.session.state());
    a.query("SET sql_mode=''", &[ok().set("sql_mode", "")]);
    let mut b = Session::new(Arc::clone(&before), Arc::clone(&a.interner), MYSQL);
    std::mem::swap(&mut a.session, &mut b);
    a.query("SET sql_mode=''", &[ok().set("sql_mode", "")]);
    assert!(Arc::ptr_eq(a.session.state(), b.state()));
    assert_eq!(a.interner.len(), 2);
    drop(b);
    a.session.reset(Arc::clone(&before));
    assert_eq!(a.interner.len(), 1, "nobody holds the other any more");
    assert!(Arc::ptr_eq(a.session.state(), &before));
}
