//! What may differ between the two worlds, and is made equal before comparing.
//!
//! 1. Names: each world has schemas of its own, whose names are of one length. (Locks and XA transactions are named
//!    after them.)
//! 2. Statement ids: in the reply to COM_STMT_PREPARE, and where an error names them. The server counts them itself.
//! 3. MySQL's `statement_id`, which it reports as a variable with every OK to who tracks all of them: the number of
//!    statements that the whole server has seen.
//! 4. MariaDB lists the variables that one statement has changed in the order of a hash table of all names tracked on
//!    this connection, and the proxy tracks more than the client: their order is not compared.
//! 5. An old client's EOF behind the columns, which the proxy makes up from what it knows then: whether indexes served
//!    well is known only at the end, and so are the warnings that servers count in it when there are some by then.
//! 6. Whether what reads the server's dictionary used an index: the server decides anew each time.
//! 7. Sequence numbers of a login's last packet: how many packets a login takes is the proxy's own affair.
//! 8. COM_STATISTICS: numbers of the moment.
//! 9. MariaDB tells old clients in the EOFs of a CALL, or of a SELECT with a function, that the session's state changed: they
//!    did not ask to be told, are told nothing else of it, and the proxy's backends tell it elsewhere.
//! 10. What a connection to MariaDB finds in its thread when it is new: the memory of a connection that has ended is used
//!     again. Measured on private connections: after another one has said `DO 1/0` and gone, the OK of a login counts 1 warning
//!     or none, and `FOUND_ROWS()` is 0, 1 or 3 until the connection has found rows of its own.

use bytes::{Bytes, BytesMut};
use myriad::protocol::capability::{CapabilityFlags, StatusFlags};
use myriad::protocol::packet::eof::EofPacket;
use myriad::protocol::packet::ok::OkPacket;
use myriad::protocol::packet::session_track::{Change, changes};
use myriad::protocol::response::Class;

use super::script::{Names, replace};
use super::world::Outcome;
use crate::bytes::normal::{INDEXES, last_eof, prepared};
use crate::support::{Kind, Packets};

/// What the server says of an id that it does not know.
const HANDLER: &[u8] = b"Unknown prepared statement handler (";

/// And of one that has no cursor.
const NO_CURSOR: &[u8] = b"The statement (";

/// An outcome in the form in which it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Packets(Vec<(u8, Bytes)>),
    Words(String),
}

/// Brings the outcomes of one world to their form.
pub(super) struct Normal<'a> {
    pub(super) kind: Kind,
    /// Names as they are here, and as they are in the form.
    pub(super) names: &'a Names,
    pub(super) canon: &'a Names,
    pub(super) capabilities: CapabilityFlags,
    /// The step may read the server's dictionary.
    pub(super) dictionary: bool,
    /// The step reads what an earlier connection has left in a thread.
    pub(super) undefined: bool,
}

impl Normal<'_> {
    pub(super) fn form(&self, outcome: &Outcome) -> Form {
        match outcome {
            Outcome::Reply(reply, statement) => Form::Packets(self.reply(reply, *statement)),
            Outcome::Welcome(ok) => Form::Packets(vec![(0, self.named(self.ok(ok, self.undefined)))]),
            Outcome::Refused(code, state, message) => {
                let text = format!(
                    "refused with {code} {} {message}",
                    state.map(|it| it.escape_ascii().to_string()).unwrap_or_default()
                );
                Form::Words(String::from_utf8(self.named(text.into()).to_vec()).expect("a text"))
            }
            Outcome::Silence => Form::Words("no answer, as it should be".into()),
            Outcome::Lost => Form::Words("the connection is lost".into()),
            Outcome::Late => Form::Words("no answer for too long".into()),
        }
    }

    fn reply(&self, reply: &Packets, statement: Option<u32>) -> Vec<(u8, Bytes)> {
        let packets = reply.raw.iter().zip(&reply.classes).enumerate();
        packets
            .map(|(at, ((seq, payload), class))| {
                let payload = match class {
                    Class::PrepareOk => prepared(payload),
                    Class::Ok | Class::RowsEnd => self.ok(payload, false),
                    Class::Err => error(payload, statement),
                    Class::Row if self.undefined => Bytes::from_static(b"(what another connection has left)"),
                    Class::Row => about_statement(payload),
                    Class::Text => Bytes::from_static(b"(numbers of the moment)"),
                    Class::Eof if ends_columns(&reply.classes, at) => without_changes(&first_eof(payload)),
                    Class::Eof if self.dictionary => without_changes(&last_eof(payload)),
                    Class::Eof => without_changes(payload),
                    _ => payload.clone(),
                };
                (*seq, self.named(payload))
            })
            .collect()
    }

    fn named(&self, payload: Bytes) -> Bytes {
        let Names { schema, .. } = self.names;
        // The other schema's name begins like this one's.
        if schema == &self.canon.schema || memchr::memmem::find(&payload, schema.as_bytes()).is_none() {
            return payload;
        }
        replace(&payload, schema.as_bytes(), self.canon.schema.as_bytes()).into()
    }

    fn ok(&self, payload: &Bytes, of_another: bool) -> Bytes {
        let tracks = self.capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
        let mut ok = OkPacket::parse(payload, tracks).expect("an OK that can be read");
        if self.dictionary {
            ok.status -= INDEXES;
        } else if ok.session_state.is_empty() && !of_another {
            return payload.clone();
        }
        if of_another {
            ok.warnings = 0;
        }
        let mut entries = Vec::new();
        for change in changes(ok.session_state) {
            match change.expect("a change that can be read") {
                Change::Variable { name: b"statement_id", .. } => {}
                change => {
                    let mut entry = BytesMut::new();
                    change.encode(&mut entry);
                    entries.push((matches!(change, Change::Variable { .. }), entry));
                }
            }
        }
        if self.kind == Kind::MariaDb {
            entries.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same[0].0).for_each(<[_]>::sort);
        }
        let state: Vec<u8> = entries.into_iter().flat_map(|(_, entry)| entry).collect();
        let mut out = BytesMut::new();
        ok.with_changes(!state.is_empty(), &state).encode(&mut out, tracks);
        out.freeze()
    }
}

fn without_changes(payload: &Bytes) -> Bytes {
    let mut eof = EofPacket::parse(payload).expect("an EOF that can be read");
    eof.status -= StatusFlags::SERVER_SESSION_STATE_CHANGED;
    let mut out = BytesMut::new();
    eof.encode(&mut out);
    out.freeze()
}

fn first_eof(payload: &Bytes) -> Bytes {
    let mut eof = EofPacket::parse(payload).expect("an EOF that can be read");
    eof.status -= INDEXES;
    eof.warnings = 0;
    let mut out = BytesMut::new();
    eof.encode(&mut out);
    out.freeze()
}

fn error(payload: &Bytes, statement: Option<u32>) -> Bytes {
    let Some(id) = statement else { return payload.clone() };
    replace(payload, format!("({id})").as_bytes(), b"(id)").into()
}

/// A row of warnings about a statement id, without the id and the length that depends on it.
fn about_statement(row: &Bytes) -> Bytes {
    match [HANDLER, NO_CURSOR].iter().find_map(|words| memchr::memmem::find(row, words)) {
        Some(at) => row[at..].iter().copied().filter(|byte| !byte.is_ascii_digit()).collect(),
        None => row.clone(),
    }
}

/// Is this EOF behind the columns of a result, or of a prepared statement?
fn ends_columns(classes: &[Class], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| matches!(classes[before], Class::Column | Class::Param))
}
