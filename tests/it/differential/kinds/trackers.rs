//! Clients that turn on session trackers themselves.

use crate::differential::author::Author;
use crate::differential::script::Act;

pub(super) fn set(a: &mut Author) {
    a.any(&[
        "SET SESSION session_track_system_variables = '*'",
        "SET SESSION session_track_system_variables = 'sql_mode , TIME_ZONE,nobody_knows_this'",
        "SET session_track_system_variables = ''",
        "SET session_track_system_variables = DEFAULT",
        "SET SESSION session_track_state_change = ON",
        "SET SESSION session_track_schema = OFF",
        "SET SESSION session_track_transaction_info = 'CHARACTERISTICS'",
        "SET SESSION session_track_gtids = 'OFF'",
    ]);
    a.some(
        &[
            "SET sql_mode = 'ANSI'",
            "SET time_zone = '+06:00'",
            "USE {o}",
            "SET @a = 'tracked'",
            "BEGIN",
            "COMMIT",
            "SET NAMES latin1",
            "SELECT @@session_track_system_variables, @@session_track_schema, @@session_track_state_change",
        ],
        4,
    );
    a.query("COMMIT");
    if a.dice.chance(60) {
        a.act(Act::reset());
        a.part().slots = Default::default();
    }
}
