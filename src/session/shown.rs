//! A SET that was answered as a server has answered the same one before, in the same state: the session is as after a real
//! one, and its backend hears of it only when it must hold the new state.

use std::sync::Arc;

use super::memory::About;
use super::turn::Turn;
use super::{Ask, Rows, Session, State};
use crate::protocol::capability::{OF_ONE_STATEMENT, StatusFlags};
use crate::protocol::command::Command;
use crate::protocol::packet::ok::OkPacket;
use crate::protocol::packet::session_track::{Change, changes};
use crate::sql::{Effects, Flags};

/// What MySQL 9 adds to every report, another one each time.
const STATEMENT_ID: &[u8] = b"statement_id";

/// Leaves what any SET leaves: no rows counted, no warnings, and `FOUND_ROWS()` as it was.
const SET: &str = "SET @@session.sql_notes=@@session.sql_notes";

/// The trackers' entries of a SET, as they are for everybody: none where something else than variables was reported.
#[must_use]
pub fn told_to_all(ok: &OkPacket<'_>) -> Option<Vec<u8>> {
    let counts = ok.affected_rows != 0 || ok.insert_id != 0 || !ok.info.is_empty();
    let of_one = OF_ONE_STATEMENT - StatusFlags::SERVER_SESSION_STATE_CHANGED;
    let open = StatusFlags::SERVER_STATUS_IN_TRANS | StatusFlags::SERVER_STATUS_IN_TRANS_READONLY;
    if counts || ok.status.intersects(of_one | open) {
        return None;
    }
    let mut told = bytes::BytesMut::new();
    for change in changes(ok.session_state) {
        match change {
            Ok(Change::Variable { name: STATEMENT_ID, .. }) => {}
            Ok(change @ (Change::Variable { .. } | Change::StateChanged(_))) => change.encode(&mut told),
            _ => return None,
        }
    }
    Some(told.to_vec())
}

impl Session {
    /// Whether a SET may be answered without a server: nothing pins, nothing is on a list that such a statement would leave there, and
    /// the client hears nothing that is another each time.
    #[must_use]
    pub fn may_be_shown(&self) -> bool {
        let has_list = self.warned || self.memory.warnings > 0;
        let mariadb = self.options.mariadb;
        let hears = || self.options.tracks && self.wishes.hears(STATEMENT_ID);
        self.pins.is_empty() && if mariadb { !has_list } else { !hears() }
    }

    /// The SET under way has warned: what of, others are to be told as well.
    pub fn ask_for_list(&mut self) {
        self.rare().asks.push(Ask::Warnings);
    }

