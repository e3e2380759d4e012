//! Any bytes as a reply: [`fuzz_reply`] must never panic.

use super::{Body, Class, Event, Reply};
use crate::protocol::capability::StatusFlags;
use crate::protocol::command::Command;
use crate::protocol::frame::{Header, MAX_PAYLOAD};

/// Runs a reply made of `data` through the state machine and checks what holds for every reply.
///
/// `data` starts with the command and the dialect; then, for each frame, a byte of flags (full, out of sequence), the
/// payload's length and the payload. A full frame's payload is taken as if it were that long.
pub fn fuzz_reply(data: &[u8]) {
    let Some((&[command, dialect], mut rest)) = data.split_first_chunk::<2>() else { return };
    let kind = Command::from_byte(command).reply();
    let mut reply = Reply::new(kind, dialect & 1 != 0, dialect & 2 != 0);
    let (mut seq, mut rows, mut in_row) = (1_u8, 0_u64, false);
    while let Some((&[flags, len], tail)) = rest.split_first_chunk::<2>() {
        let (payload, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        let full = flags & 1 != 0;
        if flags & 2 != 0 {
            seq = seq.wrapping_add(1);
        }
        let header = Header { len: if full { MAX_PAYLOAD } else { payload.len() }, seq };
        seq = seq.wrapping_add(1);
        let was_done = reply.is_done();
        let first = payload.first().copied();
        let class = match reply.classify(header, if full { first.or(Some(0)) } else { first }) {
            Ok(class) => class,
            Err(_) => return,
        };
        assert!(!was_done, "nothing comes after the end");
        let mut blind = reply;
        let Ok(event) = reply.accept(class, header, payload) else { return };
        if !class.needs_payload() {
            assert_eq!(blind.accept(class, header, &[]), Ok(event), "a streamed payload is not looked at");
            assert_eq!(blind, reply);
        }
        in_row = class == Class::Row || (in_row && class == Class::Continuation);
        rows += u64::from(in_row && !full);
        match event {
            Event::End(end) => {
                assert_eq!(std::mem::take(&mut rows), end.rows, "every row is counted once");
                check_end(&reply, end.body);
            }
            Event::LocalInfile => reply.infile_sent(),
            _ => {}
        }
    }
}

/// What ends a reply, and what does not.
fn check_end(reply: &Reply, body: Body<'_>) {
    let more = StatusFlags::SERVER_MORE_RESULTS_EXISTS;
    match body {
        Body::Err(_) | Body::Text => assert!(reply.is_done()),
        Body::Ok(ok) | Body::RowsEnd(ok) => assert!(reply.is_done() || ok.status.contains(more)),
        // After OUT parameters the flag may be missing.
        Body::RowsEndEof(_) => {}
    }
}
