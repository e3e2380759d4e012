//! A SET that some client has said before in the same state: answered without a server.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;

use super::chatter::{MAX_TEXT, Place, Said, Shown};
use super::reply;
use super::serve::Client;
use super::turn::Next;
use crate::metrics::ChatterAnswer;
use crate::pool::{Lease, Server};
use crate::protocol::capability::StatusFlags;
use crate::protocol::packet::ok::OkPacket;
use crate::session::{Rows, State, told_to_all};
use crate::sql::{self, Effects};

/// Where a text without attributes begins, for a client that may send some.
const NO_ATTRIBUTES: u32 = 2;

/// A SET that a server is about to show the effect of.
pub(super) struct Asked {
    place: Place,
    text: Box<[u8]>,
    before: Arc<State>,
    /// How it was answered.
    pub(super) said: Option<Said>,
}

impl Said {
    /// What is worth keeping of this OK; none if that is not all there is to it.
    pub(super) fn of(ok: &OkPacket<'_>) -> Option<Self> {
        let (status, warnings) = (ok.status, ok.warnings);
        told_to_all(ok).map(|changes| Self { status, warnings, changes, list: Rows::new() })
    }

    /// The OK that a backend sent, without what is another each time.
    fn ok(&self) -> OkPacket<'_> {
        OkPacket {
            header: OkPacket::OK,
            affected_rows: 0,
            insert_id: 0,
            status: self.status,
            warnings: self.warnings,
            info: b"",
            session_state: &self.changes,
        }
    }
}

impl Client {
    /// What the text at the buffer's front does, if it is a SET that was shown already.
    pub(super) fn shown(&self, effects: &Effects) -> Option<Arc<Shown>> {
        self.may_be_shown(effects).then(|| self.door.chatter.get(&self.place(), self.text(), Instant::now())).flatten()
    }

    fn may_be_shown(&self, effects: &Effects) -> bool {
        // What the last backend is still to be asked may bind the session to it, as it is there.
        let may_bind = || self.loan.as_ref().is_some_and(|loan| loan.may_bind());
        effects.may_set_literals()
            && self.text().len() <= MAX_TEXT
            && self.text_at <= NO_ATTRIBUTES
            && self.lease.is_none()
            && !self.is_pinned()
            && self.session.may_be_shown()
            && !may_bind()
    }

    fn place(&self) -> Place {
        Place {
            account: self.guest.class.account.id,
            flags: self.guest.class.flags().bits(),
            era: self.guest.class.era,
            state: self.session.state().id,
            several: self.session.options().multi_statements,
        }
    }

    /// Answers the SET at the buffer's front as a server would.
    pub(super) async fn echo(&mut self, shown: Arc<Shown>, effects: Effects) -> Next {
        self.consume_command();
        let metrics = Arc::clone(&self.door.metrics);
        metrics.session.chatter.get(ChatterAnswer::Memory).inc();
        metrics.session.local_answers.inc();
        self.error = 0;
        let ok = shown.said.ok();
        self.session.observe_shown(&ok, &shown.said.list, &effects, &shown.after);
        self.status = ok.status - StatusFlags::SERVER_SESSION_STATE_CHANGED;
        let mut told = BytesMut::new();
        let changed = self.session.filter(ok.session_state, &mut told);
        let mut out = BytesMut::new();
        reply::shown(&mut out, ok.with_changes(changed, &told), self.tracks());
        self.send(&mut out).await
    }

    /// Notes that a server is about to show what the text at the buffer's front does, if that is a SET of literals whose
    /// effect depends on nothing but the session's state.
    pub(super) fn asks_to_be_shown(&self, lease: &Lease<Server>, effects: Option<&Effects>) -> Option<Box<Asked>> {
        let may = |effects: &&Effects| self.may_be_shown(effects);
        effects.filter(may)?;
        let settled = lease.tracks() && self.is_settled(lease);
        if !settled || !sql::is_literal_set(self.text(), self.session.mode()) {
            return None;
        }
        self.door.metrics.session.chatter.get(ChatterAnswer::Server).inc();
        let before = Arc::clone(self.session.state());
        Some(Box::new(Asked { place: self.place(), text: self.text().into(), before, said: None }))
    }

    /// Has the backend the defaults of this session's time, and does nobody change them now?
    fn is_settled(&self, lease: &Lease<Server>) -> bool {
        !lease.unsure && !self.door.connector.is_changing() && lease.era == self.door.connector.era()
    }

    /// The turn is over in which a server has shown what this does.
    pub(super) fn keep_shown(&self, asked: Asked) {
        let Some(mut said) = asked.said else { return };
        let door = &self.door;
        let is_past = door.connector.is_changing() || asked.place.era != door.connector.era();
        if is_past || self.is_pinned() || self.lease.is_some() {
            return;
        }
        match &self.session.memory().list {
            _ if said.warnings == 0 => {}
            Some(list) if list.len() == usize::from(said.warnings) => said.list = list.to_vec(),
            // More than the list has room for.
            _ => return,
        }
        let shown = Shown { said, _before: asked.before, after: Arc::clone(self.session.state()) };
        door.chatter.keep(asked.place, asked.text, shown, Instant::now());
        door.metrics.session.chatter_entries.set(i64::try_from(door.chatter.len()).unwrap_or(i64::MAX));
    }
}
