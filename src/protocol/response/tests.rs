//! Replies as both servers send them, in both dialects, packet by packet.
//!
//! The bytes were captured from MySQL 9.7 and MariaDB 10.11; long messages are cut.

use proptest::prelude::*;

use super::fuzz::fuzz_reply;
use super::*;
use crate::protocol::frame::MAX_PAYLOAD;

const OLD: bool = false;
const NEW: bool = true;

/// `01 02` -> bytes.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// One word for an event.
fn word(event: Event<'_>) -> String {
    let Event::End(End { body, rows }) = event else {
        return match event {
            Event::Forward => "forward".into(),
            Event::ColumnsEnd => "columns-end".into(),
            Event::Eof(eof) => format!("eof:{:04x}", eof.status),
            Event::LocalInfile => "infile".into(),
            Event::Prepared(ok) => format!("prepared:{}:{}:{}", ok.statement_id, ok.params, ok.columns),
            Event::End(_) => unreachable!(),
        };
    };
    match body {
        Body::Ok(ok) => format!("ok:{:04x}:{}", ok.status, ok.affected_rows),
        Body::RowsEnd(ok) => format!("rows-end:{:04x}:{rows}", ok.status),
        Body::RowsEndEof(eof) => format!("rows-eof:{:04x}:{rows}", eof.status),
        Body::Err(err) => format!("err:{}:{rows}", err.code),
        Body::Text => "text".into(),
    }
}

/// Runs the payloads, separated by `|`, as the frames of one reply. A file is sent where it is asked for.
fn run(kind: ReplyKind, dialect: bool, payloads: &str) -> (Reply, Vec<String>) {
    let mut reply = Reply::new(kind, dialect, true);
    let mut words = Vec::new();
    let mut seq = 1_u8;
    for payload in payloads.split('|').map(hex) {
        assert!(!reply.is_done(), "over after {words:?}");
        let header = Header { len: payload.len(), seq };
        seq = seq.wrapping_add(1);
        let class = reply.classify(header, payload.first().copied()).unwrap();
        let seen = if class.needs_payload() { &payload[..] } else { &[] };
        let event = reply.accept(class, header, seen).unwrap();
        words.push(word(event));
        if event == Event::LocalInfile {
            assert_eq!(
                reply.classify(Header { len: 7, seq }, Some(0)),
                Err(ReplyError::Unexpected { first: 0, len: 7 })
            );
            reply.infile_sent();
            seq += 2;
        }
    }
    (reply, words)
}

/// The reply ends with its last packet, and the events are these.
#[track_caller]
fn check(kind: ReplyKind, dialect: bool, payloads: &str, events: &str) {
    let (reply, words) = run(kind, dialect, payloads);
    assert_eq!(words.join(" "), events);
    assert!(reply.is_done());
    assert_eq!(reply.classify(Header { len: 1, seq: words.len() as u8 + 1 }, Some(1)), Err(ReplyError::AfterEnd));
}

const COLUMN: &str = "036465660000000131000c3f0002000000088100000000";
const ID: &str = "036465660474657374056361705f74056361705f740269640269640c3f000b000000030100000000";
const PARAM: &str = "03646566000000013f000c3f0015000000088000000000";
const ERROR: &str = "ff1e0423343253323255";

#[test]
fn ok_and_err() {
    use ReplyKind::{Fetch, FieldList, Prepare, Query, Simple, Statistics};
    let ok = "00020102000000265265636f7264733a203220204475706c6963617465733a203020205761726e696e67733a2030";
    for dialect in [OLD, NEW] {
        check(Query, dialect, ok, "ok:0002:2");
        check(Query, dialect, "000000024000000010000e0a6175746f636f6d6d6974024f4e", "ok:4002:0");
        check(Simple, dialect, "00000002000000", "ok:0002:0");
        for kind in [Query, Simple, Prepare, Fetch, FieldList, Statistics] {
            check(kind, dialect, ERROR, "err:1054:0");
        }
    }
}

