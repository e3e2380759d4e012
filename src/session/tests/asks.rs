//! Questions at the end of a turn.

use super::*;

const CHARSET: &str = "SELECT @@session.`character_set_client`, @@session.`character_set_connection`, \
                       @@session.`character_set_results`, @@session.`collation_connection` LIMIT 1";

fn charset<'a>(names: &'a str, results: Option<&'a str>, collation: &'a str) -> [(&'a str, Option<&'a str>); 4] {
    [
        ("character_set_client", Some(names)),
        ("character_set_connection", Some(names)),
        ("character_set_results", results),
        ("collation_connection", Some(collation)),
    ]
}

#[test]
fn the_collation_is_never_reported_with_names() {
    for mut stage in Stage::both() {
        let asked = stage.asked(
            "SET NAMES latin1 COLLATE latin1_bin",
            &[ok().names("latin1")],
            &charset("latin1", Some("latin1"), "latin1_bin"),
        );
        assert_eq!(asked, [CHARSET]);
        assert_eq!(*stage.session.state().charset(), Charset::names("latin1", "latin1_bin"));
        // Setting the collation sets the character set, also unreported.
        let answers = charset("utf8mb4", Some("latin1"), "utf8mb4_bin");
        let reply = ok().set("collation_connection", "utf8mb4_bin");
        assert_eq!(stage.asked("SET collation_connection=utf8mb4_bin", &[reply], &answers), [CHARSET]);
        assert_eq!(&*stage.session.state().charset().connection, "utf8mb4");
        stage.pinned(&[]).variables(&[]);
    }
}

#[test]
fn no_results_charset_is_null() {
    for mut stage in Stage::both() {
        stage.query("SET character_set_results=NULL", &[ok().set("character_set_results", "")]);
        assert_eq!(stage.session.state().charset().results, None);
        stage.asked("SET NAMES latin1", &[ok().names("latin1")], &charset("latin1", None, "latin1_swedish_ci"));
        assert_eq!(stage.session.state().charset().results, None);
    }
}

#[test]
fn a_question_that_fails_pins() {
    for mut stage in Stage::both() {
        assert_eq!(stage.asked("SET NAMES latin1", &[ok().names("latin1")], &[]), [CHARSET]);
        stage.pinned(&["unexplained"]);
    }
}

/// `SET STATEMENT v=5 FOR SELECT 1` reports v=5 although it is gone already.
#[test]
fn set_statement_is_asked_not_believed() {
    let mut stage = Stage::new(MARIA);
    let text = "SET STATEMENT sort_buffer_size=100000 FOR SELECT 1";
    let reply = rows(1).set("sort_buffer_size", "100000");
    let asked = stage.asked(text, &[reply], &[("sort_buffer_size", Some("2097152"))]);
    assert_eq!(asked, ["SELECT @@session.`sort_buffer_size` LIMIT 1"]);
    stage.variables(&[("sort_buffer_size", "2097152")]).pinned(&[]);
    let text = "SET STATEMENT timestamp=5 FOR SELECT NOW()";
    stage.asked(text, &[rows(1).set("timestamp", "5.0")], &[("timestamp", Some("1796055184.7"))]);
    stage.variables(&[("sort_buffer_size", "2097152")]).pinned(&[]);
}

/// Measured: MariaDB reports nothing at all of `SET @@x = ..`, not even that the state changed.
#[test]
fn mariadb_does_not_report_variables_with_two_at_signs() {
    let mut stage = Stage::new(MARIA);
    let asked = stage.asked("SET @@time_zone='+02:00'", &[ok()], &[("time_zone", Some("+02:00"))]);
    assert_eq!(asked, ["SELECT @@session.`time_zone` LIMIT 1"]);
    stage.variables(&[("time_zone", "+02:00")]).pinned(&[]);
    let answers = charset("utf8mb4", Some("utf8mb4"), "latin1_bin");
    assert_eq!(stage.asked("SET @@collation_connection=latin1_bin", &[ok()], &answers), [CHARSET]);
    assert_eq!(&*stage.session.state().charset().collation, "latin1_bin");
    stage.asked("SET @@timestamp=5", &[ok()], &[("timestamp", Some("5.000000"))]);
    stage.variables(&[("time_zone", "+02:00"), ("timestamp", "5.000000")]).pinned(&[]);
    stage.asked("SET @@timestamp=DEFAULT", &[ok()], &[("timestamp", Some("1796055184.7"))]);
    stage.variables(&[("time_zone", "+02:00")]).pinned(&[]);
    // Prepared, too; and what failed set nothing.
    stage.prepare("SET @@a=?", 1);
    stage.execute(1, &[ok()]);
    assert_eq!(stage.answer(&[("a", Some("7"))]), ["SELECT @@session.`a` LIMIT 1"]);
    stage.query("SET @@nosuch=1", &[err(1193)]).variables(&[("a", "7"), ("time_zone", "+02:00")]);
    stage.asked("SET @@rand_seed1=1", &[ok()], &[("rand_seed1", Some("0"))]);
    stage.pinned(&["write_only_variable"]);
    stage.query("SET @@`odd name`=1", &[ok()]).pinned(&["write_only_variable", "unexplained"]);

    let mut stage = Stage::new(MYSQL);
    stage.query("SET @@time_zone='+02:00'", &[ok().set("time_zone", "+02:00")]).variables(&[("time_zone", "+02:00")]);
}

