//! COM_STMT_PREPARE: answered from what a backend told before, or by a backend; and preparing once more where a statement
//! is executed that this backend does not have.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;

use super::lend;
use super::remember::{self, Answer, Key};
use super::reply::{self, Fault};
use super::serve::Client;
use super::turn::{Next, Passed};
use crate::backend::{Prefix, QueryError, Wanted};
use crate::metrics::ClientState;
use crate::pool::{Lease, Server};
use crate::protocol::command::{Command, ReplyKind};
use crate::protocol::frame::{HEADER, Header, packet_with};
use crate::protocol::packet::err::ErrPacket;
use crate::protocol::packet::prepare::PrepareOk;
use crate::relay::{self, Aside, Broken, Channel, Traffic};
use crate::session::{BackendState, Plan, Recall, Statement, Text, meaning, plan, to_prepare_in};
use crate::sql::{self, Effects};

/// A longer text is not kept: its statement stays where it was prepared.
pub(super) const MAX_TEXT: usize = 64 << 10;

/// The largest answer to a preparation, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// ER_MAX_PREPARED_STMT_COUNT_REACHED
pub(super) const NO_ROOM: u16 = 1461;

/// ER_UNSUPPORTED_PS: a kind of statement that cannot be prepared, such as MySQL's BEGIN.
const UNPREPARABLE: u16 = 1295;

/// Why a statement could not be prepared.
pub(super) enum Unprepared {
    /// The server's error: a whole payload.
    Refused(Vec<u8>),
    /// The backend cannot be brought to the state that the statement was prepared in, or back: of no further use.
    NotRestored(QueryError),
    /// The turn broke.
    Broken(Broken),
}

impl Client {
    /// COM_STMT_PREPARE
    pub(super) async fn prepare(&mut self) -> Next {
        let limit = self.door.settings.max_statements;
        if self.session.statement_count() >= limit {
            self.session.next_statement_id();
            return self.refuse_here(&Fault::TooManyStatements { limit }).await;
        }
        match self.read_front(MAX_TEXT).await {
            Ok(()) if self.is_whole() && self.argument().len() <= MAX_TEXT => {}
            Ok(()) => return self.turn(Command::StmtPrepare, None).await,
            Err(next) => return next,
        }
        let mode = self.session.mode();
        let effects = sql::effects(self.argument(), mode);
        // The client's own number is put in now: it does not change.
        let text = match self.session.recall_number(self.argument(), &effects, self.registered.entry.id) {
            Recall::Text(text) => self.door.texts.intern(&text, mode, effects),
            _ => self.door.texts.intern(self.argument(), mode, effects),
        };
        let state = meaning(&self.door.interner, self.session.state());
        // MySQL fixes the type of a user variable that is read when the text is prepared.
        let private = !mode.mariadb && effects.reads_user_variables();
        let key = remember::key(&self.guest.class, &text, &state);
        let wanted = Wanted::fresh(text, state);
        let creates = self.session.creates(&effects);
        if !private
            && !creates
            && let Some(answer) = self.recall(&key)
        {
            self.consume_command();
            return self.prepared_from_memory(&wanted, &answer).await;
        }
        Box::pin(self.prepare_there(wanted, effects, private, key)).await
    }

    /// The answer to this preparation, if it may be given without asking.
    fn recall(&self, key: &Key) -> Option<Arc<Answer>> {
        let may = self.kept.is_none() && self.session.may_prepare_from_memory();
        if may { self.door.remembered.get(key, Instant::now()) } else { None }
    }

    async fn prepared_from_memory(&mut self, wanted: &Wanted, answer: &Answer) -> Next {
        self.door.metrics.session.remembered_prepares.inc();
        let id = self.session.next_statement_id();
        let mut out = BytesMut::with_capacity(answer.raw.len());
        let Some(ok) = answer.ok else {
            self.refused_from_memory(&answer.raw, &mut out);
            return self.send(&mut out).await;
        };
        self.session.observe_remembered_preparation();
        self.add_statement(id, wanted.statement(ok.params));
        reply::prepared(&mut out, &answer.raw, id, self.guest.capabilities, self.status);
        self.send(&mut out).await
    }