#[test]
fn a_result() {
    let (old, new) = ("forward forward eof:0002", "forward columns-end");
    for (rows, n) in [("", 0), ("|0131", 1), ("|0131|fb|00", 3)] {
        let forwards = " forward".repeat(n);
        let sent = format!("01|{COLUMN}|fe00000200{rows}|fe00002200");
        check(ReplyKind::Query, OLD, &sent, &format!("{old}{forwards} rows-eof:0022:{n}"));
        let sent = format!("01|{COLUMN}{rows}|fe000022000000");
        check(ReplyKind::Query, NEW, &sent, &format!("{new}{forwards} rows-end:0022:{n}"));
    }
    // The changes that the end of rows reports: `SELECT 1` after BEGIN.
    let sent = format!("01|{COLUMN}|0131|fe00000b400000000b050908545f5f5f5f5f535f|00000002000000");
    check(ReplyKind::Query, NEW, &sent, "forward columns-end forward rows-end:400b:1 ok:0002:0");
    // 300 columns.
    let columns = format!("|{COLUMN}").repeat(300);
    let forwards = "forward ".repeat(300);
    check(
        ReplyKind::Query,
        NEW,
        &format!("fc2c01{columns}|fe000002000000"),
        &format!("{forwards}columns-end rows-end:0002:0"),
    );
}

#[test]
fn several_results() {
    // SELECT 1; SELECT 2; DO 1
    check(
        ReplyKind::Query,
        OLD,
        &format!("01|{COLUMN}|fe00000a00|0131|fe00000a00|01|{COLUMN}|fe00000a00|0132|fe00000a00|00000002000000"),
        "forward forward eof:000a forward rows-eof:000a:1 forward forward eof:000a forward rows-eof:000a:1 ok:0002:0",
    );
    check(
        ReplyKind::Query,
        NEW,
        &format!("01|{COLUMN}|0131|fe00000a000000|01|{COLUMN}|0132|0133|fe00000a000000|00000002000000"),
        "forward columns-end forward rows-end:000a:1 forward columns-end forward forward rows-end:000a:2 ok:0002:0",
    );
    // UPDATE ..; USE test; SELECT 1
    check(
        ReplyKind::Query,
        NEW,
        &format!("0002002a000000|0000000a400000000701050474657374|01|{COLUMN}|0131|fe000002000000"),
        "ok:002a:2 ok:400a:0 forward columns-end forward rows-end:0002:1",
    );
    // SELECT 1; bad
    check(
        ReplyKind::Query,
        NEW,
        &format!("01|{COLUMN}|0131|fe00000a000000|{ERROR}"),
        "forward columns-end forward rows-end:000a:1 err:1054:0",
    );
}

#[test]
fn an_error_in_the_middle() {
    let rows = "ffda0423323130303053";
    check(
        ReplyKind::Query,
        OLD,
        &format!("01|{COLUMN}|fe00000a00|0131|{rows}"),
        "forward forward eof:000a forward err:1242:1",
    );
    check(
        ReplyKind::Query,
        NEW,
        &format!("01|{COLUMN}|0131|0132|{rows}"),
        "forward columns-end forward forward err:1242:2",
    );
    check(ReplyKind::Query, OLD, &format!("02|{COLUMN}|{rows}"), "forward forward err:1242:0");
    check(ReplyKind::Query, OLD, &format!("01|{COLUMN}|{rows}"), "forward forward err:1242:0");
    check(ReplyKind::Fetch, NEW, &format!("0000010000000171|{rows}"), "forward err:1242:1");
    check(ReplyKind::FieldList, NEW, &format!("{COLUMN}|{rows}"), "forward err:1242:0");
    check(
        ReplyKind::Prepare,
        NEW,
        &format!("000500000002000200000000|{PARAM}|{rows}"),
        "prepared:5:2:2 forward err:1242:0",
    );
}

#[test]
fn a_cursor_and_its_rows() {
    check(ReplyKind::Query, OLD, &format!("01|{ID}|fe00004200"), "forward forward rows-eof:0042:0");
    check(ReplyKind::Query, NEW, &format!("01|{ID}|fe000062000000"), "forward columns-end rows-end:0062:0");
    check(ReplyKind::Fetch, OLD, "0000010000000171|fe00004200", "forward rows-eof:0042:1");
    check(
        ReplyKind::Fetch,
        NEW,
        "000003000000026c31|000003000000026c31|fe000082000000",
        "forward forward rows-end:0082:2",
    );
    check(ReplyKind::Fetch, OLD, "fe00008200", "rows-eof:0082:0");
    check(ReplyKind::Fetch, NEW, "fe000082000000", "rows-end:0082:0");
}

