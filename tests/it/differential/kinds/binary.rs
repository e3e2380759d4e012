//! Prepared statements in the binary protocol.

use myriad::protocol::command::Command;

use crate::differential::author::{Author, Slot};
use crate::differential::script::{Act, SLOTS};

/// A parameter: its type, and its bytes (none: NULL).
type Param = (u16, Option<Vec<u8>>);

const TINY: u16 = 0x01;
const LONG: u16 = 0x03;
const DOUBLE: u16 = 0x05;
const NULL: u16 = 0x06;
const LONGLONG: u16 = 0x08;
const DATETIME: u16 = 0x0c;
const DECIMAL: u16 = 0xf6;
const BLOB: u16 = 0xfc;
const STRING: u16 = 0xfd;
const UNSIGNED: u16 = 0x8000;
const TYPES: [u16; 9] = [TINY, LONG, LONG | UNSIGNED, DOUBLE, LONGLONG, DATETIME, DECIMAL, BLOB, STRING];

/// COM_STMT_EXECUTE's flag.
const READ_ONLY_CURSOR: u8 = 1;

/// Texts, and how many parameters each has.
const TEXTS: &[(&str, usize)] = &[
    ("SELECT ? AS a, ? AS b", 2),
    ("SELECT ?, ?, ?", 3),
    ("SELECT 1", 0),
    ("SELECT @a, @b, @@sql_mode, @@time_zone, DATABASE()", 0),
    ("SELECT v, n FROM here", 0),
    ("SELECT id, v, d, t FROM {s}.shared WHERE id <> ? ORDER BY id", 1),
    ("SELECT * FROM {s}.altered ORDER BY id", 0),
    ("INSERT INTO {s}.t{c} (n) VALUES (?)", 1),
    ("UPDATE {s}.t{c} SET n = n + 1 WHERE id < ?", 1),
    ("SELECT LAST_INSERT_ID()", 0),
    ("SELECT LAST_INSERT_ID(), ROW_COUNT()", 0),
    ("SELECT ROW_COUNT()", 0),
    ("SELECT FOUND_ROWS()", 0),
    ("SHOW WARNINGS", 0),
    ("SELECT SQL_CALC_FOUND_ROWS id FROM {s}.shared ORDER BY id LIMIT 2", 0),
    ("SET @a = ?", 1),
    ("SELECT @b := ?", 1),
    ("SET time_zone = ?", 1),
    ("SET sql_mode = ?", 1),
    ("SELECT CAST(? AS SIGNED), 1 / 0", 1),
    ("CALL {s}.p_many()", 0),
    ("DO 1", 0),
    ("SELECT \"x\", 'a' || 'b', '\u{e9}'", 0),
    ("DO GET_LOCK(CONCAT('{s}', ?), 0)", 1),
    ("CREATE TEMPORARY TABLE tmp (id INT)", 0),
    ("SELECT id FROM {s}.shared ORDER BY id LIMIT ?", 1),
    ("SELECT COUNT(*) FROM {s}.t{c}", 0),
    ("BEGIN", 0),
    ("COMMIT", 0),
    ("SELECT * FROM nowhere", 0),
    ("SELEC 1", 0),
    ("USE {o}", 0),
    ("SELECT ? + 1, COLLATION(?)", 2),
    ("SELECT id INTO @a FROM {s}.shared WHERE id = ?", 1),
    ("SET NAMES latin1", 0),
];

pub(super) fn statement(a: &mut Author) {
    let slot = a.dice.below(SLOTS);
    if a.part().slots[slot].is_none() || a.dice.chance(25) {
        prepare(a, slot);
    }
    for _ in 0..=a.dice.below(4) {
        execute(a, slot, 0);
        if a.dice.chance(25) {
            a.any(&[
                "SELECT ROW_COUNT()",
                "SHOW WARNINGS",
                "SELECT LAST_INSERT_ID()",
                "SELECT @a, @b",
                "SELECT 1",
                "USE {s}",
            ]);
        }
        if a.dice.chance(15) {
            a.any(&[
                "SET sql_mode = 'ANSI_QUOTES'",
                "USE {o}",
                "SET NAMES latin1",
                "SET time_zone = '+08:00'",
                "SET sql_mode = ''",
            ]);
        }
    }
    match a.dice.below(10) {
        0..=3 => close(a, slot),
        4 => {
            a.act(Act::Statement(Command::StmtReset, slot, Vec::new()));
            execute(a, slot, 0);
        }
        _ => {}
    }
    // What some of them may have begun.
    if a.dice.chance(20) {
        a.query("COMMIT");
        a.query("DROP TEMPORARY TABLE IF EXISTS tmp");
    }
}