    /// A SET of these effects was answered by this OK and warned of this, and leads to this state.
    pub fn observe_shown(&mut self, ok: &OkPacket<'_>, list: &Rows, effects: &Effects, after: &Arc<State>) {
        let about = About::new(Command::Query, effects, self.options.mariadb);
        *self.turn =
            Turn { command: Command::Query, flags: effects.flags, first: effects.first, oks: 1, ..Turn::NOTHING };
        self.autocommit = Some(ok.status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT));
        self.memory.observe_shown(ok, &about);
        if !list.is_empty() {
            self.memory.save(list.clone());
        }
        self.enter(Arc::clone(after));
    }

    /// What must be run in front of a text that asks about the statement before it, where that was answered without a server:
    /// then the server's own answer is right.
    pub fn show_again(&mut self, effects: Option<&Effects>) -> Option<&'static str> {
        let asks = effects.is_none_or(|effects| {
            effects.may(Flags::READS_DIAGNOSTICS.and(Flags::RUNS_UNSEEN).and(Flags::EXECUTABLE_COMMENT))
        });
        (self.memory.take_shown() && asks).then(|| {
            self.memory.shown_again();
            SET
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Followup, Interner, Options, Recall, StateSpec};
    use crate::sql;

    const OK: OkPacket<'static> = OkPacket {
        header: 0,
        affected_rows: 0,
        insert_id: 0,
        status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        warnings: 0,
        info: b"",
        session_state: b"",
    };

    fn session(mariadb: bool) -> (Session, Arc<Interner>) {
        let interner = Arc::new(Interner::new());
        let options = Options { mariadb, tracks: true, ..Options::default() };
        (Session::new(interner.intern(StateSpec::default()), Arc::clone(&interner), options), interner)
    }

    fn effects(text: &str) -> Effects {
        sql::effects(text.as_bytes(), sql::Mode::default())
    }

    #[test]
    fn what_is_told_to_all() {
        let told = |changed: &'static [u8]| told_to_all(&OkPacket { session_state: changed, ..OK });
        assert_eq!(told(b""), Some(Vec::new()));
        let (variable, state) = (&b"\0\x0F\x0Aautocommit\x03OFF"[..], &b"\x02\x011"[..]);
        assert_eq!(told(variable).as_deref(), Some(variable));
        assert_eq!(told(b"\0\x14\x0Cstatement_id\x06559656\x02\x011").as_deref(), Some(state));
        for other in [&b"\x01\x05\x04test"[..], b"\x05\x09\x08T_R___S_", b"\x04\x01\0", b"\x09\x01\0", b"\0\x0F"] {
            assert_eq!(told(other), None, "{other:?}");
        }
        let status = |more| told_to_all(&OkPacket { status: OK.status | more, ..OK });
        assert!(status(StatusFlags::SERVER_SESSION_STATE_CHANGED).is_some());
        assert!(status(StatusFlags::SERVER_STATUS_IN_TRANS).is_none());
        assert!(status(StatusFlags::SERVER_MORE_RESULTS_EXISTS).is_none());
        assert!(told_to_all(&OkPacket { affected_rows: 1, ..OK }).is_none());
    }

    #[test]
    fn the_session_is_as_after_a_real_one() {
        for mariadb in [false, true] {
            let (mut session, interner) = session(mariadb);
            let after = interner.changed(session.state(), |spec| {
                spec.variables.insert("autocommit".into(), "OFF".into());
            });
            session.begin(Command::Query, &effects("DELETE FROM t"));
            session.observe_ok(&OkPacket { affected_rows: 7, ..OK }, None);
            session.end();
            assert!(session.may_be_shown());
            let set = effects("SET autocommit=0");
            session.observe_shown(&OkPacket { status: StatusFlags::empty(), ..OK }, &Rows::new(), &set, &after);
            assert!(Arc::ptr_eq(session.state(), &after));
            assert_eq!(session.memory().row_count, 0);
            // What fails now may have opened a transaction.
            session.begin(Command::Query, &effects("SELECT x"));
            session.observe_err(1054);
            session.end();
            assert!(session.is_pinned() && !session.may_be_shown());
        }
    }

    #[test]
    fn who_asks_about_it_asks_a_server_that_knows() {
        let (mut session, _) = session(false);
        let (set, state) = (effects("SET autocommit=1"), Arc::clone(session.state()));
        session.observe_shown(&OK, &Rows::new(), &set, &state);
        let text = "SELECT ROW_COUNT() IS NULL";
        let asks = effects(text);
        assert!(session.show_again(Some(&asks)).is_some());
        assert_eq!(session.recall(text.as_bytes(), &asks, 1), Recall::Backend);
        assert!(session.show_again(Some(&asks)).is_none(), "once");
        session.observe_shown(&OK, &Rows::new(), &set, &state);
        assert!(session.show_again(Some(&effects("SELECT 1"))).is_none());
        // An error since then has taken its place.
        session.observe_shown(&OK, &Rows::new(), &set, &state);
        session.observe_refused(1243, *b"HY000", "no");
        assert!(session.show_again(Some(&asks)).is_none());
    }

    #[test]
    fn lists_of_warnings() {
        let failed = |mariadb| {
            let (mut session, _) = session(mariadb);
            session.begin(Command::Query, &effects("SELECT x"));
            session.observe_err(1054);
            session.end();
            session
        };
        // MariaDB leaves the list alone, MySQL empties it.
        assert!(!failed(true).may_be_shown());
        let mut session = failed(false);
        assert!(session.may_be_shown() && session.owes().len() == 1);
        let state = Arc::clone(session.state());
        session.observe_shown(&OK, &Rows::new(), &effects("SET autocommit=1"), &state);
        assert!(session.owes().is_empty() && session.memory().warnings == 0);
        // One that has warned itself.
        let list = vec![[&b"Warning"[..], b"1292", b"hm"].map(|field| Some(field.to_vec())).to_vec()];
        let show = effects("SHOW WARNINGS");
        session.observe_shown(&OkPacket { warnings: 1, ..OK }, &list, &effects("SET autocommit=1"), &state);
        assert!(session.owes().is_empty() && session.show_again(Some(&show)).is_none());
        assert_eq!(session.recall(b"SHOW WARNINGS", &show, 1), Recall::Rows(show.plain.unwrap(), list));
    }

    #[test]
    fn what_it_warns_of_is_asked_at_once() {
        let (mut session, _) = session(false);
        session.begin(Command::Query, &effects("SET autocommit=1"));
        session.observe_ok(&OkPacket { warnings: 1, ..OK }, None);
        session.ask_for_list();
        assert_eq!(session.end(), Followup::Ask(Ask::Warnings));
        session.answer(&Ask::Warnings, Some(vec![vec![None]]));
        assert_eq!(session.end(), Followup::None);
        assert_eq!(session.memory().list.as_deref(), Some(&vec![vec![None]]));
    }

    #[test]
    fn who_hears_every_statements_number_is_told_by_the_server() {
        let (mut session, _) = session(false);
        let mut wishes = session.wishes().clone();
        wishes.set(b"session_track_system_variables", b"*");
        session.wish(Arc::new(wishes));
        assert!(!session.may_be_shown());
    }
}