    /// No server prepares it, whoever asks.
    fn refused_from_memory(&mut self, payload: &[u8], out: &mut BytesMut) {
        if let Ok(err) = ErrPacket::parse(payload) {
            self.error = err.code;
            self.door.metrics.relay.error(err.code);
            let message = String::from_utf8_lossy(err.message);
            self.session.observe_refused(err.code, err.state.unwrap_or(*b"HY000"), &message);
        }
        packet_with(out, 1, |out| out.extend_from_slice(payload));
    }

    fn add_statement(&mut self, id: u32, statement: Statement) {
        self.session.add_statement(id, statement);
        self.show_statements();
    }

    /// Has a backend prepare it.
    async fn prepare_there(&mut self, wanted: Wanted, effects: Effects, private: bool, key: Key) -> Next {
        let (mut lease, mut prefix) = match self.restored(Command::StmtPrepare, Some(&effects)).await {
            Ok(ready) => ready,
            Err(next) => return next,
        };
        self.consume_command();
        if !private
            && !self.session.creates(&effects)
            && let Some(answer) = self.recall(&key)
        {
            // Somebody else has asked while this client waited.
            if self.moved {
                lend::give_back(lease, 0);
            } else if let ControlFlow::Break(goodbye) = self.let_go(lease, ControlFlow::Continue(())).await {
                return ControlFlow::Break(goodbye);
            }
            return self.prepared_from_memory(&wanted, &answer).await;
        }
        self.session
            .mark(Command::StmtPrepare, Some(&effects))
            .into_iter()
            .for_each(|mark| prefix.append(mark, &lease));
        let started = Instant::now();
        let mut traffic = Traffic::default();
        let era = self.door.remembered.era();
        let may_keep = !private && self.kept.is_none() && self.session.is_plain();
        let id = self.session.next_statement_id();
        self.session.begin(Command::StmtPrepare, &effects);
        let asked = self.ask_to_prepare(&mut lease, prefix, &wanted, &mut traffic).await;
        let mut out = BytesMut::new();
        match asked {
            Ok((ok, raw)) => {
                self.session.observe_prepared(ok.warnings);
                let mut statement = wanted.statement(ok.params);
                if private {
                    lease.prepared.insert_held(ok.statement_id, &wanted);
                    (statement.private, statement.held) = (true, Some(ok.statement_id));
                } else {
                    lease.prepared.insert_anew(ok.statement_id, &wanted);
                }
                self.add_statement(id, statement);
                reply::prepared(&mut out, &raw, id, self.guest.capabilities, self.status);
                if may_keep && ok.warnings == 0 {
                    let answer = Arc::new(Answer { ok: Some(ok), raw });
                    self.door.remembered.keep(key, answer, era, Instant::now());
                }
            }
            Err(Unprepared::Refused(payload)) => {
                self.note_refusal(&payload, 1, &mut out);
                if may_keep && self.error == UNPREPARABLE {
                    let answer = Arc::new(Answer { ok: None, raw: payload });
                    self.door.remembered.keep(key, answer, era, Instant::now());
                }
            }
            Err(Unprepared::Broken(broken)) => return Box::pin(self.broken(lease, broken)).await,
            Err(Unprepared::NotRestored(error)) => return self.not_restored(lease, &error).await,
        }
        traffic.to_client += out.len() as u64;
        self.count(&traffic, started);
        match self.after(lease).await {
            ControlFlow::Continue(()) => self.send(&mut out).await,
            gone => gone,
        }
    }

    /// The server has refused to prepare: for the session this is the end of a statement.
    pub(super) fn note_refusal(&mut self, payload: &[u8], seq: u8, out: &mut BytesMut) {
        if let Ok(err) = ErrPacket::parse(payload) {
            self.error = err.code;
            self.door.metrics.relay.error(err.code);
            self.session.observe_err(err.code);
            self.session.observe_state(err.state);
        }
        packet_with(out, seq, |out| out.extend_from_slice(payload));
    }

