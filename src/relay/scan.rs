//! From the backend to the client: which bytes may go on, and what they become on the way.

use bytes::BytesMut;

use super::{Dialect, TurnError, Witness};
use crate::net::Buffer;
use crate::protocol::capability::StatusFlags;
use crate::protocol::command::ReplyKind;
use crate::protocol::frame::{HEADER, Header, packet_with};
use crate::protocol::packet::eof::EofPacket;
use crate::protocol::packet::prepare::PrepareOk;
use crate::protocol::response::{Body, Class, Event, Reply};

/// The largest packet that must be seen as a whole (an OK with its trackers, an error): more is a protocol error.
const MAX_WHOLE: usize = 16 << 20;

/// The state of scanning one reply.
#[derive(Debug)]
pub(super) struct Scan {
    reply: Reply,
    dialect: Dialect,
    /// Bytes of the current frame that pass unseen.
    blind: usize,
    /// When they have passed, the client must send a file.
    file_wanted: bool,
    /// What an old client gets instead of the backend's bytes; unused if the dialects agree.
    pub(super) out: BytesMut,
    /// How many packets the client has seen more than the backend sent.
    pub(super) shift: u8,
    /// An EOF is due in front of the next packet, unless that packet takes its place.
    owes_eof: bool,
    /// Where in [`Scan::out`] the status of such an EOF stands: servers put the status of the result's end there.
    guessed: Option<usize>,
    /// The backend's number of the last packet scanned.
    pub(super) last_seq: u8,
}

/// The sequence number of a command's last frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// As the client counts.
    pub(super) client: u8,
    /// As the backend counts.
    pub(super) sent: u8,
}

/// Why scanning paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// All that was read is scanned; read on.
    More,
    /// The client must send a file now.
    Infile,
    /// The reply is over.
    Done,
}

impl Scan {
    /// The reply to a command whose last frame had this number, as the client numbered it and as it was sent.
    pub(super) fn new(kind: ReplyKind, dialect: Dialect, command: Numbers) -> Self {
        let reply = Reply::new(kind, dialect.backend_deprecates_eof, dialect.backend_tracks).to_frame(command.sent);
        Self {
            reply: if dialect.cursor { reply } else { reply.without_cursor() },
            dialect,
            blind: 0,
            file_wanted: false,
            out: BytesMut::new(),
            shift: command.client.wrapping_sub(command.sent),
            owes_eof: false,
            guessed: None,
            last_seq: 0,
        }
    }

    pub(super) fn translates(&self) -> bool {
        self.dialect.translates()
    }

    pub(super) fn is_done(&self) -> bool {
        self.reply.is_done()
    }

    pub(super) fn infile_sent(&mut self) {
        self.reply.infile_sent();
    }

    /// Scans what was read. Returns how many bytes at the buffer's front are dealt with; they go to the client as
    /// they now are, or were translated into [`Scan::out`].
    pub(super) fn scan<W: Witness>(
        &mut self,
        buffer: &mut Buffer,
        witness: &mut W,
    ) -> Result<(usize, Pause), TurnError> {
        let mut at = 0;
        loop {
            at = self.pass_blindly(buffer, at);
            if self.blind > 0 {
                return Ok((at, Pause::More));
            }
            if std::mem::take(&mut self.file_wanted) {
                return Ok((at, Pause::Infile));
            }
            if self.reply.is_done() {
                return Ok((at, Pause::Done));
            }
            let rest = buffer.data().get(at..).unwrap_or_default();
            let Some(header) = Header::parse(rest) else { return Ok((at, Pause::More)) };
            let first = rest.get(HEADER).copied();
            if header.len > 0 && first.is_none() {
                return Ok((at, Pause::More));
            }
            self.last_seq = header.seq;
            let class = self.reply.classify(header, first)?;
            if !class.needs_payload() {
                let front = at;
                at = self.pass(at, class, header)?;
                self.renumber(buffer, front, header.seq);
                continue;
            }
            if header.len > MAX_WHOLE {
                return Err(TurnError::BackendMalformed("an OK or error packet of more than 16 MiB"));
            }
            let whole = HEADER + header.len;
            if rest.len() < whole {
                // Everything in front of it goes out first, so that it has the buffer to itself.
                if at == 0 {
                    buffer.reserve(whole);
                }
                return Ok((at, Pause::More));
            }
            let front = at;
            at += HEADER + self.whole(buffer, at, class, header, witness)?;
            self.renumber(buffer, front, header.seq);
        }
    }