#[test]
fn out_parameters() {
    let column = "036465660474657374056361705f70056361705f70017801780c3f000b000000030000000000";
    // MySQL says 0002 after the row although an OK follows, MariaDB says 100a.
    for (status, word) in [("0200", "0002"), ("0a10", "100a")] {
        check(
            ReplyKind::Query,
            OLD,
            &format!("01|{column}|fe00000a10|000005000000|fe0000{status}|00000002000000"),
            &format!("forward forward eof:100a forward rows-eof:{word}:1 ok:0002:0"),
        );
    }
    check(
        ReplyKind::Query,
        NEW,
        &format!("01|{column}|000005000000|fe00000a100000|00000002000000"),
        "forward columns-end forward rows-end:100a:1 ok:0002:0",
    );
}

#[test]
fn prepare() {
    let (eof, forward, columns) = ("fe00000200", "forward", "columns-end");
    for (params, results, ok) in [
        (0, 0, "000100000000000000000000"),
        (0, 1, "000100000001000000000000"),
        (1, 0, "000100000000000100000000"),
        (1, 1, "000100000001000100000000"),
        (2, 2, "000100000002000200000000"),
        (0, 2, "000100000002000000000000"),
    ] {
        let (mut old, mut new) = (vec![ok], vec![ok]);
        let prepared = format!("prepared:1:{params}:{results}");
        let (mut old_events, mut new_events) = (vec![prepared.as_str()], vec![prepared.as_str()]);
        for (count, definition) in [(params, PARAM), (results, ID)] {
            for left in (0..count).rev() {
                old.push(definition);
                new.push(definition);
                old_events.push(forward);
                new_events.push(if left == 0 { columns } else { forward });
            }
            if count > 0 {
                old.push(eof);
                old_events.push("eof:0002");
            }
        }
        check(ReplyKind::Prepare, OLD, &old.join("|"), &old_events.join(" "));
        check(ReplyKind::Prepare, NEW, &new.join("|"), &new_events.join(" "));
    }
}

#[test]
fn parameters_and_columns_are_told_apart() {
    let mut reply = Reply::new(ReplyKind::Prepare, NEW, true);
    let ok = hex("000100000001000100000000");
    let header = |len, seq| Header { len, seq };
    reply.accept(Class::PrepareOk, header(12, 1), &ok).unwrap();
    assert_eq!(reply.classify(header(23, 2), Some(3)), Ok(Class::Param));
    reply.accept(Class::Param, header(23, 2), &[]).unwrap();
    assert_eq!(reply.classify(header(23, 3), Some(3)), Ok(Class::Column));
}

#[test]
fn field_list() {
    let field = "036465660474657374056361705f74056361705f740269640269640c3f000b0000000303420000000130";
    check(ReplyKind::FieldList, OLD, &format!("{field}|{field}|fe00000200"), "forward forward rows-eof:0002:0");
    check(ReplyKind::FieldList, NEW, &format!("{field}|{field}|fe000002000000"), "forward forward rows-end:0002:0");
    check(ReplyKind::FieldList, NEW, "fe000002000000", "rows-end:0002:0");
}

#[test]
fn eof_as_an_answer() {
    // COM_SET_OPTION
    check(ReplyKind::Simple, OLD, "fe01000200", "rows-eof:0002:0");
    check(ReplyKind::Simple, NEW, "fe000002000100", "rows-end:0002:0");
}

#[test]
fn statistics() {
    for dialect in [OLD, NEW] {
        check(ReplyKind::Statistics, dialect, "557074696d653a2037", "text");
        check(ReplyKind::Statistics, dialect, "", "text");
    }
}

