//! User variables: which are asked for, and how they are set again.

use bytes::Bytes;

use super::*;
use crate::protocol::packet::column::{ColumnDefinition, put_text_row};

/// A column that has a variable's type, as servers describe it.
fn column(kind: u8, flags: u16, length: u32, charset: u16) -> Bytes {
    let none = &b""[..];
    let column = ColumnDefinition {
        schema: none,
        table: none,
        org_table: none,
        name: none,
        org_name: none,
        charset,
        length,
        kind,
        flags,
        decimals: 0,
    };
    let mut out = BytesMut::new();
    column.encode(&mut out);
    out.freeze()
}

/// A variable as a server tells it: type, flags, length, charset of the column; value; collation.
type Told<'a> = ((u8, u16, u32, u16), Option<&'a [u8]>, &'a str);

const INT: (u8, u16, u32, u16) = (8, 128, 21, 63);
const TEXT: (u8, u16, u32, u16) = (251, 0, 67_108_860, 45);
const BLOB: (u8, u16, u32, u16) = (250, 128, 16_777_215, 63);

fn answer(ask: &Ask, all: &[Told<'_>]) -> Rows {
    let mut columns = Vec::new();
    let mut fields = Vec::new();
    for ((kind, flags, length, charset), value, collation) in all {
        columns.extend([column(*kind, *flags, *length, *charset), column(253, 0, 0, 63), column(253, 0, 0, 63)]);
        fields.extend([None, *value, Some(collation.as_bytes())]);
    }
    let mut row = BytesMut::new();
    put_text_row(&mut row, fields);
    ask.answer(&columns, &[row.freeze()])
}

impl Stage {
    /// The one question that it owes.
    fn owed(&self) -> Ask {
        let [ask] = self.session.owes().try_into().expect("one question");
        ask
    }

    /// Somebody takes the backend over, and the server tells this of the variables that are asked for.
    fn told(&mut self, all: &[Told<'_>]) -> BackendState {
        let ask = self.owed();
        let held = self.session.moved();
        self.session.answer(&ask, Some(answer(&ask, all)));
        held
    }

    /// What sets its variables on a backend without any.
    fn set(&self) -> String {
        let from = BackendState { user_variables: None, ..self.session.held() };
        set(&from, &self.session.held())
    }
}

fn set(from: &BackendState, to: &BackendState) -> String {
    match plan(from, to) {
        Plan::Nothing => String::new(),
        Plan::Restore(restore) => restore.set.unwrap_or_default(),
        Plan::Unreachable => "unreachable".to_owned(),
    }
}

#[test]
fn the_question_is_put_once_and_only_for_what_was_written() {
    for mut stage in Stage::both() {
        stage.query("SELECT @a", &[rows(1)]);
        assert_eq!(stage.session.owes(), []);
        assert!(stage.session.held().user_variables.is_none());
        stage.query("SET @a = 5, @b = 'x'", &[ok().state()]).query("SELECT @A", &[rows(1)]).pinned(&[]);
        let text = "SELECT IF(FALSE, @`a`, NULL), LEFT(CAST(@`a` AS BINARY), 99), CAST(COLLATION(CONCAT(@`a`)) AS BINARY), \
                    IF(FALSE, @`b`, NULL), LEFT(CAST(@`b` AS BINARY), 99), CAST(COLLATION(CONCAT(@`b`)) AS BINARY) LIMIT 1";
        assert_eq!(stage.owed().text(), text);
        stage.told(&[(INT, Some(b"5"), "binary"), (TEXT, Some(b"x"), "utf8mb4_bin")]);
        assert_eq!(stage.session.owes(), []);
        stage.pinned(&[]);
        assert_eq!(stage.set(), "SET @`a`=CAST('5' AS SIGNED), @`b`=_utf8mb4 0x78 COLLATE utf8mb4_bin");
        stage.query("SELECT 1 INTO @b", &[ok()]);
        assert!(stage.owed().text().starts_with("SELECT IF(FALSE, @`b`, NULL), LEFT(CAST(@`b` AS BINARY), 98)"));
    }
}

#[test]
fn every_type_is_set_as_it_was() {
    let table: &[(Told<'_>, &str)] = &[
        ((INT, Some(b"-9223372036854775808"), "binary"), "CAST('-9223372036854775808' AS SIGNED)"),
        (((8, 160, 21, 63), Some(b"18446744073709551615"), "binary"), "CAST('18446744073709551615' AS UNSIGNED)"),
        (((8, 160, 21, 63), Some(b"\x005"), "binary"), "CAST('5' AS UNSIGNED)"),
        (((3, 128, 11, 63), Some(b"5"), "binary"), "CAST('5' AS SIGNED)"),
        (((246, 128, 83, 63), Some(b"-1.50"), "binary"), "-1.50"),
        (((246, 128, 83, 63), Some(b"7"), "binary"), "7."),
        (((5, 128, 23, 63), Some(b"-0"), "binary"), "-0e0"),
        (((5, 128, 23, 63), Some(b"1.5"), "binary"), "1.5e0"),
        (((5, 128, 23, 63), Some(b"1e308"), "binary"), "1e308"),
        ((TEXT, Some(b""), "latin1_bin"), "_latin1 '' COLLATE latin1_bin"),
        ((TEXT, Some(b"\xe9"), "latin1_bin"), "_latin1 0xE9 COLLATE latin1_bin"),
        ((TEXT, Some(b"\x83\x5c"), "sjis_japanese_ci"), "_sjis 0x835C COLLATE sjis_japanese_ci"),
        ((BLOB, Some(b"\x00\xff"), "binary"), "_binary 0x00FF"),
        (((255, 128, 16_777_215, 63), Some(b"\x07\0\0\0\x01\x01"), "binary"), "ST_GeomFromWKB(0x0101, 7)"),
        ((BLOB, None, "binary"), "_binary '', @`a`=NULL"),
        ((INT, None, "latin1_bin"), "_latin1 '' COLLATE latin1_bin, @`a`=CAST(NULL AS SIGNED)"),
        (((8, 160, 21, 63), None, "latin1_bin"), "CAST('0' AS UNSIGNED), @`a`=NULL"),
        (((246, 128, 83, 63), None, "utf8mb4_bin"), "_utf8mb4 '' COLLATE utf8mb4_bin, @`a`=CAST(NULL AS DECIMAL)"),
        (((5, 128, 23, 63), None, "utf8mb4_bin"), "_utf8mb4 '' COLLATE utf8mb4_bin, @`a`=CAST(NULL AS DOUBLE)"),
        ((TEXT, None, "latin1_bin"), "_latin1 '' COLLATE latin1_bin, @`a`=NULL"),
    ];
    for (told, expected) in table {
        let mut stage = Stage::new(MYSQL);
        stage.query("SET @a = 1", &[ok().state()]).told(&[*told]);
        stage.pinned(&[]);
        assert_eq!(stage.set(), format!("SET @`a`={expected}"), "{told:?}");
    }
}

#[test]
fn one_that_was_never_set_is_none() {
    // As MySQL and MariaDB describe it.
    for never in [(253, 128, 65_535, 63), (251, 128, 1 << 24, 63)] {
        let mut stage = Stage::new(MYSQL);
        stage.query("SELECT @a := @b", &[rows(1)]);
        stage.told(&[(INT, None, "binary"), (never, None, "binary")]);
        assert_eq!(stage.set(), "SET @`a`=_binary '', @`a`=CAST(NULL AS SIGNED)");
        stage.query("SET @a = @b", &[ok().state()]).told(&[(never, None, "binary"), (never, None, "binary")]);
        assert_eq!(stage.set(), "");
        assert!(stage.session.held().user_variables.is_none());
    }
}

#[test]
fn what_cannot_be_carried_pins() {
    let odd: &[Told<'_>] = &[
        (TEXT, Some(b"x\xffy"), "utf8mb4_bin"),
        (TEXT, Some(b"\xf0\x9f\x98\x80"), "utf8mb3_bin"),
        (TEXT, Some(b"\x83"), "sjis_bin"),
        (TEXT, Some(b"\xa1\xa1"), "ujis_bin"),
        (TEXT, Some(b"\xd8\x00"), "ucs2_bin"),
        (TEXT, Some(b"x"), "no name"),
        (INT, Some(b"five"), "binary"),
        ((12, 0, 19, 63), Some(b"2020-01-01"), "binary"),
        (TEXT, Some(&[b'x'; 101]), "utf8mb4_bin"),
    ];
    for told in odd {
        let mut stage = Stage::new(MYSQL);
        stage.query("SET @a = 1", &[ok().state()]);
        let ask = stage.owed();
        let rows = answer(&ask, &[*told]);
        assert!(ask.binds(&rows), "{told:?}");
        stage.session.answer(&ask, Some(rows));
        stage.pinned(&["user_variables"]);
    }
    let mut stage = Stage::new(MYSQL);
    for n in 0..=64 {
        stage.pinned(&[]).query(&format!("SET @v{n} = 1"), &[ok().state()]);
    }
    stage.pinned(&["user_variables"]);
}

#[test]
fn what_another_had_is_erased() {
    let mut one = Stage::new(MYSQL);
    let mut other = Session::new(Arc::clone(one.session.state()), Arc::clone(&one.interner), MYSQL);
    one.query("SET @a = 1, @b = 2", &[ok().state()]);
    let held = one.told(&[(INT, Some(b"1"), "binary"), (INT, Some(b"2"), "binary")]);
    assert_eq!(set(&held, &other.held()), "SET @`a`=_binary '', @`a`=NULL, @`b`=_binary '', @`b`=NULL");
    other.begin(Command::Query, &sql::effects(b"SET @b = 7", Mode::default()));
    other.end();
    other.answer(&other.owes()[0].clone(), Some(answer(&other.owes()[0], &[(INT, Some(b"7"), "binary")])));
    assert_eq!(set(&one.session.held(), &other.held()), "SET @`a`=_binary '', @`a`=NULL, @`b`=CAST('7' AS SIGNED)");
    assert_eq!(set(&one.session.held(), &one.session.held()), "");
    one.session.reset(Arc::clone(other.state()));
    assert!(one.session.held().user_variables.is_none());
}

#[test]
fn old_character_sets_may_warn() {
    for (collation, clears) in [("utf8mb4_bin", false), ("latin1_bin", false), ("utf8mb3_bin", true)] {
        let mut stage = Stage::new(MYSQL);
        stage.query("SET @a = 1", &[ok().state()]).told(&[(TEXT, Some(b"x"), collation)]);
        let from = BackendState { user_variables: None, ..stage.session.held() };
        let Plan::Restore(restore) = plan(&from, &stage.session.held()) else { panic!("nothing to do?") };
        assert_eq!(restore.clear.is_some(), clears, "{collation}");
    }
}

#[test]
fn what_the_session_never_had_is_foreign() {
    for mut stage in Stage::both() {
        let foreign = |stage: &Stage, text: &str| stage.session.reads_foreign(Some(&stage.effects(text)));
        assert!(foreign(&stage, "SELECT @a"));
        assert!(foreign(&stage, "SELECT @'a '"));
        assert!(foreign(&stage, "CALL p()"));
        assert!(foreign(&stage, "SELECT @a := @a + 1"));
        assert!(!foreign(&stage, "SET @a = 1"));
        assert!(!foreign(&stage, "SELECT 1"));
        assert!(stage.session.reads_foreign(None));
        stage.query("SET @a = 1", &[ok().state()]);
        assert!(!foreign(&stage, "SELECT @A + 1"));
        assert!(foreign(&stage, "SELECT @a + @b"));
    }
}

#[test]
fn a_prepared_statement_writes_when_it_is_executed() {
    for mut stage in Stage::both() {
        stage.prepare("SELECT ? INTO @a", 1).prepare("SELECT @b", 2);
        assert!(stage.session.held().user_variables.is_none());
        let effects = stage.effects_of(2);
        stage.command(Command::StmtExecute, effects, &[rows(1)]);
        stage.session.end();
        assert_eq!(stage.session.owes(), []);
        assert!(stage.session.reads_foreign(Some(&stage.effects_of(2))));
        let effects = stage.effects_of(1);
        stage.command(Command::StmtExecute, effects, &[ok()]);
        stage.session.end();
        assert!(stage.owed().text().starts_with("SELECT IF(FALSE, @`a`, NULL)"));
    }
}

#[test]
fn after_unseen_code_mariadb_tells_every_name() {
    let names = |all: &[&[u8]]| {
        let hex = |name: &&[u8]| Some(name.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()).collect());
        Some(all.iter().map(|name| vec![hex(name)]).collect::<Rows>())
    };
    let mut stage = Stage::new(MARIA);
    let effects = stage.effects("DO 1");
    stage.command(Command::Query, effects, &[ok()]);
    assert!(stage.session.list_user_variables() && stage.session.list_user_variables());
    assert_eq!(stage.session.end(), Followup::Ask(Ask::UserVariableNames));
    stage.session.answer(&Ask::UserVariableNames, names(&[b"by_procedure", b"a b"]));
    assert_eq!(stage.session.end(), Followup::None);
    assert!(stage.owed().text().contains("@`a b`") && stage.owed().text().contains("@`by_procedure`"));
    stage.pinned(&[]);
    for told in [None, names(&["\u{e9}".as_bytes()]), names(&[b"x".as_slice(); 65])] {
        let mut stage = Stage::new(MARIA);
        assert!(stage.session.list_user_variables());
        stage.session.answer(&Ask::UserVariableNames, told);
        stage.pinned(&["user_variables"]);
    }
    assert!(!Stage::new(MYSQL).session.list_user_variables());
}