    /// Numbers the packet at `at` as the client counts; what is translated is numbered there.
    fn renumber(&self, buffer: &mut Buffer, at: usize, seq: u8) {
        if self.shift == 0 || self.dialect.translates() {
            return;
        }
        if let Some(number) = buffer.data_mut().get_mut(at + HEADER - 1) {
            *number = seq.wrapping_add(self.shift);
        }
    }

    /// Lets the rest of a frame through that nobody needs to see.
    fn pass_blindly(&mut self, buffer: &Buffer, at: usize) -> usize {
        let n = self.blind.min(buffer.len() - at);
        if n > 0 {
            if self.dialect.translates() {
                self.out.extend_from_slice(buffer.data().get(at..at + n).unwrap_or_default());
            }
            self.blind -= n;
        }
        at + n
    }

    /// A packet of which only the header matters.
    fn pass(&mut self, at: usize, class: Class, header: Header) -> Result<usize, TurnError> {
        let event = self.reply.accept(class, header, &[])?;
        let columns_end = event == Event::ColumnsEnd;
        self.file_wanted = event == Event::LocalInfile;
        if self.dialect.translates() {
            self.pay_eof(header.seq, self.dialect.status);
            let moved = Header { len: header.len, seq: header.seq.wrapping_add(self.shift) };
            self.out.extend_from_slice(&moved.encode());
            self.owes_eof = columns_end;
            self.blind = header.len;
            return Ok(at + HEADER);
        }
        self.blind = HEADER + header.len;
        Ok(at)
    }

    /// A packet that must be seen as a whole. Returns the payload's length as it now stands in the buffer.
    fn whole<W: Witness>(
        &mut self,
        buffer: &mut Buffer,
        at: usize,
        class: Class,
        header: Header,
        witness: &mut W,
    ) -> Result<usize, TurnError> {
        let payload = buffer.data().get(at + HEADER..at + HEADER + header.len).unwrap_or_default();
        let mut replaced = None;
        let mut columns_end = false;
        let mut statement_id = None;
        match self.reply.accept(class, header, payload)? {
            Event::Forward | Event::Eof(_) | Event::LocalInfile => {}
            Event::ColumnsEnd => columns_end = true,
            Event::Prepared(prepared) => statement_id = Some(witness.prepared(&prepared)),
            Event::End(end) => {
                witness.end(&end);
                replaced = self.replace(&end.body, witness);
            }
        }
        if let Some(id) = statement_id {
            let ids = buffer.data_mut().get_mut(at + HEADER..).and_then(|payload| payload.get_mut(PrepareOk::ID_AT));
            if let Some(place) = ids {
                place.copy_from_slice(&id.to_le_bytes());
            }
        }
        if self.dialect.translates() {
            let payload = buffer.data().get(at + HEADER..at + HEADER + header.len).unwrap_or_default();
            self.translate(header.seq, class, payload, replaced.as_deref());
            self.owes_eof = columns_end;
            return Ok(header.len);
        }
        let Some(new) = replaced else { return Ok(header.len) };
        let other = Header { len: new.len(), seq: header.seq };
        // Mostly it is smaller, without what only the proxy wanted to know.
        buffer.replace(at + HEADER, header.len, &new);
        if let Some(front) = buffer.data_mut().get_mut(at..at + HEADER) {
            front.copy_from_slice(&other.encode());
        }
        Ok(new.len())
    }

    /// What the client gets instead of the end of a result, if not the same.
    fn replace<W: Witness>(&self, body: &Body<'_>, witness: &mut W) -> Option<BytesMut> {
        let mut new = BytesMut::new();
        let changed = match body {
            Body::RowsEnd(ok) if self.dialect.translates() => {
                let eof = ok.to_eof();
                EofPacket { warnings: witness.warnings(eof.warnings), ..eof }.encode(&mut new);
                true
            }
            Body::RowsEndEof(eof) if self.dialect.translates() || witness.warnings(eof.warnings) != eof.warnings => {
                EofPacket { warnings: witness.warnings(eof.warnings), ..*eof }.encode(&mut new);
                true
            }
            Body::Ok(ok) | Body::RowsEnd(ok) => self.dialect.rewrite_ok(ok, witness, &mut new),
            Body::RowsEndEof(_) | Body::Err(_) | Body::Text => false,
        };
        changed.then_some(new)
    }

