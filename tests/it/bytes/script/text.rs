//! Statements as text.

use super::{Act, Step, command, query};
use myriad::protocol::command::Command;

const FILES: [&str; 6] = [
    include_str!("types.sql"),
    include_str!("statements.sql"),
    include_str!("procedures.sql"),
    include_str!("errors.sql"),
    include_str!("show.sql"),
    include_str!("session.sql"),
];

/// Every statement of the files, then what a text file cannot say.
pub(super) fn steps(schema: &str) -> Vec<Step> {
    let lines = FILES.iter().flat_map(|file| file.lines()).filter(|line| !line.starts_with('#'));
    let from_files = lines.map(|line| {
        let line = line.replace("{schema}", schema);
        match line.split_at(1) {
            ("~", sql) => query(sql).shape(),
            ("^", sql) => query(sql).large(),
            _ => query(line),
        }
    });
    from_files.chain(odd()).chain(several(schema)).chain(files()).collect()
}

/// Texts that are no text, and white space.
fn odd() -> Vec<Step> {
    let mut steps: Vec<Step> = [
        "",
        " ",
        ";",
        ";;",
        "# only a comment",
        "/* only a comment */",
        "SELECT 1;",
        "SELECT 1 ; ",
        "SELECT 1;;",
        "  \n\t SELECT\n1 -- behind",
        "/* before */ SELECT /* within */ 1 /* behind */",
        "/*! SELECT 1 */",
        "/*!99999 SELECT 1 */ SELECT 2",
        "(SELECT 1)",
        "((SELECT 1)) UNION (SELECT 2)",
        "SELECT '\\0\\Z\\n', \"q\", 'it''s'",
        "SELECT 1\0",
        "SELECT 'a\0b'",
    ]
    .map(query)
    .to_vec();
    // Latin-1, and bytes that no UTF-8 has, as utf8mb4.
    steps.extend([&b"SELECT '\xe9'"[..], b"SELECT '\xff\xfe', 1", b"SELECT \xe9", b"SELECT `\xf0\x9f`"].map(query));
    steps.push(query("SET NAMES latin1"));
    steps.extend([&b"SELECT '\xe9' AS \xe9, HEX('\xe9')"[..], b"SELECT b FROM strings WHERE o = '\xe9'"].map(query));
    steps.push(query("SET NAMES gbk"));
    steps.push(query(b"SELECT '\xbf\\', 1, '\\'"));
    steps.push(query("SET NAMES utf8mb4"));
    steps
}

/// Several statements in one text: refused, then allowed, then refused again.
fn several(schema: &str) -> Vec<Step> {
    let texts = [
        "SELECT 1; SELECT 2",
        "SELECT 1; SELECT 2;",
        "SELECT 1; SELECT * FROM nowhere; SELECT 2",
        "SELECT 1; SELEC 2",
        "SET @a = 1; SELECT @a; SET @a = 2; SELECT @a",
        "UPDATE t SET n = n + 1 WHERE id < 4; SELECT ROW_COUNT()",
        "INSERT INTO t (v) VALUES ('multi'); SELECT LAST_INSERT_ID()",
        "SELECT CAST('x' AS SIGNED); SHOW WARNINGS; SELECT @@warning_count",
        "BEGIN; INSERT INTO child VALUES (800, NULL); SELECT COUNT(*) FROM child; ROLLBACK",
        "CALL many(); SELECT 'behind'",
        "SELECT 1;;SELECT 2",
        "SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 1; SELECT FOUND_ROWS()",
        "DROP TABLE IF EXISTS many_1; CREATE TABLE many_1 (id INT); INSERT INTO many_1 VALUES (1), (2); SELECT * FROM many_1",
        "USE test2; SELECT DATABASE()",
    ];
    let large = "SELECT a.id, REPEAT('g', 1000) FROM t AS a, t AS b ORDER BY 1; SELECT 'behind'";
    let again = texts.map(query);
    let mut steps = texts[..3].iter().map(query).collect::<Vec<_>>();
    steps.push(command(Command::SetOption, [0, 0]));
    steps.extend(again);
    steps.push(query(format!("USE {schema}")));
    steps.push(query(large).large());
    steps.push(command(Command::SetOption, [1, 0]));
    steps.extend(texts[..2].iter().map(query));
    steps
}

/// LOAD DATA LOCAL: rows, warnings, nothing, too much for one buffer, in front of and behind other statements.
fn files() -> Vec<Step> {
    let lines = |n: u32| (0..n).flat_map(|i| format!("{i}\tline {i}\n").into_bytes()).collect::<Vec<u8>>();
    let local = |sql, file| Step::from(Act::Local(sql, file));
    vec![
        query("CREATE TABLE loaded (id INT, v VARCHAR(10))"),
        local("LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded", lines(10)),
        query("SELECT * FROM loaded"),
        local("LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded", Vec::new()),
        local("LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded", b"no number\tthis is too long\n\n1\n1\t2\t3\n".to_vec()),
        query("SHOW WARNINGS"),
        local("LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded (id, @v) SET v = UPPER(@v)", lines(5000)),
        query("SELECT COUNT(*), MIN(v), MAX(v) FROM loaded"),
        local("LOAD DATA LOCAL INFILE 'x' INTO TABLE nowhere", lines(3)),
        local("LOAD DATA LOCAL INFILE 'x' IGNORE INTO TABLE t (id, v)", b"2\tx\n9000\ty\n".to_vec()),
        query("SHOW WARNINGS"),
        command(Command::SetOption, [0, 0]),
        local("SELECT 1; LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded; SELECT 2", lines(7)),
        local("LOAD DATA LOCAL INFILE 'x' INTO TABLE loaded; LOAD DATA LOCAL INFILE 'y' INTO TABLE loaded", lines(4)),
        command(Command::SetOption, [1, 0]),
        query("SELECT COUNT(*) FROM loaded"),
    ]
}
