//! Statements that have a name: `PREPARE`, `EXECUTE` and `DEALLOCATE PREPARE` as text.
//!
//! The names stay on the backend where they were given. Only when a text says something about one of them elsewhere, or may
//! do so in code that is not seen, it is prepared again there; and what others have left under a name is taken away
//! before.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::BytesMut;

use super::prepare::{MAX_TEXT, Unprepared, bring};
use super::serve::Client;
use super::turn::{Next, Task};
use crate::backend::{Prefix, QueryError};
use crate::metrics::ClientState;
use crate::pool::{Lease, Server};
use crate::protocol::command::Command;
use crate::protocol::frame::{HEADER, Header};
use crate::protocol::packet::err::ErrPacket;
use crate::protocol::packet::ok::OkPacket;
use crate::relay::{self, Aside, Channel, Traffic};
use crate::session::{BackendState, Deed, Known, Named, PARSE_ERROR, Plan, Recall, meaning, plan, to_prepare_in};
use crate::sql::{self, Effects, Flags, Literal, Naming};

/// The largest answer to a `PREPARE`, in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// What a text says about statements that have a name.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    /// What must be on its backend.
    need: Need,
    deed: Option<Deed>,
    /// The text of what it executes, if that is in it.
    literal: Option<Literal>,
    /// It executes this.
    pub(super) named: Option<Arc<Named>>,
}

/// What of the session's names must be on a backend for a command.
#[derive(Debug, Default)]
enum Need {
    #[default]
    Nothing,
    /// All of them, and no others.
    All,
    /// This one.
    Statement(Arc<Named>),
    /// This name, whatever it stands for.
    Any(Arc<Named>),
    /// Nothing under this name.
    None(Box<str>),
}

impl Client {
    /// A text about such a statement.
    pub(super) async fn text_about_named(&mut self, effects: Effects) -> Next {
        let mode = self.session.mode();
        let mut task = Task::new(Command::Query, Some(effects));
        let spoken = match sql::naming(self.text(), mode) {
            None => Spoken { need: Need::All, ..Spoken::default() },
            Some(Naming::Prepare { name, bare, literal, read }) => {
                // If the server cannot read this, what has the name now stays.
                let sure = read && (!bare || self.session.is_bare(&name));
                let need = if sure { Need::Nothing } else { Need::All };
                let named = literal.and_then(|literal| self.foresee_name(&name, &literal));
                if let (Some(named), Some(effects)) = (&named, &mut task.effects) {
                    // MySQL looks at them now.
                    effects.mentions.join(&named.text.effects().mentions);
                }
                Spoken { need, deed: Some(Deed::Prepare { name, bare, named, read }), ..Spoken::default() }
            }
            Some(Naming::Deallocate(name)) => {
                let need = match self.session.named(&name) {
                    Known::Statement(named) => Need::Any(named),
                    Known::Nothing => Need::None(name.clone()),
                    Known::Unseen => Need::All,
                };
                Spoken { need, deed: Some(Deed::Deallocate(name)), ..Spoken::default() }
            }
            Some(Naming::Execute(name)) => match self.session.named(&name) {
                Known::Statement(named) => {
                    task.effects = Some(self.session.effects_of_named(&named, &effects));
                    Spoken { need: Need::Statement(Arc::clone(&named)), named: Some(named), ..Spoken::default() }
                }
                Known::Nothing => {
                    task.effects = Some(effects.of_no_statement());
                    Spoken { need: Need::None(name), ..Spoken::default() }
                }
                Known::Unseen => Spoken { need: Need::All, ..Spoken::default() },
            },
            Some(Naming::Immediate(literal)) => {
                let inner = sql::effects(&literal.value, mode);
                if inner.statements == 1 {
                    task.effects = Some(inner.executed(&effects));
                }
                let need = need_of(task.effects.as_ref());
                Spoken { need, literal: Some(literal), ..Spoken::default() }
            }
        };
        if let Some((kill, id)) = task.effects.and_then(|effects| effects.kill).and_then(|kill| Some((kill, kill.id?)))
        {
            return Box::pin(self.kill_number(kill, id)).await;
        }
        task.spoken = Some(Box::new(spoken));
        self.turn_of(task).await
    }

    /// The statement that a `PREPARE` at the buffer's front is about to give this name, if it can be known later.
    fn foresee_name(&mut self, name: &str, literal: &Literal) -> Option<Arc<Named>> {
        let mode = self.session.mode();
        let effects = sql::effects(&literal.value, mode);
        // The client's own number is put in now: it does not change.
        if let Recall::Text(text) = self.session.recall_number(&literal.value, &effects, self.registered.entry.id) {
            let text = literal.replaced(self.text(), &text, mode);
            self.replace_command(Command::Query, &text);
        }
        let len = self.text().len();
        if effects.statements != 1 || len > MAX_TEXT || !self.session.may_name(len) {
            return None;
        }
        let text = self.door.named_texts.intern(self.text(), mode, effects);
        let state = meaning(&self.door.interner, self.session.state());
        Some(Arc::new(Named { name: name.into(), text, state }))
    }