fn prepare(a: &mut Author, slot: usize) {
    if a.part().slots[slot].is_some() && a.dice.chance(90) {
        a.act(Act::Statement(Command::StmtClose, slot, Vec::new()));
    }
    let (text, params) = a.dice.pick(TEXTS);
    let text = a.text(text);
    if text == "BEGIN" {
        a.part().open = true;
    }
    a.act(Act::Prepare(slot, text));
    a.part().slots[slot] = Some(Slot { params, types: None });
}

fn close(a: &mut Author, slot: usize) {
    a.act(Act::Statement(Command::StmtClose, slot, Vec::new()));
    a.part().slots[slot] = None;
    if a.dice.chance(20) {
        a.act(Act::Statement(Command::StmtExecute, slot, vec![0, 1, 0, 0, 0]));
    } else {
        a.query("SELECT 'closed'");
    }
}

fn execute(a: &mut Author, slot: usize, flags: u8) {
    let Some(Slot { params, types }) = a.part().slots[slot].clone() else { return };
    let again = types.filter(|_| a.dice.chance(50));
    let with_types = again.is_none();
    let types: Vec<u16> = again.unwrap_or_else(|| (0..params).map(|_| a.dice.pick(&TYPES)).collect());
    let values: Vec<Param> = types.iter().map(|kind| value(a, *kind)).collect();
    // A parameter may also be sent as of type NULL.
    let sent = |at: usize| if values[at].1.is_none() && with_types && at % 2 == 1 { NULL } else { types[at] };
    let sent: Vec<u16> = (0..params).map(sent).collect();
    a.act(Act::Statement(Command::StmtExecute, slot, body(flags, &values, with_types.then_some(&sent))));
    if let Some(slot) = &mut a.part().slots[slot]
        && params > 0
    {
        slot.types = Some(if with_types { sent } else { types });
    }
}

fn body(flags: u8, values: &[Param], types: Option<&Vec<u16>>) -> Vec<u8> {
    let mut rest = vec![flags, 1, 0, 0, 0];
    if values.is_empty() {
        return rest;
    }
    let mut nulls = vec![0; values.len().div_ceil(8)];
    for (at, (_, value)) in values.iter().enumerate() {
        nulls[at / 8] |= u8::from(value.is_none()) << (at % 8);
    }
    rest.extend(nulls);
    rest.push(u8::from(types.is_some()));
    rest.extend(types.into_iter().flatten().flat_map(|kind| kind.to_le_bytes()));
    rest.extend(values.iter().flat_map(|(_, value)| value.clone().unwrap_or_default()));
    rest
}

fn value(a: &mut Author, kind: u16) -> Param {
    if kind == NULL || a.dice.chance(15) {
        return (kind, None);
    }
    let counted = |bytes: &[u8]| [&[u8::try_from(bytes.len()).expect("it is short")], bytes].concat();
    let bytes = match kind {
        TINY => vec![a.dice.pick(&[0, 1, 0x80, 7])],
        DOUBLE => a.dice.pick(&[1.5_f64, -2.5e300, 0.0]).to_le_bytes().to_vec(),
        LONGLONG => a.dice.pick(&[i64::MIN, 3, 5_000_000_000]).to_le_bytes().to_vec(),
        DATETIME => vec![7, 0xe8, 0x07, 2, 29, 12, 34, 56],
        DECIMAL => counted(a.dice.pick(&["12.50", "-1", "3"]).as_bytes()),
        BLOB => counted(a.dice.pick(&[&b"\x00\xff\xfe"[..], b"blob", b""])),
        STRING => counted(a.dice.pick(&["x", "+05:00", "ANSI", "caf\u{e9}", "5", ""]).as_bytes()),
        _ => a.dice.pick(&[-5_i32, 2, 4, 1_000_000]).to_le_bytes().to_vec(),
    };
    (kind, Some(bytes))
}