    /// Has this backend prepare a statement, in the state that it is in behind the prefix. If the server has no room for
    /// another one, those that are kept here are given back first.
    async fn ask_to_prepare(
        &mut self,
        lease: &mut Lease<Server>,
        prefix: Prefix,
        wanted: &Wanted,
        traffic: &mut Traffic,
    ) -> Result<(PrepareOk, Vec<u8>), Unprepared> {
        lease.served.begin(self.owner());
        self.gauge.enter(ClientState::Running);
        self.registered.entry.runs_on(lease.thread_id);
        let mut prefix = prefix;
        loop {
            let mut bytes = lease.prepared.closes();
            bytes.unsplit(prefix.bytes);
            packet_with(&mut bytes, 0, |out| {
                out.extend_from_slice(&[Command::StmtPrepare.byte()]);
                out.extend_from_slice(wanted.text());
            });
            let prefix_replies = prefix.replies;
            let limit = MAX_ANSWER;
            let aside = Aside { bytes: &bytes, prefix_replies, seq: 0, reply: ReplyKind::Prepare, limit };
            let dialect = self.dialect(lease);
            let backend = &mut **lease;
            let mut client = Channel { stream: &mut self.stream, buffer: &mut self.buffer };
            let mut server = Channel { stream: &mut backend.stream, buffer: &mut backend.buffer };
            let raw = relay::aside(&mut client, &mut server, aside, dialect, traffic).await;
            let raw = raw.map_err(Unprepared::Broken)?;
            let len = Header::parse(&raw).map_or(0, |header| header.len);
            let payload = raw.get(HEADER..HEADER + len).unwrap_or_default();
            match (PrepareOk::parse(payload), ErrPacket::parse(payload)) {
                (Ok(ok), _) => return Ok((ok, raw)),
                (_, Ok(err)) if err.code == NO_ROOM && lease.prepared.give_back() => prefix = Prefix::default(),
                _ => return Err(Unprepared::Refused(payload.to_vec())),
            }
        }
    }

    /// Prepares a statement of this client on a backend that does not have it. What must go in front of the command
    /// that needs it is in `prefix` afterwards.
    pub(super) async fn prepare_again(
        &mut self,
        lease: &mut Lease<Server>,
        prefix: &mut Prefix,
        wanted: &Wanted,
        traffic: &mut Traffic,
    ) -> Result<u32, Unprepared> {
        let here = Arc::clone(self.session.state());
        let held = self.session.held();
        let asked = if Arc::ptr_eq(&meaning(&self.door.interner, &here), wanted.state()) {
            let asked = self.ask_to_prepare(lease, std::mem::take(prefix), wanted, traffic).await;
            lease.state = held;
            asked
        } else {
            if !self.is_pinned() {
                // The restore that it was is not needed: this one leads there as well.
                *prefix = Prefix::default();
            }
            let there = to_prepare_in(&self.door.interner, wanted.state(), &here);
            bring(lease, &BackendState { state: there, ..held.clone() }).await?;
            let asked = self.ask_to_prepare(lease, Prefix::default(), wanted, traffic).await;
            if !matches!(asked, Err(Unprepared::Broken(_))) {
                bring(lease, &held).await?;
            }
            asked
        };
        let (ok, _) = asked?;
        let id = ok.statement_id;
        lease.prepared.insert(id, wanted);
        Ok(id)
    }

