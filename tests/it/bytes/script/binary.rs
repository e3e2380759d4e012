//! Prepared statements: parameters of every kind, results, cursors, long data, errors.

use myriad::protocol::command::Command;

use super::{Act, Step, command, query};

/// A parameter: its type, and its bytes (none: NULL).
type Param = (u16, Option<Vec<u8>>);

const TINY: u16 = 0x01;
const SHORT: u16 = 0x02;
const LONG: u16 = 0x03;
const FLOAT: u16 = 0x04;
const DOUBLE: u16 = 0x05;
const NULL: u16 = 0x06;
const LONGLONG: u16 = 0x08;
const DATE: u16 = 0x0a;
const TIME: u16 = 0x0b;
const DATETIME: u16 = 0x0c;
const DECIMAL: u16 = 0xf6;
const BLOB: u16 = 0xfc;
const STRING: u16 = 0xfd;
const UNSIGNED: u16 = 0x8000;

/// COM_STMT_EXECUTE flags.
const READ_ONLY_CURSOR: u8 = 1;

fn text(text: &str) -> Param {
    let len = u8::try_from(text.len()).expect("a short text");
    assert!(len < 251, "a short text");
    (STRING, Some([&[len], text.as_bytes()].concat()))
}

fn long(value: i32) -> Param {
    (LONG, Some(value.to_le_bytes().to_vec()))
}

fn prepare(name: &'static str, sql: &'static str) -> Step {
    Act::Prepare(name, sql).into()
}

fn about(command: Command, name: &'static str, rest: &[u8]) -> Step {
    Step { dictionary: name == "show", ..Act::Statement(command, name, rest.to_vec()).into() }
}

fn execute(name: &'static str, params: &[Param]) -> Step {
    execute_with(name, 0, params, true)
}

/// `types`: send the parameters' types along.
fn execute_with(name: &'static str, flags: u8, params: &[Param], types: bool) -> Step {
    let mut rest = vec![flags, 1, 0, 0, 0];
    if !params.is_empty() {
        let mut nulls = vec![0; params.len().div_ceil(8)];
        for (at, (_, value)) in params.iter().enumerate() {
            nulls[at / 8] |= u8::from(value.is_none()) << (at % 8);
        }
        rest.extend(nulls);
        rest.push(u8::from(types));
        if types {
            rest.extend(params.iter().flat_map(|(kind, _)| kind.to_le_bytes()));
        }
        rest.extend(params.iter().flat_map(|(_, value)| value.clone().unwrap_or_default()));
    }
    about(Command::StmtExecute, name, &rest)
}

fn fetch(name: &'static str, rows: u32) -> Step {
    about(Command::StmtFetch, name, &rows.to_le_bytes())
}

fn close(name: &'static str) -> Step {
    about(Command::StmtClose, name, &[])
}

pub(super) fn steps() -> Vec<Step> {
    [results(), parameters(), changes(), long_data(), cursors(), procedures(), errors()].concat()
}

/// Every column type in binary, with and without rows.
fn results() -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, sql) in [
        ("numbers", "SELECT * FROM numbers"),
        ("times", "SELECT * FROM times ORDER BY id"),
        ("strings", "SELECT * FROM strings ORDER BY id"),
        ("others", "SELECT * FROM others"),
        ("nothing", "SELECT * FROM t WHERE FALSE"),
        ("constant", "SELECT NULL, 1, 'x', 1.5, 1e0, CURRENT_USER()"),
        ("big", "SELECT REPEAT('h', 70000), 1"),
        ("show", "SHOW COLUMNS FROM t"),
        ("explain", "EXPLAIN SELECT * FROM t WHERE id = 2"),
        ("without", "DO 1"),
        ("many", "WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 600) SELECT i FROM s"),
    ] {
        steps.extend([prepare(name, sql), execute(name, &[]), execute(name, &[]), close(name)]);
    }
    steps
}