pub(super) fn long_data(a: &mut Author) {
    let slot = a.dice.below(SLOTS);
    prepare_as(a, slot, "SELECT LENGTH(?), ? AS b", 2);
    let piece = |param: u16, data: &[u8]| {
        Act::Statement(Command::StmtSendLongData, slot, [&param.to_le_bytes()[..], data].concat())
    };
    for _ in 0..=a.dice.below(2) {
        // What was sent ahead is left out of the execute.
        let mut ahead = [false; 2];
        for _ in 0..=a.dice.below(2) {
            let param: u16 = a.dice.pick(&[0, 0, 0, 1, 1, 9]);
            let data = a.dice.pick(&[&b"abc"[..], &[7; 5000], b""]);
            a.act(piece(param, data));
            if let Some(sent) = ahead.get_mut(usize::from(param)) {
                *sent = true;
            }
            if a.dice.chance(30) {
                a.query("SELECT 'in between'");
            }
        }
        if a.dice.chance(25) {
            a.act(Act::Statement(Command::StmtReset, slot, Vec::new()));
            ahead = [false; 2];
        }
        let value = |sent| if sent { (BLOB, Some(vec![])) } else { (STRING, Some(b"\x04text".to_vec())) };
        let types = ahead.map(|sent| if sent { BLOB } else { STRING }).to_vec();
        a.act(Act::Statement(Command::StmtExecute, slot, body(0, &ahead.map(value), Some(&types))));
    }
    close(a, slot);
}

fn prepare_as(a: &mut Author, slot: usize, text: &str, params: usize) {
    if a.part().slots[slot].is_some() {
        a.act(Act::Statement(Command::StmtClose, slot, Vec::new()));
    }
    let text = a.text(text);
    a.act(Act::Prepare(slot, text));
    a.part().slots[slot] = Some(Slot { params, types: None });
}

pub(super) fn cursor(a: &mut Author) {
    let slot = a.dice.below(SLOTS);
    a.part().open = true;
    let (text, params) = a.dice.pick(&[
        ("SELECT id, v FROM {s}.shared ORDER BY id", 0),
        ("SELECT id FROM {s}.shared WHERE FALSE", 0),
        ("DO 1", 0),
        ("SELECT id, v FROM {s}.shared WHERE id <> ? ORDER BY id", 1),
    ]);
    prepare_as(a, slot, text, params);
    for _ in 0..=a.dice.below(2) {
        execute(a, slot, READ_ONLY_CURSOR);
        for _ in 0..=a.dice.below(3) {
            let rows: u32 = a.dice.pick(&[1, 2, 4, 100]);
            a.act(Act::Statement(Command::StmtFetch, slot, rows.to_le_bytes().to_vec()));
            if a.dice.chance(20) {
                a.any(&["SELECT 'in between'", "SET @a = 'cursor'", "SELECT ROW_COUNT()"]);
            }
        }
        if a.dice.chance(30) {
            a.act(Act::Statement(Command::StmtReset, slot, Vec::new()));
        }
    }
    close(a, slot);
}

pub(super) fn errors(a: &mut Author) {
    let slot = a.dice.below(SLOTS);
    let act = match a.dice.below(6) {
        0 => Act::Prepare(slot, a.dice.pick(&["", "SELECT 1; SELECT 2", "PREPARE p FROM 'SELECT 1'"]).into()),
        1 => Act::Command(Command::StmtExecute, [&4_000_000_000_u32.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat()),
        2 => Act::Command(Command::StmtFetch, [&4_000_000_000_u32.to_le_bytes()[..], &[1, 0, 0, 0]].concat()),
        3 => Act::Command(Command::StmtReset, 4_000_000_000_u32.to_le_bytes().to_vec()),
        4 => Act::Command(Command::StmtClose, 4_000_000_000_u32.to_le_bytes().to_vec()),
        _ => Act::Statement(Command::StmtFetch, slot, vec![1, 0, 0, 0]),
    };
    let is_prepare = matches!(act, Act::Prepare(..));
    a.act(act);
    a.any(&["SHOW WARNINGS", "SELECT 1", "SELECT ROW_COUNT()"]);
    if is_prepare && a.part().slots[slot].is_some() {
        // It stays what it was.
        execute(a, slot, 0);
    }
}