#[test]
fn a_local_file() {
    let ok = "000200020000002f5265636f7264733a2032202044656c657465643a20302020536b69707065643a203020205761726e696e67733a2030";
    for dialect in [OLD, NEW] {
        let (reply, words) = run(ReplyKind::Query, dialect, &format!("fb66|{ok}"));
        assert_eq!((words.join(" ").as_str(), reply.is_done()), ("infile ok:0002:2", true));
        let (reply, words) = run(ReplyKind::Query, dialect, &format!("fb|{ERROR}"));
        assert_eq!((words.join(" ").as_str(), reply.is_done()), ("infile err:1054:0", true));
        // A second statement follows.
        let (reply, words) = run(ReplyKind::Query, dialect, "fb66|0002000a000000|00000002000000");
        assert_eq!((words.join(" ").as_str(), reply.is_done()), ("infile ok:000a:2 ok:0002:0", true));
    }
}

#[test]
fn a_server_may_give_up_while_the_file_is_sent() {
    let mut reply = Reply::new(ReplyKind::Query, NEW, true);
    reply.accept(Class::LocalInfile, Header { len: 2, seq: 1 }, &[]).unwrap();
    let err = hex(ERROR);
    let header = Header { len: err.len(), seq: 9 };
    assert_eq!(reply.classify(header, Some(0xFF)), Ok(Class::Err));
    reply.accept(Class::Err, header, &err).unwrap();
    assert!(reply.is_done());
    reply.infile_sent();
    assert!(reply.is_done());
}

#[test]
fn a_progress_report_ends_nothing() {
    // ALTER TABLE on MariaDB, for a client with MARIADB_CLIENT_PROGRESS.
    let report = "ffffff0101020a1a0011636f707920746f20746d70207461626c65";
    for dialect in [OLD, NEW] {
        check(ReplyKind::Query, dialect, &format!("{report}|{report}|00000002000000"), "forward forward ok:0002:0");
    }
    check(
        ReplyKind::Query,
        NEW,
        &format!("01|{COLUMN}|{report}|0131|fe000002000000"),
        "forward columns-end forward forward rows-end:0002:1",
    );
}

/// Frames without payloads: (length, first byte), and what they are.
fn long(dialect: bool, frames: &[(usize, Option<u8>, Class)]) -> Reply {
    let mut reply = Reply::new(ReplyKind::Query, dialect, true);
    let column = hex(COLUMN);
    reply.accept(Class::ColumnCount, Header { len: 1, seq: 1 }, &[1]).unwrap();
    reply.accept(Class::Column, Header { len: column.len(), seq: 2 }, &[]).unwrap();
    let mut seq = 3;
    if dialect == OLD {
        reply.accept(Class::Eof, Header { len: 5, seq }, &[0xFE, 0, 0, 2, 0]).unwrap();
        seq += 1;
    }
    for &(len, first, class) in frames {
        let header = Header { len, seq };
        seq += 1;
        assert_eq!(reply.classify(header, first), Ok(class));
        assert_eq!(reply.accept(class, header, &[]), Ok(Event::Forward));
    }
    reply
}

#[test]
fn rows_of_16_mib_and_more() {
    use Class::{Continuation, Row};
    for dialect in [OLD, NEW] {
        // A row whose first field has 16 MiB starts with 0xFE; its rest may start with anything.
        let frames = [
            (MAX_PAYLOAD, Some(0xFE), Row),
            (MAX_PAYLOAD, Some(0xFF), Continuation),
            (5, Some(0xFE), Continuation),
            (2, Some(1), Row),
            // Exact multiples end with an empty frame.
            (MAX_PAYLOAD, Some(0xFD), Row),
            (0, None, Continuation),
            (MAX_PAYLOAD, Some(0xFE), Row),
            (MAX_PAYLOAD, Some(0xFE), Continuation),
            (0, None, Continuation),
        ];
        let reply = long(dialect, &frames);
        assert_eq!((reply.rows, reply.unfinished, reply.phase), (4, false, Phase::Rows));
    }
    // Shorter than a frame, longer than an EOF: nonsense, but the old dialect has always called it a row.
    long(OLD, &[(9, Some(0xFE), Row)]);
}