    /// Appends a whole packet for an old client.
    fn translate(&mut self, seq: u8, class: Class, payload: &[u8], replaced: Option<&[u8]>) {
        let end = replaced.and_then(|new| EofPacket::parse(new).ok());
        match (class, end) {
            // A cursor's columns end with the packet that also ends the reply: one EOF serves.
            (Class::RowsEnd, Some(eof))
                if self.owes_eof
                    && self.dialect.cursor
                    && eof.status.contains(StatusFlags::SERVER_STATUS_CURSOR_EXISTS) =>
            {
                self.owes_eof = false;
            }
            (_, Some(eof)) => {
                self.correct_guess(eof.status);
                self.pay_eof(seq, eof.status);
            }
            _ => self.pay_eof(seq, self.dialect.status),
        }
        self.guessed = None;
        let dialect = self.dialect;
        packet_with(&mut self.out, seq.wrapping_add(self.shift), |out| match end {
            Some(eof) => dialect.last_eof(eof).encode(out),
            None => out.extend_from_slice(replaced.unwrap_or(payload)),
        });
    }

    /// The result's end has come while the EOF behind its columns is still here: it gets the same status.
    fn correct_guess(&mut self, status: StatusFlags) {
        if let Some(guess) = self.guessed.and_then(|at| self.out.get_mut(at..at + 2)) {
            guess.copy_from_slice(&status.bits().to_le_bytes());
        }
    }

    /// What was translated is on its way.
    pub(super) fn sent(&mut self) {
        self.out.clear();
        self.guessed = None;
    }

    /// Puts in the EOF that is due in front of the packet with this sequence number.
    fn pay_eof(&mut self, seq: u8, status: StatusFlags) {
        if self.owes_eof {
            self.owes_eof = false;
            packet_with(&mut self.out, seq.wrapping_add(self.shift), |out| {
                EofPacket { warnings: 0, status }.encode(out);
            });
            self.guessed = self.out.len().checked_sub(2);
            self.shift = self.shift.wrapping_add(1);
        }
    }