    /// A statement could not be prepared where it was to be executed: that is the command's answer.
    pub(super) async fn unprepared(&mut self, lease: Lease<Server>, unprepared: Unprepared) -> Next {
        match unprepared {
            Unprepared::Refused(payload) => {
                self.session.begin(Command::StmtPrepare, &Effects::default());
                let seq = match self.skip_command().await {
                    Ok(seq) => seq,
                    Err(next) => {
                        self.lease = Some(lease);
                        return next;
                    }
                };
                let mut out = BytesMut::new();
                self.note_refusal(&payload, seq.wrapping_add(1), &mut out);
                match self.after(lease).await {
                    ControlFlow::Continue(()) => self.send(&mut out).await,
                    gone => gone,
                }
            }
            Unprepared::Broken(broken) => {
                // The error is its answer: what has arrived of it must not be taken for the next command.
                let whole = self.is_whole();
                self.consume_command();
                let next = Box::pin(self.broken(lease, broken)).await;
                if whole { next } else { gone(next) }
            }
            Unprepared::NotRestored(error) => self.not_restored(lease, &error).await,
        }
    }

    /// Long data cannot be delivered. Nobody waits for an answer now: the execute that needs it will get one.
    pub(super) async fn undelivered(&mut self, lease: Lease<Server>, id: u32, unprepared: Unprepared) -> Next {
        match unprepared {
            Unprepared::Refused(_) => {
                self.session.change_statement(id, |statement| statement.lost_data = true);
                let skipped = self.skip_command().await;
                self.session.begin(Command::StmtSendLongData, &Effects::default());
                match (skipped, self.after(lease).await) {
                    (Ok(_), next) | (Err(next), _) => next,
                }
            }
            Unprepared::Broken(broken) => gone(Box::pin(self.broken(lease, broken)).await),
            Unprepared::NotRestored(error) => gone(self.not_restored(lease, &error).await),
        }
    }

    /// The backend is in neither state: it goes, and with it a session that was pinned to it.
    async fn not_restored(&mut self, lease: Lease<Server>, error: &QueryError) -> Next {
        self.registered.entry.runs_nothing().await;
        self.door.metrics.session.restore_failures.inc();
        let (fault, reason) = match error {
            QueryError::Refused { code, state, message } => {
                let fault = Fault::Server { code: *code, state: *state, message: message.clone() };
                (fault, crate::metrics::CloseReason::Dirty)
            }
            error => (Fault::BackendLost { reason: error.to_string() }, crate::metrics::CloseReason::Lost),
        };
        lease.discard(reason);
        if self.is_pinned() {
            return ControlFlow::Break(self.last_words(1, &fault, crate::metrics::Goodbye::BackendLost).await);
        }
        self.refuse_here(&fault).await
    }

    /// A text too long to be kept was prepared: its statement stays on this backend, and the session with it.
    pub(super) fn prepared_privately(&mut self, lease: &mut Lease<Server>, passed: Passed) {
        let Some((id, Some(ok))) = passed.prepared else { return };
        let effects = passed.late.map(|effects| *effects).unwrap_or_default();
        let text: Arc<Text> = self.door.texts.nameless(self.session.mode(), effects);
        let wanted = Wanted::fresh(text, meaning(&self.door.interner, self.session.state()));
        lease.prepared.insert_held(ok.statement_id, &wanted);
        let held = Some(ok.statement_id);
        self.add_statement(id, Statement { private: true, held, ..wanted.statement(ok.params) });
    }
}

/// The client goes: what it was told, it cannot make sense of.
fn gone(next: Next) -> Next {
    match next {
        ControlFlow::Continue(()) => ControlFlow::Break(crate::metrics::Goodbye::BackendLost),
        goodbye => goodbye,
    }
}

/// Brings a backend to this state and waits for it.
pub(super) async fn bring(lease: &mut Lease<Server>, to: &BackendState) -> Result<(), Unprepared> {
    match plan(&lease.state, to) {
        Plan::Nothing => {}
        Plan::Restore(restore) => lease.restore(&restore).await.map_err(Unprepared::NotRestored)?,
        Plan::Unreachable => {
            let error = std::io::Error::other("the session's schema is gone, and its backend cannot leave another one");
            return Err(Unprepared::NotRestored(error.into()));
        }
    }
    lease.state = to.clone();
    Ok(())
}