#[test]
fn a_definition_of_several_frames_ends_its_block_once() {
    let mut reply = Reply::new(ReplyKind::Query, NEW, true);
    reply.accept(Class::ColumnCount, Header { len: 1, seq: 1 }, &[1]).unwrap();
    let full = Header { len: MAX_PAYLOAD, seq: 2 };
    assert_eq!(reply.classify(full, Some(3)), Ok(Class::Column));
    assert_eq!(reply.accept(Class::Column, full, &[]), Ok(Event::Forward));
    let rest = Header { len: 0, seq: 3 };
    assert_eq!(reply.classify(rest, None), Ok(Class::Continuation));
    assert_eq!(reply.accept(Class::Continuation, rest, &[]), Ok(Event::ColumnsEnd));
}

#[test]
fn what_cannot_be_a_reply() {
    let fresh = |kind| Reply::new(kind, NEW, true);
    let header = |len| Header { len, seq: 1 };
    let unexpected = |first, len| Err(ReplyError::Unexpected { first, len });
    assert_eq!(fresh(ReplyKind::Query).classify(header(0), None), Err(ReplyError::Empty));
    assert_eq!(fresh(ReplyKind::Query).classify(header(9), Some(0xFE)), unexpected(0xFE, 9));
    assert_eq!(fresh(ReplyKind::Simple).classify(header(1), Some(1)), unexpected(1, 1));
    assert_eq!(fresh(ReplyKind::Prepare).classify(header(1), Some(1)), unexpected(1, 1));
    assert_eq!(fresh(ReplyKind::None).classify(header(7), Some(0)), Err(ReplyError::AfterEnd));
    for kind in [ReplyKind::ChangeUser, ReplyKind::Stream] {
        assert_eq!(fresh(kind).classify(header(7), Some(0)), Err(ReplyError::NotRelayed));
    }
    let full = Header { len: MAX_PAYLOAD, seq: 1 };
    assert_eq!(fresh(ReplyKind::Query).accept(Class::Ok, full, &[]), Err(ReplyError::Oversized));
    assert!(matches!(fresh(ReplyKind::Query).accept(Class::Ok, header(3), &[0, 0, 0]), Err(ReplyError::Packet(_))));
    assert!(matches!(
        fresh(ReplyKind::Query).accept(Class::ColumnCount, header(2), &[1, 1]),
        Err(ReplyError::Packet(_))
    ));
    let mut reply = long(OLD, &[]);
    reply.phase = Phase::BlockEof(Block::Result);
    assert_eq!(reply.classify(Header { len: 9, seq: 4 }, Some(0xFE)), unexpected(0xFE, 9));
}

#[test]
fn sequence_numbers() {
    let mut reply = Reply::new(ReplyKind::Query, NEW, true);
    let wrong = Err(ReplyError::Sequence { expected: 1, got: 2 });
    assert_eq!(reply.classify(Header { len: 1, seq: 2 }, Some(1)), wrong);
    // Last words are passed on.
    assert_eq!(reply.classify(Header { len: 20, seq: 0 }, Some(0xFF)), Ok(Class::Err));
    reply.accept(Class::ColumnCount, Header { len: 1, seq: 1 }, &[1]).unwrap();
    reply.accept(Class::Column, Header { len: 23, seq: 255 }, &[]).unwrap();
    assert_eq!(reply.classify(Header { len: 2, seq: 0 }, Some(1)), Ok(Class::Row));
}

#[test]
fn a_reply_is_small() {
    assert!(size_of::<Reply>() <= 40);
}

proptest! {
    #[test]
    fn smoke(
        command in 0..0x23_u8,
        dialect in 0..4_u8,
        frames in proptest::collection::vec((0..20_u8, "(\\x00\\x00\\x00\\x02\\x00\\x00\\x00|[\\x00-\\x03]?|\u{b})"), 0..12),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut data = vec![command, dialect];
        for (flags, payload) in &frames {
            // Mostly neither full nor out of sequence.
            data.push(flags.saturating_sub(16));
            data.push(payload.len() as u8);
            data.extend_from_slice(payload.as_bytes());
        }
        fuzz_reply(&data);
        data.extend_from_slice(&noise);
        fuzz_reply(&data);
        fuzz_reply(&noise);
    }
}
