//! What may differ between two connections that do the same, and is made equal before comparing.
//!
//! 1. Statement ids: in the reply to COM_STMT_PREPARE, and where an error names them. The server counts them itself.
//! 2. MySQL's `statement_id`, which it reports as a variable with every OK to who tracks all of them: the number of
//!    statements that the whole server has seen. (The proxy's own answers come without.)
//! 3. MariaDB lists the variables that one statement has changed in the order of a hash table of all names tracked on
//!    this connection, and the proxy tracks more than the client: their order is not compared.
//! 4. Answers about the moment ([`Step::shape`]): the number of packets, their sequence numbers and everything but the
//!    rows is compared.
//! 5. An old client's EOF behind the columns, which the proxy makes up from what it knows then: whether indexes served
//!    well is known only at the end; MySQL counts the warnings so far in it, where the proxy (as MariaDB) says 0; if the
//!    end is not yet in the relay's buffer ([`Step::large`]), its flags are those of the session before the statement.
//! 6. To who tracks the state of transactions and few variables, MySQL says after DDL that something changed, but not what
//!    ([`Terms::blank`]). The proxy's own trackers always have something to say, so it cannot know.
//! 7. Whether statements about the server's dictionary ([`Step::dictionary`]) used an index: the server decides anew each
//!    time.
//! 8. The steps in [`EXCEPTIONS`], and in [`UNSHARED`] if another client takes the backend in between.

use bytes::{Bytes, BytesMut};
use myriad::protocol::capability::{CapabilityFlags, StatusFlags};
use myriad::protocol::packet::eof::EofPacket;
use myriad::protocol::packet::ok::OkPacket;
use myriad::protocol::packet::prepare::PrepareOk;
use myriad::protocol::packet::session_track::{Change, changes};
use myriad::protocol::response::Class;

use super::script::Step;
use crate::support::{Kind, Packets};

/// How well indexes served.
pub(crate) const INDEXES: StatusFlags =
    StatusFlags::SERVER_STATUS_NO_INDEX_USED.union(StatusFlags::SERVER_STATUS_NO_GOOD_INDEX_USED);

/// What may differ because of what a client has asked for, or because of others.
#[derive(Clone, Copy, Default)]
pub(super) struct Terms {
    /// Another client takes the backend in between.
    pub(super) shared: bool,
    /// "Something changed" without saying what counts as nothing.
    pub(super) blank: bool,
}

/// Steps whose replies are not compared, on which server, and why.
const EXCEPTIONS: &[(Kind, &str, &str)] = &[
    (
        Kind::MySql,
        "COM_PROCESS_KILL",
        "MySQL 9 does not know it any more; the proxy answers as servers do that know it",
    ),
    (
        Kind::MySql,
        r"COM_STMT_EXECUTE two \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x03\x00\x08text now",
        "MySQL gives a text that was a number before another length; the backend's statement is new to these types",
    ),
];

/// Steps whose replies are not compared where another client takes the backend in between.
const UNSHARED: &[(&str, &str)] = &[
    ("SELECT @@warning_count, @@error_count", REFUSED),
    ("GET DIAGNOSTICS", REFUSED),
    ("SELECT @code, @text", REFUSED),
    ("SELECT @many", REFUSED),
    ("SHOW WARNINGS LIMIT", REFUSED),
    ("SHOW /* kept by MariaDB", "the proxy does not know which SELECT has no table"),
    ("SELECT FOUND_ROWS()", "answered from memory, without MySQL's warning that it is deprecated"),
    ("COM_SET_OPTION", "MySQL counts the warnings of the statement before in its answer"),
    (
        "SELECT 'a' = 'A', COLLATION('a')",
        "collation_connection alone was set: restored by SET NAMES .. COLLATE, which columns of results show as well",
    ),
];

const REFUSED: &str = "asks about the statement before in a form that is not answered from memory: refused by 1235";

