//! Commands that are neither a statement nor about one.

use myriad::protocol::command::Command;

use crate::differential::author::{Author, profile};
use crate::differential::script::{Act, Profile};

pub(super) fn simple(a: &mut Author) {
    for _ in 0..=a.dice.below(2) {
        let act = match a.dice.below(9) {
            0 => Act::Command(Command::Statistics, Vec::new()),
            1 => Act::Command(Command::from_byte(a.dice.pick(&[0x00, 0x0b, 0x0f, 0x10, 0x14, 0x1d, 0x55])), Vec::new()),
            2 => Act::Command(Command::FieldList, a.text("t{c}\0").into_bytes()),
            3 => Act::Command(Command::FieldList, b"here\0v%".to_vec()),
            4 => Act::Command(Command::FieldList, b"nowhere\0".to_vec()),
            5 => Act::Command(Command::Debug, Vec::new()),
            _ => Act::Command(Command::Ping, Vec::new()),
        };
        a.act(act);
    }
    a.any(&["SELECT ROW_COUNT()", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()", "SELECT 1", "SELECT @a, DATABASE()"]);
}

pub(super) fn set_option(a: &mut Author) {
    let option = a.dice.pick(&[0, 0, 1, 7]);
    a.act(Act::Command(Command::SetOption, vec![option, 0]));
    a.some(&["SELECT 1; SELECT 2", "SET @a = 'several'; SELECT @a", "SELECT ROW_COUNT()"], 2);
    if a.dice.chance(50) {
        a.act(Act::Command(Command::SetOption, vec![1 - option.min(1), 0]));
    }
}

pub(super) fn reset(a: &mut Author) {
    a.act(Act::reset());
    a.part().slots = Default::default();
    a.some(
        &[
            "SELECT DATABASE(), @a, @b, @@sql_mode, @@time_zone",
            "SELECT @@character_set_client, @@character_set_results, @@collation_connection",
            "SELECT ROW_COUNT()",
            "SHOW WARNINGS",
            "SELECT LAST_INSERT_ID()",
            "SELECT FOUND_ROWS()",
            "SELECT 1; SELECT 2",
        ],
        2,
    );
}

pub(super) fn change_user(a: &mut Author) {
    let usual = profile(&mut a.dice, a.mixed);
    let wrong = a.dice.chance(10);
    let profile = Profile { password: if wrong { "wrong" } else { usual.password }, ..usual };
    a.act(Act::ChangeUser(profile));
    a.part().slots = Default::default();
    a.some(
        &[
            "SELECT DATABASE(), CURRENT_USER(), @a",
            "SELECT LAST_INSERT_ID()",
            "SELECT @@collation_connection",
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT()",
            "SHOW WARNINGS",
        ],
        2,
    );
}

pub(super) fn reconnect(a: &mut Author) {
    let (profile, politely) = (profile(&mut a.dice, a.mixed), a.dice.chance(70));
    a.act(Act::Reconnect(profile, politely));
    a.part().slots = Default::default();
    a.some(
        &[
            "SELECT DATABASE(), @a, @@sql_mode",
            "SELECT LAST_INSERT_ID()",
            "SELECT ROW_COUNT()",
            "SELECT FOUND_ROWS()",
            "SHOW WARNINGS",
        ],
        2,
    );
}
