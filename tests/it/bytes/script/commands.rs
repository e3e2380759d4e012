//! Commands that are neither a statement nor about one.

use myriad::protocol::command::Command;

use super::{Step, command, query};

pub(super) fn steps(schema: &str) -> Vec<Step> {
    let mut steps = vec![
        command(Command::Ping, ""),
        command(Command::Ping, "with something behind"),
        query("SELECT n FROM t WHERE n = 7"),
        command(Command::Ping, ""),
        query("BEGIN"),
        query("SELECT COUNT(*) FROM t"),
        command(Command::Ping, ""),
        query("ROLLBACK"),
        // MySQL counts the warnings of the statement before in its answer.
        query("SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)"),
        command(Command::Ping, ""),
        command(Command::Ping, ""),
        query("SELECT nothing"),
        command(Command::Ping, ""),
        query("SELECT 1"),
        command(Command::Ping, ""),
        command(Command::InitDb, "test2"),
        query("SELECT DATABASE()"),
        command(Command::InitDb, "nowhere_to_be_found"),
        command(Command::InitDb, "test_this_may_be_ours_and_is_not_there"),
        command(Command::InitDb, "mysql"),
        command(Command::InitDb, ""),
        query("SELECT DATABASE()"),
        command(Command::InitDb, schema),
        command(Command::InitDb, schema),
        command(Command::FieldList, "t\0"),
        command(Command::FieldList, "strings\0%"),
        command(Command::FieldList, "t\0i%"),
        command(Command::FieldList, "t\0nothing"),
        command(Command::FieldList, "nowhere\0"),
        command(Command::Statistics, "").shape(),
        command(Command::SetOption, [0, 0]),
        query("SELECT 1; SELECT 2"),
        command(Command::SetOption, [1, 0]),
        query("SELECT 1; SELECT 2"),
        command(Command::SetOption, [7, 0]),
        command(Command::Refresh, [0x04]),
        command(Command::Debug, ""),
        command(Command::ProcessKill, 4_000_000_000_u32.to_le_bytes()),
    ];
    // What no server knows, or keeps for itself.
    steps.extend(
        [0x00, 0x0b, 0x0f, 0x10, 0x14, 0x1d, 0x30, 0x77, 0xf0].map(|code| command(Command::from_byte(code), "")),
    );
    steps.extend([
        command(Command::Unknown(0x55), "with an argument"),
        query("SELECT 'still here'"),
        command(Command::ResetConnection, ""),
        query("SELECT DATABASE(), @a, @@sql_mode, @@time_zone"),
        query("SELECT @@character_set_client, @@character_set_results, @@collation_connection"),
        query("SELECT ROW_COUNT()"),
        query("SHOW WARNINGS"),
        query("SELECT LAST_INSERT_ID()"),
        query("SELECT FOUND_ROWS()"),
    ]);
    steps
}