#[test]
fn what_changes_along_is_asked_for() {
    for mut stage in Stage::both() {
        let reply = ok().set("max_join_size", "5");
        let asked = stage.asked("SET max_join_size=5", &[reply], &[("sql_big_selects", Some("0"))]);
        assert_eq!(asked, ["SELECT @@session.`sql_big_selects` LIMIT 1"]);
        stage.variables(&[("max_join_size", "5"), ("sql_big_selects", "0")]);
    }
}

/// Measured: the rows of `INSERT .. RETURNING` end with insert id 0, whatever was generated.
#[test]
fn rows_of_an_insert_hide_its_id() {
    let returning = [
        "INSERT INTO t VALUES () RETURNING 1",
        "REPLACE t VALUES () RETURNING 1",
        "DO 1; INSERT INTO t VALUES () RETURNING 1",
    ];
    for text in returning {
        let mut stage = Stage::new(MARIA);
        stage.query("SELECT 1", &[rows(1)]);
        assert_eq!(stage.session.owes(), []);
        stage.query(text, &[rows(1)]);
        assert_eq!(stage.session.owes(), [Ask::Variables(vec!["last_insert_id".into()])]);
    }
}

/// Measured: the OK of a LOAD says insert id 0, whatever was generated.
#[test]
fn a_load_hides_its_ids() {
    for text in [
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "LOAD XML LOCAL INFILE 'x' INTO TABLE t (v)",
        "DO 1; LOAD DATA INFILE 'x' INTO TABLE t",
    ] {
        for mut stage in Stage::both() {
            stage.query(text, &[ok()]);
            assert_eq!(stage.session.owes(), [Ask::Variables(vec!["last_insert_id".into()])], "{text}");
        }
    }
}

/// A question would clear the list of warnings: that is saved first, and the count of rows is remembered.
#[test]
fn warnings_are_asked_for_before_anything_else() {
    for mut stage in Stage::both() {
        let text = "SET NAMES latin1";
        let answers = charset("latin1", Some("latin1"), "latin1_swedish_ci");
        let asked = stage.asked(text, &[ok().names("latin1").warned(1)], &answers);
        assert_eq!(asked, ["SHOW WARNINGS", CHARSET]);
        for text in ["SHOW WARNINGS", "SELECT ROW_COUNT()"] {
            let effects = sql::effects(text.as_bytes(), Mode::default());
            assert_ne!(stage.session.recall(text.as_bytes(), &effects, 1), Recall::Backend, "{text}");
        }
        assert_eq!(stage.session.memory().row_count, 0);
    }
}

#[test]
fn after_an_error_the_schema_is_asked_for_if_one_was_named() {
    const SCHEMA: &str = "SELECT HEX(CONVERT(DATABASE() USING utf8mb4)) LIMIT 1";
    let table: [(Option<&str>, Option<&str>, bool); 4] = [
        (None, None, false),
        (Some("61C3A9"), Some("a\u{e9}"), false),
        (Some("6"), None, true),
        (Some("zz"), None, true),
    ];
    for (answer, schema, unexplained) in table {
        for mut stage in Stage::both() {
            let asked = stage.asked("CALL p()", &[ok().schema("proc"), err(1146)], &[("schema", answer)]);
            assert_eq!(asked, ["SHOW WARNINGS", "SELECT FOUND_ROWS() LIMIT 1", SCHEMA]);
            let pins = stage.session.pins();
            assert_eq!(pins.contains(PinReason::Unexplained), unexplained, "{answer:?}");
            if !unexplained {
                assert_eq!(stage.session.state().schema(), schema.map(str::as_bytes));
            }
        }
    }
    for mut stage in Stage::both() {
        assert_eq!(stage.asked("USE b", &[ok().schema("b")], &[]), Vec::<String>::new());
    }
}