/// Parameters of every type; NULL; types sent once; the same again.
fn parameters() -> Vec<Step> {
    let date = (DATE, Some(vec![4, 0xe8, 0x07, 2, 29]));
    let time = (TIME, Some(vec![12, 1, 2, 0, 0, 0, 3, 4, 5, 6, 0, 0, 0]));
    let datetime = (DATETIME, Some(vec![11, 0xe8, 0x07, 2, 29, 12, 34, 56, 7, 0, 0, 0]));
    let all: [Param; 14] = [
        (TINY, Some(vec![0x80])),
        (TINY | UNSIGNED, Some(vec![0x80])),
        (SHORT, Some(vec![0x34, 0x12])),
        long(-5),
        (LONG | UNSIGNED, Some(vec![0xff; 4])),
        (LONGLONG, Some(i64::MIN.to_le_bytes().to_vec())),
        (LONGLONG | UNSIGNED, Some(vec![0xff; 8])),
        (FLOAT, Some(1.5_f32.to_le_bytes().to_vec())),
        (DOUBLE, Some((-2.5e300_f64).to_le_bytes().to_vec())),
        (DECIMAL, Some(b"\x0512.50".to_vec())),
        (BLOB, Some(b"\x03\x00\xff\xfe".to_vec())),
        date,
        time,
        datetime,
    ];
    let two = |a: Param, b: Param| execute("two", &[a, b]);
    let null = || (NULL, None);
    vec![
        prepare("all", "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"),
        execute("all", &all),
        execute_with("all", 0, &all, false),
        execute("all", &all.clone().map(|(kind, _)| (kind, None))),
        close("all"),
        prepare("two", "SELECT ? AS a, ? AS b"),
        two(long(1), text("x")),
        two(null(), text("y")),
        // After a NULL without types the types of before still count.
        execute_with("two", 0, &[long(2), text("z")], false),
        two((LONG, None), (STRING, None)),
        execute_with("two", 0, &[long(3), text("types of before")], false),
        two(text("text now"), long(4)),
        close("two"),
        prepare("none", "SELECT 1 + 1"),
        prepare("none too", "SELECT 1 + 1"),
        close("none"),
        execute("none too", &[]),
        close("none too"),
    ]
}

/// Statements that change something.
fn changes() -> Vec<Step> {
    vec![
        prepare("insert", "INSERT INTO t (v, n) VALUES (?, ?)"),
        execute("insert", &[text("binary 1"), long(1)]),
        execute("insert", &[text("binary 2"), long(2)]),
        execute("insert", &[text("binary 2"), long(2)]),
        execute("insert", &[text("binary 3"), (LONG, None)]),
        query("SELECT LAST_INSERT_ID()"),
        prepare("select", "SELECT v, n FROM t WHERE v = ?"),
        execute("select", &[text("binary 1")]),
        execute("select", &[text("nobody")]),
        query("ALTER TABLE t ADD COLUMN later INT DEFAULT 3"),
        prepare("star", "SELECT * FROM t WHERE v = 'binary 1'"),
        execute("star", &[]),
        query("ALTER TABLE t DROP COLUMN later"),
        execute("star", &[]),
        execute("select", &[text("binary 2")]),
        prepare("update", "UPDATE t SET n = n + ? WHERE v LIKE 'binary%'"),
        execute("update", &[long(0)]),
        execute("update", &[long(5)]),
        prepare("delete", "DELETE FROM t WHERE v LIKE ?"),
        execute("delete", &[text("binary%")]),
        execute("delete", &[text("binary%")]),
        prepare("warn", "SELECT CAST(? AS SIGNED)"),
        execute("warn", &[text("12x")]),
        query("SHOW WARNINGS"),
        prepare("set", "SET time_zone = ?"),
        execute("set", &[text("+01:00")]),
        query("SELECT @@time_zone"),
        execute("set", &[text("SYSTEM")]),
        prepare("variable", "SET @v = ?"),
        execute("variable", &[text("from binary")]),
        query("SELECT @v"),
        prepare("begin", "START TRANSACTION"),
        execute("begin", &[]),
        execute("insert", &[text("in transaction"), long(1)]),
        query("ROLLBACK"),
        close("begin"),
        close("variable"),
        close("set"),
        close("warn"),
        close("delete"),
        close("update"),
        close("star"),
        close("select"),
        close("insert"),
    ]
}