    /// What a statement that is executed by name, or out of a string, asks about the one before it.
    pub(super) fn recalled_spoken(&self, spoken: &Spoken, effects: Option<&Effects>) -> Recall {
        let Some(effects) = effects else { return Recall::Backend };
        if let Some(literal) = &spoken.literal {
            let mode = self.session.mode();
            let inner = sql::effects(&literal.value, mode);
            return match self.session.recall(&literal.value, &inner, self.registered.entry.id) {
                Recall::Text(text) => Recall::Text(literal.replaced(self.text(), &text, mode)),
                other => other,
            };
        }
        match &spoken.named {
            Some(_) => self.session.recall_named(effects),
            None => Recall::Backend,
        }
    }

    /// Sees to it that the backend has what the command needs. What must go in front of the command is in `prefix`
    /// afterwards.
    pub(super) async fn bring_names(
        &mut self,
        lease: &mut Lease<Server>,
        prefix: &mut Prefix,
        task: &Task,
    ) -> Result<(), Unprepared> {
        if lease.names.is_empty() && self.session.all_named().next().is_none() {
            return Ok(());
        }
        let unseen;
        let need = match &task.spoken {
            Some(spoken) => &spoken.need,
            None => {
                unseen = need_of(task.effects.as_ref());
                &unseen
            }
        };
        let own = || self.session.all_named();
        let (mut strange, mut missing) = (lease.names.surplus(own()), Vec::new());
        match need {
            Need::Nothing => {}
            Need::All => {
                strange = lease.names.strange(own());
                missing.extend(own().filter(|named| !lease.names.has(named)).cloned());
            }
            Need::Statement(named) | Need::Any(named) if lease.names.has(named) => {}
            Need::Statement(named) | Need::Any(named) => missing.push(Arc::clone(named)),
            Need::None(name) if lease.names.has_name(name) => strange.push(name.clone()),
            Need::None(_) => {}
        }
        if strange.is_empty() && missing.is_empty() {
            return Ok(());
        }
        if !Box::pin(self.part_from_last(lease, task.effects.as_ref())).await {
            return Err(lost("the server closed the connection"));
        }
        if !self.is_pinned() {
            // The restore that it was is not needed: the one below leads there as well.
            *prefix = Prefix::default();
        }
        let held = self.session.held();
        let named = Box::pin(self.put_names(lease, need, &strange, &missing)).await;
        if matches!(named, Err(Unprepared::Broken(_) | Unprepared::NotRestored(_))) {
            return named;
        }
        // What all this has left on the list of warnings is nobody's.
        lease.state.warned = true;
        bring(lease, &held).await?;
        named
    }