/// Why this step is not compared, if it is not.
pub(super) fn exception(kind: Kind, terms: Terms, step: &str) -> Option<&'static str> {
    let always = EXCEPTIONS.iter().filter(|(only, ..)| *only == kind).map(|(_, start, reason)| (start, reason));
    let when_shared = UNSHARED.iter().filter(|_| terms.shared).map(|(start, reason)| (start, reason));
    always.chain(when_shared).find(|(start, _)| step.starts_with(**start)).map(|(_, reason)| *reason)
}

/// Brings replies of one connection to the form in which they are compared.
pub(super) struct Normal {
    kind: Kind,
    tracks: bool,
    terms: Terms,
}

impl Normal {
    pub(super) fn new(kind: Kind, capabilities: CapabilityFlags, terms: Terms) -> Self {
        Self { kind, tracks: capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK), terms }
    }

    pub(super) fn reply(&self, step: &Step, statement: Option<u32>, reply: &Packets) -> Vec<(u8, Bytes)> {
        let packets = reply.raw.iter().zip(&reply.classes);
        packets
            .enumerate()
            .map(|(at, ((seq, payload), class))| {
                let payload = match class {
                    Class::PrepareOk => prepared(payload),
                    Class::Ok | Class::RowsEnd => self.ok(payload, step.dictionary),
                    Class::Err => error(payload, statement),
                    Class::Row | Class::Text if step.shape => Bytes::from_static(b"(of the moment)"),
                    Class::Eof if ends_columns(&reply.classes, at) => self.first_eof(payload, step.large),
                    Class::Eof if step.dictionary => last_eof(payload),
                    _ => payload.clone(),
                };
                (*seq, payload)
            })
            .collect()
    }

    fn ok(&self, payload: &Bytes, dictionary: bool) -> Bytes {
        let mut ok = OkPacket::parse(payload, self.tracks).expect("an OK that can be read");
        if dictionary {
            ok.status -= INDEXES;
        }
        let mut entries = Vec::new();
        let mut counted = false;
        for change in changes(ok.session_state) {
            match change.expect("a change that can be read") {
                Change::Variable { name: b"statement_id", .. } => counted = true,
                change => {
                    let mut entry = BytesMut::new();
                    change.encode(&mut entry);
                    entries.push((matches!(change, Change::Variable { .. }), entry));
                }
            }
        }
        if entries.is_empty() && !counted && !dictionary && !self.terms.blank {
            return payload.clone();
        }
        if self.kind == Kind::MariaDb {
            entries.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same[0].0).for_each(<[_]>::sort);
        }
        let state: Vec<u8> = entries.into_iter().flat_map(|(_, entry)| entry).collect();
        let mut out = BytesMut::new();
        ok.with_changes(!state.is_empty(), &state).encode(&mut out, self.tracks);
        out.freeze()
    }

    fn first_eof(&self, payload: &Bytes, large: bool) -> Bytes {
        let mut eof = EofPacket::parse(payload).expect("an EOF that can be read");
        eof.status -= INDEXES;
        if self.kind == Kind::MySql {
            eof.warnings = 0;
        }
        if large {
            eof.status = StatusFlags::empty();
        }
        let mut out = BytesMut::new();
        eof.encode(&mut out);
        out.freeze()
    }
}

pub(crate) fn last_eof(payload: &Bytes) -> Bytes {
    let mut eof = EofPacket::parse(payload).expect("an EOF that can be read");
    eof.status -= INDEXES;
    let mut out = BytesMut::new();
    eof.encode(&mut out);
    out.freeze()
}

pub(crate) fn prepared(payload: &Bytes) -> Bytes {
    let mut bytes = payload.to_vec();
    bytes[PrepareOk::ID_AT].fill(0);
    bytes.into()
}

fn error(payload: &Bytes, statement: Option<u32>) -> Bytes {
    let Some(id) = statement else { return payload.clone() };
    let text = String::from_utf8(payload.escape_ascii().collect()).expect("ASCII");
    text.replace(&format!("({id})"), "(id)").into()
}

/// Is this EOF behind the columns of a result, or of a prepared statement?
fn ends_columns(classes: &[Class], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| matches!(classes[before], Class::Column | Class::Param))
}