fn long_data() -> Vec<Step> {
    let piece =
        |param: u16, data: &[u8]| about(Command::StmtSendLongData, "long", &[&param.to_le_bytes()[..], data].concat());
    vec![
        prepare("long", "SELECT LENGTH(?), ? AS b"),
        piece(0, b"abc"),
        piece(0, b"defg"),
        execute("long", &[(BLOB, Some(Vec::new())), text("b")]),
        execute("long", &[text("short"), text("b")]),
        piece(0, &[7; 70_000]),
        piece(1, b"second"),
        execute("long", &[(BLOB, Some(Vec::new())), (BLOB, Some(Vec::new()))]),
        piece(0, b"dropped"),
        about(Command::StmtReset, "long", &[]),
        execute("long", &[text("after"), text("reset")]),
        piece(9, b"there is no such parameter"),
        execute("long", &[text("after"), text("the error")]),
        execute("long", &[text("and"), text("again")]),
        close("long"),
    ]
}

fn cursors() -> Vec<Step> {
    let open = |name| execute_with(name, READ_ONLY_CURSOR, &[], false);
    vec![
        prepare("rows", "SELECT id, v FROM t ORDER BY id LIMIT 5"),
        open("rows"),
        fetch("rows", 2),
        fetch("rows", 2),
        fetch("rows", 2),
        fetch("rows", 2),
        open("rows"),
        fetch("rows", 100),
        open("rows"),
        fetch("rows", 1),
        query("SELECT 'in between'"),
        fetch("rows", 1),
        about(Command::StmtReset, "rows", &[]),
        fetch("rows", 1),
        // Not here: executing it without a cursor now. MySQL answers with columns and an OK, and every client waits
        // for rows and their end.
        prepare("no rows", "SELECT id FROM t WHERE FALSE"),
        open("no rows"),
        fetch("no rows", 1),
        prepare("no result", "DO 1"),
        open("no result"),
        fetch("no result", 1),
        prepare("filtered", "SELECT id, v FROM t WHERE id < ? ORDER BY id"),
        execute_with("filtered", READ_ONLY_CURSOR, &[long(4)], true),
        fetch("filtered", 1),
        execute_with("filtered", READ_ONLY_CURSOR, &[long(3)], true),
        fetch("filtered", 10),
        open("rows"),
        fetch("rows", 1),
        close("filtered"),
        close("no result"),
        close("no rows"),
        close("rows"),
        query("SELECT 'after the cursors'"),
    ]
}

/// CALL in binary: several results, OUT parameters.
fn procedures() -> Vec<Step> {
    vec![
        prepare("call none", "CALL none()"),
        execute("call none", &[]),
        prepare("call many", "CALL many()"),
        execute("call many", &[]),
        execute("call many", &[]),
        prepare("call fails", "CALL fails()"),
        execute("call fails", &[]),
        prepare("call outs", "CALL outs(?, ?, ?)"),
        execute("call outs", &[long(1), (STRING, None), long(5)]),
        execute("call outs", &[long(10), text("x"), long(5)]),
        execute_with("call outs", 0, &[long(20), text("y"), long(5)], false),
        prepare("call only", "CALL only_outs(?)"),
        execute("call only", &[text("x")]),
        execute("call only", &[(NULL, None)]),
        close("call only"),
        close("call outs"),
        close("call fails"),
        close("call many"),
        close("call none"),
    ]
}

fn errors() -> Vec<Step> {
    let unknown = 4_000_000_000_u32.to_le_bytes();
    let unknown_with = |rest: &[u8]| [&unknown[..], rest].concat();
    vec![
        prepare("bad", "SELEC 1"),
        prepare("bad", "SELECT * FROM nowhere"),
        prepare("bad", ""),
        prepare("bad", "SELECT 1; SELECT 2"),
        prepare("bad", "PREPARE p FROM 'SELECT 1'"),
        prepare("bad", "USE test2"),
        command(Command::StmtExecute, unknown_with(&[0, 1, 0, 0, 0])),
        command(Command::StmtFetch, unknown_with(&[1, 0, 0, 0])),
        command(Command::StmtReset, unknown),
        command(Command::StmtClose, unknown),
        command(Command::StmtSendLongData, unknown_with(&[0, 0, b'x'])),
        prepare("closed", "SELECT ?"),
        close("closed"),
        execute("closed", &[long(1)]),
        about(Command::StmtReset, "closed", &[]),
        close("closed"),
        prepare("short", "SELECT ?"),
        about(Command::StmtExecute, "short", &[0, 1, 0, 0, 0]),
        execute("short", &[long(1)]),
        close("short"),
        query("SELECT 'after the errors'"),
    ]
}