    /// The reply is over and every byte has passed. The definitions of a prepared statement end it without another
    /// packet that could have brought their EOF along.
    pub(super) fn finish(&mut self) {
        self.pay_eof(self.last_seq.wrapping_add(1), self.dialect.status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::write_packet;
    use crate::relay::turn::Unheard;

    fn dialect(old: bool, mariadb: bool) -> Dialect {
        Dialect {
            client_deprecates_eof: !old,
            backend_deprecates_eof: true,
            client_tracks: !old,
            backend_tracks: true,
            mariadb,
            cursor: true,
            status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        }
    }

    /// Payloads as packets numbered from 1; what stands for the client's file takes two numbers and is not there.
    fn packets(payloads: &[&[u8]]) -> BytesMut {
        let (mut out, mut seq) = (BytesMut::new(), 1);
        for payload in payloads {
            seq = if *payload == FILE { seq + 2 } else { write_packet(&mut out, seq, payload) };
        }
        out
    }

    /// Stands for the packets of a file in a reply.
    const FILE: &[u8] = b"(file)";

    /// What the client gets of a reply that arrives in these portions, and how much its file's numbers are ahead.
    fn scanned(kind: ReplyKind, dialect: Dialect, portions: &[&[u8]]) -> (BytesMut, Vec<u8>) {
        let (mut scan, mut buffer) = (Scan::new(kind, dialect, Numbers::default()), Buffer::new(4096));
        let (mut got, mut shifts) = (BytesMut::new(), Vec::new());
        for portion in portions {
            buffer.extend(portion);
            loop {
                let (n, pause) = scan.scan(&mut buffer, &mut Unheard).unwrap();
                if pause == Pause::Done {
                    scan.finish();
                }
                got.extend_from_slice(if scan.translates() { &scan.out } else { &buffer.data()[..n] });
                scan.sent();
                buffer.consume(n);
                match pause {
                    Pause::Infile => {
                        shifts.push(scan.shift);
                        scan.infile_sent();
                    }
                    Pause::More | Pause::Done => break,
                }
            }
        }
        assert!(scan.is_done() && buffer.is_empty());
        (got, shifts)
    }

    /// A kind of reply, what the server sends, and what the client gets.
    type Case<'a> = (ReplyKind, &'a [&'a [u8]], &'a [&'a [u8]]);

    const COUNT: &[u8] = b"\x01";
    const COLUMN: &[u8] = b"\x03def and so on";
    const ROW: &[u8] = b"\x0242";
    const PARAM: &[u8] = b"\x03def a parameter";

    #[test]
    fn an_old_client_gets_its_eofs() {
        let end = |status: u8| [0xfe, 0, 0, status, 0, 0, 0];
        let eof = |status: u8| [0xfe, 0, 0, status, 0];
        let out_params: (&[u8], &[u8]) = (b"\xfe\0\0\x0a\x10\0\0", b"\xfe\0\0\x0a\x10");
        let ok: &[u8] = b"\0\0\0\x02\0\0\0";
        let tracked: &[u8] = b"\0\0\0\x02\x40\0\0\0\x07\x01\x05\x04test";
        let prepared: &[u8] = b"\0\x05\0\0\0\x01\0\x01\0\0\0\0";
        let cases: [Case<'_>; 8] = [
            (ReplyKind::Query, &[tracked], &[ok]),
            (ReplyKind::Query, &[COUNT, COLUMN, ROW, &end(0x23)], &[COUNT, COLUMN, &eof(0x23), ROW, &eof(0x23)]),
            (
                ReplyKind::Query,
                &[COUNT, COLUMN, &end(0x0a), COUNT, COLUMN, ROW, &end(2)],
                &[COUNT, COLUMN, &eof(0x0a), &eof(0x0a), COUNT, COLUMN, &eof(2), ROW, &eof(2)],
            ),
            // A cursor: one EOF serves.
            (ReplyKind::Query, &[COUNT, COLUMN, &end(0x42)], &[COUNT, COLUMN, &eof(0x42)]),
            (ReplyKind::Prepare, &[prepared, PARAM, COLUMN], &[prepared, PARAM, &eof(2), COLUMN, &eof(2)]),
            (
                ReplyKind::Query,
                &[COUNT, COLUMN, ROW, &end(0x0a), b"\xfbname", FILE, ok],
                &[COUNT, COLUMN, &eof(0x0a), ROW, &eof(0x0a), b"\xfbname", FILE, ok],
            ),
            (
                ReplyKind::Query,
                &[COUNT, COLUMN, ROW, out_params.0, ok],
                &[COUNT, COLUMN, out_params.1, ROW, &eof(2), ok],
            ),
            // An error in the middle of a procedure's rows, of which a handler takes care.
            (ReplyKind::Query, &[COUNT, COLUMN, &eof(0x0a), ok], &[COUNT, COLUMN, &eof(0x0a), &eof(0x0a), ok]),
        ];
        for (kind, sent, wanted) in cases {
            let (got, _) = scanned(kind, dialect(true, false), &[&packets(sent)]);
            assert_eq!(got, packets(wanted), "{sent:?}");
        }
        // A procedure's own cursor.
        let sent = packets(&[COUNT, COLUMN, &end(0x4a), ok]);
        let (got, _) = scanned(ReplyKind::Query, Dialect { cursor: false, ..dialect(true, false) }, &[&sent]);
        assert_eq!(got, packets(&[COUNT, COLUMN, &eof(0x4a), &eof(0x4a), ok]));
        let (_, sent, _) = cases[6];
        let (got, _) = scanned(ReplyKind::Query, dialect(true, true), &[&packets(sent)]);
        assert_eq!(got, packets(&[COUNT, COLUMN, out_params.1, ROW, out_params.1, ok]), "MariaDB");
    }

    #[test]
    fn a_new_client_gets_what_the_server_sends() {
        let sent = packets(&[
            COUNT,
            COLUMN,
            b"\xfe\0\0\x0a\0",
            COUNT,
            COLUMN,
            ROW,
            b"\xfe\0\0\x0a\0\0\0",
            b"\0\0\0\x02\0\0\0",
        ]);
        assert_eq!(scanned(ReplyKind::Query, dialect(false, false), &[&sent]).0, sent);
    }

    #[test]
    fn a_file_is_asked_for_when_the_request_has_passed_however_it_is_cut() {
        let ok: &[u8] = b"\0\x01\0\x02\0\0\0";
        let sent = packets(&[COUNT, COLUMN, b"\xfe\0\0\x0a\0\0\0", b"\xfbname", FILE, ok]);
        let request = sent.len() - HEADER - ok.len();
        for old in [false, true] {
            let (whole, _) = scanned(ReplyKind::Query, dialect(old, true), &[&sent]);
            for cut in 0..request {
                let portions = [&sent[..cut], &sent[cut..request], &sent[request..]];
                let (got, shifts) = scanned(ReplyKind::Query, dialect(old, true), &portions);
                assert_eq!(shifts, [u8::from(old)]);
                // Cut behind the columns, the first EOF has the flags of the session and not those of the end.
                assert_eq!(got.len(), whole.len(), "cut at {cut}");
                assert_eq!(got[got.len() - 20..], whole[whole.len() - 20..], "cut at {cut}");
            }
        }
    }
}