    /// Takes names from the backend, and gives it others.
    async fn put_names(
        &mut self,
        lease: &mut Lease<Server>,
        need: &Need,
        strange: &[Box<str>],
        missing: &[Arc<Named>],
    ) -> Result<(), Unprepared> {
        lease.served.begin(self.owner());
        self.gauge.enter(ClientState::Running);
        self.registered.entry.runs_on(lease.thread_id);
        for name in strange {
            // It may be gone already, if its session's last PREPARE of it failed.
            match lease.query(&format!("DEALLOCATE PREPARE `{name}`")).await {
                Ok(_) | Err(QueryError::Refused { .. }) => lease.names.remove(name),
                Err(error) => return Err(Unprepared::NotRestored(error)),
            }
        }
        for named in missing {
            self.door.metrics.session.named_prepares.inc();
            if let Need::Any(named) = need {
                lease.names.put_nobodys(&named.name);
                let any = format!("PREPARE `{}` FROM 'DO 0'", named.name);
                return lease.query(&any).await.map(drop).map_err(Unprepared::NotRestored);
            }
            match self.name_again(lease, named).await {
                Ok(()) => lease.names.put(named),
                // Of code that is not seen nobody knows whether it needs this one.
                Err(Unprepared::Refused(_)) if matches!(need, Need::All) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Prepares a statement under its name once more, as it was.
    async fn name_again(&mut self, lease: &mut Lease<Server>, named: &Arc<Named>) -> Result<(), Unprepared> {
        let there = to_prepare_in(&self.door.interner, &named.state, self.session.state());
        let there = BackendState { state: there, ..self.session.held() };
        bring_to_meaning(lease, &there).await?;
        loop {
            let mut bytes = lease.prepared.closes();
            lease.append(&mut bytes, Command::Query, named.text.bytes());
            let reply = Command::Query.reply();
            let aside = Aside { bytes: &bytes, prefix_replies: 0, seq: 0, reply, limit: MAX_ANSWER };
            let dialect = self.dialect(lease);
            let (backend, mut traffic) = (&mut **lease, Traffic::default());
            let mut client = Channel { stream: &mut self.stream, buffer: &mut self.buffer };
            let mut server = Channel { stream: &mut backend.stream, buffer: &mut backend.buffer };
            let raw = relay::aside(&mut client, &mut server, aside, dialect, &mut traffic).await;
            let raw = raw.map_err(Unprepared::Broken)?;
            let len = Header::parse(&raw).map_or(0, |header| header.len);
            let payload = raw.get(HEADER..HEADER + len).unwrap_or_default();
            match ErrPacket::parse(payload) {
                Ok(err) if err.code == super::prepare::NO_ROOM && lease.prepared.give_back() => {}
                Ok(_) => return Err(Unprepared::Refused(payload.to_vec())),
                Err(_) if OkPacket::parse(payload, lease.tracks()).is_ok() => return Ok(()),
                Err(_) => return Err(lost("no answer to a PREPARE")),
            }
        }
    }

    /// What the command needs by name is not to be had: that is its answer.
    pub(super) async fn unnamed(&mut self, lease: Lease<Server>, error: Unprepared, task: &Task) -> Next {
        let Unprepared::Refused(payload) = error else { return self.unprepared(lease, error).await };
        self.session.begin(Command::Query, &task.effects.unwrap_or_default());
        self.consume_command();
        let mut out = BytesMut::new();
        self.note_refusal(&payload, 1, &mut out);
        if let Ok(err) = ErrPacket::parse(&payload) {
            self.session.observe_error_elsewhere(err.code, err.message);
        }
        match self.after(lease).await {
            ControlFlow::Continue(()) => self.send(&mut out).await,
            gone => gone,
        }
    }

    /// A text is about to run: what it does to a name.
    pub(super) fn foresee_deed(&mut self, task: &Task) {
        let deed = task.spoken.as_ref().and_then(|spoken| spoken.deed.clone());
        if let Some(deed) = deed {
            self.session.expect_deed(deed);
        }
    }

    /// A text has run: which names the backend has now.
    pub(super) fn note_names(&self, lease: &mut Lease<Server>, task: &Task, late: Option<&Effects>) {
        let deed = task.spoken.as_ref().and_then(|spoken| spoken.deed.as_ref());
        match deed {
            Some(Deed::Prepare { named: Some(named), .. }) if self.error == 0 => lease.names.put(named),
            Some(Deed::Prepare { name, .. } | Deed::Deallocate(name)) if self.error == 0 => lease.names.remove(name),
            // If it is there still, it is the session's alone, who keeps the backend.
            Some(Deed::Prepare { name, .. }) if self.error == PARSE_ERROR => lease.names.remove(name),
            Some(_) => {}
            None => {
                let about = |effects: &Effects| effects.may(Flags::PREPARE | Flags::DEALLOCATE);
                if task.effects.as_ref().is_some_and(about) || late.is_some_and(about) {
                    // They are the session's alone, who keeps the backend.
                    lease.names.clear();
                }
            }
        }
    }
}

/// What a text needs, whatever it is.
fn need_of(effects: Option<&Effects>) -> Need {
    let about = Flags::PREPARE | Flags::EXECUTE | Flags::DEALLOCATE;
    let unseen = about | Flags::CALL | Flags::COMPOUND | Flags::OPAQUE;
    if effects.is_none_or(|effects| effects.may(unseen)) { Need::All } else { Need::Nothing }
}

/// Brings a backend to the state that a statement was prepared in. If only the schema is gone, that is the answer.
async fn bring_to_meaning(lease: &mut Lease<Server>, there: &BackendState) -> Result<(), Unprepared> {
    let way = plan(&lease.state, there);
    match bring(lease, there).await {
        Err(Unprepared::NotRestored(QueryError::Refused { code: code @ (1044 | 1049), state, message })) => {
            let Plan::Restore(restore) = way else { return Err(lost("the schema is gone")) };
            if restore.prelude.is_some() || restore.schema.is_none() {
                return Err(Unprepared::NotRestored(QueryError::Refused { code, state, message }));
            }
            // Nothing has changed yet.
            let mut payload = vec![0xff];
            payload.extend_from_slice(&code.to_le_bytes());
            payload.push(b'#');
            payload.extend_from_slice(&state);
            payload.extend_from_slice(message.as_bytes());
            Err(Unprepared::Refused(payload))
        }
        other => other,
    }
}

fn lost(what: &'static str) -> Unprepared {
    Unprepared::NotRestored(std::io::Error::other(what).into())
}
