//! MariaDB's protocol extensions: many executes in one command, and column definitions that say more of a type.

use myriad::protocol::capability::{BULK_OPERATIONS, EXTENDED_METADATA};
use myriad::protocol::command::Command;

use super::{Param, long, text};
use crate::support::{Kind, Login, Setup, Twin, on_both, one_backend};

/// What stands before a value.
const VALUE: u8 = 0;
const NULL: u8 = 1;
const DEFAULT: u8 = 2;
const IGNORE: u8 = 3;

/// COM_STMT_BULK_EXECUTE's argument: rows of values behind their marks.
fn bulk(id: u32, types: bool, rows: &[Vec<(u8, Param)>]) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend(if types { 128_u16 } else { 0 }.to_le_bytes());
    if types {
        out.extend(rows[0].iter().flat_map(|(_, (kind, _))| kind.to_le_bytes()));
    }
    for (mark, (_, value)) in rows.iter().flatten() {
        out.push(*mark);
        if *mark == VALUE {
            out.extend(value.iter().flatten());
        }
    }
    out
}

fn row(n: i32, name: &str) -> Vec<(u8, Param)> {
    vec![(VALUE, long(n)), (VALUE, text(name))]
}

fn modern(t: &Setup) -> Login {
    t.app().with(BULK_OPERATIONS | EXTENDED_METADATA)
}

on_both!(many_rows_in_one_command, one_backend, |t| async move {
    let mut twin = Twin::new(&t, &modern(&t)).await;
    twin.query("CREATE TABLE b (id INT AUTO_INCREMENT PRIMARY KEY, n INT DEFAULT 77, s VARCHAR(20))").await;
    let insert = twin.prepare("INSERT INTO b (n, s) VALUES (?, ?)").await;
    let rows = [
        row(1, "a"),
        row(2, "b"),
        vec![(NULL, long(0)), (VALUE, text("c"))],
        vec![(DEFAULT, long(0)), (NULL, text(""))],
    ];
    let asked = "SELECT ROW_COUNT() AS n, LAST_INSERT_ID() AS id, @@warning_count AS w";
    let reply = twin.command(Command::StmtBulkExecute, &bulk(insert, true, &rows)).await;
    if t.kind == Kind::MySql {
        return assert_eq!(reply.error().map(|(code, _)| code), Some(1047));
    }
    twin.intrude().await;
    twin.query(asked).await;
    // The types of before hold, on whatever connection.
    twin.command(Command::StmtBulkExecute, &bulk(insert, false, &[row(5, "e"), row(6, "f")])).await;
    twin.intrude().await;
    twin.query("SELECT * FROM b").await;
    // An error half way, warnings, and a statement that bulks cannot run.
    twin.query("ALTER TABLE b ADD UNIQUE (n)").await;
    twin.command(Command::StmtBulkExecute, &bulk(insert, true, &[row(10, "x"), row(5, "y"), row(11, "z")])).await;
    twin.intrude().await;
    twin.query("SHOW WARNINGS").await;
    twin.query(asked).await;
    twin.query("SELECT COUNT(*) FROM b").await;
    let update = twin.prepare("UPDATE b SET n = ? WHERE s = ?").await;
    let ignored = [row(100, "a"), vec![(IGNORE, long(0)), (VALUE, text("b"))], row(101, "nobody")];
    // How many rows the last of them changed, nobody says who is not asked at once.
    twin.command(Command::StmtBulkExecute, &bulk(update, true, &ignored)).await;
    twin.query(asked).await;
    twin.query("SHOW WARNINGS").await;
    let select = twin.prepare("SELECT ?, ?").await;
    twin.command(Command::StmtBulkExecute, &bulk(select, true, &rows)).await;
    let returning = twin.prepare("INSERT INTO b (n, s) VALUES (?, ?) RETURNING id, s").await;
    twin.command(Command::StmtBulkExecute, &bulk(returning, true, &[row(200, "r"), row(201, "s")])).await;
    twin.intrude().await;
    twin.query(asked).await;
    let delete = twin.prepare("DELETE FROM b WHERE n = ? OR s = ?").await;
    twin.command(Command::StmtBulkExecute, &bulk(delete, true, &[row(200, "-"), row(201, "-")])).await;
    twin.intrude().await;
    twin.query("SELECT * FROM b ORDER BY id").await;
    // What is cut short, and what is not there.
    twin.command(Command::StmtBulkExecute, &delete.to_le_bytes()).await;
    twin.command(Command::StmtBulkExecute, &bulk(delete + 500, true, &rows)).await;
    twin.command(Command::StmtBulkExecute, b"\x01").await;
    // A transaction and a rollback.
    twin.query_and_keep("BEGIN").await;
    twin.command(Command::StmtBulkExecute, &bulk(insert, true, &[row(300, "t"), row(301, "u")])).await;
    twin.query_and_keep("ROLLBACK").await;
    twin.query("SELECT COUNT(*) FROM b").await;
});

on_both!(
    /// Whose client did not ask for it is refused, on a connection that others use for it.
    only_for_those_who_asked, one_backend, |t| async move {
        let mut twin = Twin::new(&t, &t.app()).await;
        let id = twin.prepare("SELECT ?, ?").await;
        twin.command(Command::StmtBulkExecute, &bulk(id, true, &[row(1, "a")])).await;
        twin.query("SELECT 1").await;
    }
);

on_both!(
    /// JSON, POINT and INET6 are told apart from what they are stored as: by those who asked for it alone.
    types_have_names, one_backend, |t| async move {
        if t.kind == Kind::MySql {
            return;
        }
        for login in [modern(&t), t.app(), modern(&t).old(), t.app().with(EXTENDED_METADATA)] {
            let mut twin = Twin::new(&t, &login).await;
            twin.query("CREATE OR REPLACE TABLE x (j JSON, p POINT, ls LINESTRING, i INET6, u UUID, n INT)").await;
            twin.query("INSERT INTO x VALUES ('{}', ST_POINTFROMTEXT('POINT(1 1)'), NULL, '::1', NULL, 1)").await;
            twin.query("SELECT * FROM x").await;
            twin.query("SET @a = 'x', @n = 5, @j = JSON_EXTRACT('[1]', '$[0]')").await;
            twin.query("SELECT @a, @n, @j").await;
            twin.query("SELECT @a, @n, @j").await;
            let id = twin.prepare("SELECT * FROM x WHERE n = ?").await;
            let again = twin.prepare("SELECT * FROM x WHERE n = ?").await;
            twin.execute(id, &[long(1)]).await;
            twin.execute(again, &[long(1)]).await;
            twin.command(Command::FieldList, b"x\0").await;
            twin.query("SHOW WARNINGS").await;
        }
    }
);
