//! Tables of statements and what they may do.

mod calls;

use proptest::prelude::*;

use super::*;

/// How the servers that everything was measured on read a text.
pub(super) const MYSQL: Mode = Mode {
    ansi_quotes: false,
    no_backslash_escapes: false,
    ignore_space: false,
    mariadb: false,
    version: 90_704,
    multibyte: Multibyte::No,
};
pub(super) const MARIA: Mode = Mode { mariadb: true, version: 101_119, ..MYSQL };
const SPACED: Mode = Mode { ignore_space: true, ..MYSQL };
const ANSI: Mode = Mode { ansi_quotes: true, ..MYSQL };
const PLAIN_BACKSLASH: Mode = Mode { no_backslash_escapes: true, ..MYSQL };
const SJIS: Mode = Mode { multibyte: Multibyte::Sjis, ..MYSQL };
const GBK: Mode = Mode { multibyte: Multibyte::Gbk, ..MYSQL };
const LATIN1: Mode = Mode { multibyte: Multibyte::Single, ..MYSQL };

/// Flags by name: `CALL` is `Flags::CALL`.
macro_rules! f {
    () => { Flags::NONE };
    ($($name:ident)|+) => { Flags::NONE$(.and(Flags::$name))+ };
}

/// Every text, in every mode it makes sense in, and all of its flags.
fn table() -> Vec<(Mode, &'static [u8], Flags)> {
    let mut table = Vec::new();
    let mut both = |text: &'static str, flags: Flags| {
        table.push((MYSQL, text.as_bytes(), flags));
        table.push((MARIA, text.as_bytes(), flags));
    };
    for (text, flags) in plain_statements().into_iter().chain(sets()).chain(hidden()) {
        both(text, flags);
    }
    table.extend(by_mode());
    table
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn plain_statements() -> Vec<(&'static str, Flags)> {
    vec![
        ("", f!()),
        (" \n;;", f!()),
        ("SELECT 1", f!()),
        ("select a.get_lock, `sql_calc_found_rows` from t where into_ = 1", f!()),
        ("INSERT INTO db.t (a, b) VALUES (1, 'x'), (2, 'SET @a=1; SELECT GET_LOCK(1,1)')", f!()),
        ("INSERT INTO t(mail) VALUES('a@b'), (\"c@d\")", f!()),
        // User variables.
        ("SELECT @a", f!(USER_VARIABLE)),
        ("SELECT@a", f!(USER_VARIABLE)),
        ("SELECT @`a b`, @'x', @\"y\", @.z", f!(USER_VARIABLE)),
        ("SELECT @a:=1", f!(USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE)),
        ("SELECT @'a' /* c */ := 1", f!(USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE)),
        ("SELECT 1 FROM t WHERE@a:=1", f!(USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE)),
        ("SELECT 1 INTO @a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("SELECT 1 INTO@a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("SELECT 1.INTO @a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("SELECT .5INTO @a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("SELECT t.into FROM t WHERE a = @b", f!(USER_VARIABLE)),
        ("UPDATE t SET a := 1", f!()),
        ("UPDATE t SET a = @b", f!(USER_VARIABLE)),
        ("LOAD DATA INFILE 'f' INTO TABLE t (@a) SET b=@a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t", f!(LOAD_LOCAL)),
        ("load /**/ xml concurrent LOCAL infile 'f' into table t", f!(LOAD_LOCAL)),
        ("GET DIAGNOSTICS @n = NUMBER", f!(USER_VARIABLE | WRITES_USER_VARIABLE | READS_WARNINGS | READS_ROW_COUNT)),
        ("CALL p(@a)", f!(CALL | USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("call db.p", f!(CALL)),
        ("EXECUTE s USING @a", f!(EXECUTE | USER_VARIABLE)),
        ("EXECUTE IMMEDIATE 'x'", f!(EXECUTE)),
        // Accounts are not user variables.
        ("CREATE USER u@localhost, 'v'@'%', `w`@`h`", f!(CHANGES_ACCOUNTS)),
        ("GRANT SELECT ON *.* TO 'u' @ 'h'", f!(CHANGES_ACCOUNTS)),
        ("CREATE DEFINER=root@localhost VIEW v AS SELECT 1", f!()),
        ("CREATE DEFINER=`root`@`localhost` PROCEDURE p() SELECT 1", f!(CHANGES_ROUTINE)),
        ("ALTER FUNCTION f COMMENT 'x'", f!(CHANGES_ROUTINE)),
        ("DROP PROCEDURE IF EXISTS p", f!(CHANGES_ROUTINE)),
        ("GRANT EXECUTE ON PROCEDURE p TO u", f!(CHANGES_ACCOUNTS)),
        ("SHOW GRANTS FOR u@localhost", f!()),
        ("SET PASSWORD FOR u@localhost = 'x'", f!(CHANGES_ACCOUNTS)),
        ("REVOKE ALL ON *.* FROM u", f!(CHANGES_ACCOUNTS)),
        ("CREATE OR REPLACE ROLE r", f!(CHANGES_ACCOUNTS)),
        ("alter user if exists u account lock", f!(CHANGES_ACCOUNTS)),
        ("DROP ROLE r", f!(CHANGES_ACCOUNTS)),
        ("RENAME USER u TO v", f!(CHANGES_ACCOUNTS)),
        ("FLUSH LOCAL PRIVILEGES", f!(CHANGES_ACCOUNTS)),
        ("FLUSH LOGS, USER_RESOURCES", f!(CHANGES_ACCOUNTS)),
        ("FLUSH OPTIMIZER_COSTS", f!(CHANGES_ACCOUNTS)),
        ("CREATE TABLE user (user INT, role INT)", f!()),
        ("DROP TABLE user", f!(DROP_TABLE)),
        ("CREATE TABLE t AS SELECT (@a)", f!(USER_VARIABLE)),
        // Locks.
        ("SELECT GET_LOCK('a', 1)", f!(GET_LOCK)),
        ("SELECT get_lock ('a', 1)", f!(GET_LOCK)),
        ("SELECT get_lock/**/('a', 1)", f!(GET_LOCK)),
        ("SELECT `GET_LOCK`('a', 1)", f!(GET_LOCK)),
        ("SELECT db.get_lock('a', 1)", f!(CALLS_FUNCTION)),
        ("SELECT db . get_lock('a', 1)", f!(CALLS_FUNCTION)),
        ("SELECT get_lock FROM t", f!()),
        ("SELECT 1 FROM t WHERE IF(GET_LOCK('a',1),1,2)", f!(GET_LOCK)),
        ("DO RELEASE_LOCK('a')", f!(RELEASE_LOCK)),
        ("DO RELEASE_ALL_LOCKS()", f!(RELEASE_ALL_LOCKS)),
        ("LOCK TABLES t READ", f!(LOCK_TABLES)),
        ("LOCK TABLE t READ", f!(LOCK_TABLES)),
        ("UNLOCK TABLES", f!(UNLOCK_TABLES)),
        ("FLUSH TABLES WITH READ LOCK", f!(FLUSH_AND_LOCK)),
        ("FLUSH LOCAL TABLES t WITH READ LOCK", f!(FLUSH_AND_LOCK)),
        ("FLUSH TABLES t FOR EXPORT", f!(FLUSH_AND_LOCK)),
        ("FLUSH TABLES", f!()),
        ("FLUSH STATUS", f!(FLUSH_STATUS)),
        ("flush no_write_to_binlog status", f!(FLUSH_STATUS)),
        ("SELECT service_get_write_locks('a', 'b', 1)", f!(CALLS_FUNCTION | SERVICE_LOCK)),
        ("SELECT version_tokens_lock_exclusive('a', 1)", f!(CALLS_FUNCTION | SERVICE_LOCK)),
        ("LOCK INSTANCE FOR BACKUP", f!(LOCK_INSTANCE)),
        ("UNLOCK INSTANCE", f!(UNLOCK_INSTANCE)),
        ("BACKUP STAGE START", f!(BACKUP_BEGIN)),
        ("BACKUP STAGE END", f!(BACKUP_END)),
        ("BACKUP LOCK t", f!(BACKUP_BEGIN)),
        ("BACKUP UNLOCK", f!(BACKUP_END)),
        ("HANDLER t OPEN AS h", f!(HANDLER_OPEN)),
        ("HANDLER db.t OPEN", f!(HANDLER_OPEN)),
        ("HANDLER h READ FIRST", f!()),
        ("HANDLER h CLOSE", f!(HANDLER_CLOSE)),
        // Temporary tables.
        ("CREATE TEMPORARY TABLE t (a INT)", f!(CREATE_TEMPORARY)),
        ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", f!(CREATE_TEMPORARY)),
        ("create\t/* x */ or -- y\n replace # z\n temporary table t(a int)", f!(CREATE_TEMPORARY)),
        ("CREATE TABLE t (a INT)", f!()),
        ("DROP TABLE t", f!(DROP_TABLE)),
        ("DROP TEMPORARY TABLE IF EXISTS t", f!(DROP_TABLE | DROP_TEMPORARY)),
        // Prepared text.
        ("PREPARE s FROM 'SELECT 1'", f!(PREPARE)),
        ("PREPARE s FROM @a", f!(PREPARE | USER_VARIABLE)),
        ("DEALLOCATE PREPARE s", f!(DEALLOCATE)),
        ("DROP PREPARE s", f!(DEALLOCATE)),
        // Transactions.
        ("BEGIN", f!(BEGIN)),
        ("BEGIN WORK;", f!(BEGIN)),
        ("BEGIN @a := 1; END", f!(BEGIN | COMPOUND | USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE)),
        ("START TRANSACTION READ ONLY", f!(BEGIN)),
        ("START SLAVE", f!()),
        ("COMMIT AND CHAIN", f!(COMMIT)),
        ("ROLLBACK", f!(ROLLBACK)),
        ("ROLLBACK TO SAVEPOINT s", f!()),
        ("ROLLBACK WORK TO s", f!()),
        ("SAVEPOINT s", f!(SAVEPOINT)),
        ("RELEASE SAVEPOINT s", f!()),
        ("XA START 'x'", f!(XA_START)),
        ("XA BEGIN 'x'", f!(XA_START)),
        ("XA END 'x'", f!(XA_END)),
        ("XA PREPARE 'x'", f!(XA_PREPARE)),
        ("XA COMMIT 'x' ONE PHASE", f!(XA_FINISH)),
        ("XA ROLLBACK 'x'", f!(XA_FINISH)),
        ("XA RECOVER", f!()),
        // Compound statements.
        ("BEGIN NOT ATOMIC SELECT 1; END", f!(BEGIN | COMPOUND)),
        ("IF 1 THEN SET @a=1; END IF", f!(COMPOUND | USER_VARIABLE)),
        ("l: LOOP LEAVE l; END LOOP", f!(COMPOUND)),
        // Questions.
        ("SHOW WARNINGS LIMIT 1", f!(READS_WARNINGS)),
        ("SHOW COUNT(*) ERRORS", f!(READS_WARNINGS)),
        ("SHOW TABLES", f!()),
        ("SELECT @@warning_count + @@session.error_count", f!(READS_WARNINGS)),
        ("SELECT ROW_COUNT()", f!(READS_ROW_COUNT)),
        ("SELECT SQL%ROWCOUNT", f!(READS_ROW_COUNT)),
        ("SELECT FOUND_ROWS ( )", f!(READS_FOUND_ROWS)),
        ("SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", f!(CALC_FOUND_ROWS)),
        ("INSERT INTO t VALUES (LAST_INSERT_ID())", f!(READS_LAST_INSERT_ID)),
        ("SELECT LAST_INSERT_ID(/* nothing */)", f!(READS_LAST_INSERT_ID)),
        ("UPDATE t SET a = LAST_INSERT_ID(a + 1)", f!(READS_LAST_INSERT_ID | SETS_LAST_INSERT_ID)),
        ("SELECT @@identity, @@last_insert_id", f!(READS_LAST_INSERT_ID)),
        ("SELECT @@session.last_insert_id", f!(READS_LAST_INSERT_ID)),
        ("SELECT last_insert_id FROM t", f!()),
        ("SELECT CONNECTION_ID()", f!(READS_CONNECTION_ID)),
        ("SELECT @@pseudo_thread_id", f!(READS_CONNECTION_ID)),
        ("SELECT PREVIOUS VALUE FOR s", f!(READS_SEQUENCE)),
        ("SELECT s.currval", f!(READS_SEQUENCE)),
        ("KILL 5", f!(KILL)),
        ("USE test", f!(USE)),
        ("BINLOG 'abc'", f!(BINLOG)),
        ("(SELECT 1) UNION (SELECT GET_LOCK('a',1))", f!(GET_LOCK)),
        ("EXPLAIN SELECT GET_LOCK('a',1)", f!(GET_LOCK)),
        // Several statements.
        ("SELECT 1; SAVEPOINT s ;; COMMIT;", f!(SAVEPOINT | COMMIT)),
        ("SELECT ';' ; USE x -- ; CALL p()", f!(USE)),
    ]
}

fn sets() -> Vec<(&'static str, Flags)> {
    vec![
        ("SET sql_safe_updates=1", f!(SET_VARIABLE)),
        ("SET SESSION a=1, b := 2", f!(SET_VARIABLE)),
        ("SET @@session.a = @@global.b", f!(SET_VARIABLE)),
        ("SET @@local . `a` = 1", f!(SET_VARIABLE)),
        (
            "SET a=(SELECT 1, 2), @b = 1",
            f!(SET_VARIABLE | USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE),
        ),
        ("SET@a=1", f!(USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE)),
        ("SET @o=@@time_zone", f!(USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE)),
        ("SET time_zone=@o", f!(SET_VARIABLE | USER_VARIABLE)),
        (
            "SET a=1, @b=2, GLOBAL c=3",
            f!(SET_VARIABLE | USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE | SET_GLOBAL),
        ),
        ("SET GLOBAL a=1", f!(SET_GLOBAL)),
        ("SET @@global.a=1", f!(SET_GLOBAL)),
        ("SET PERSIST a=1", f!(SET_GLOBAL)),
        ("SET @@persist_only.a=1", f!(SET_GLOBAL)),
        ("SET GLOBAL a=1, b=2", f!(SET_GLOBAL | SET_VARIABLE)),
        ("SET GLOBAL a=1, SESSION b=2", f!(SET_GLOBAL | SET_VARIABLE)),
        ("SET NAMES utf8mb4", f!(SET_VARIABLE | SET_CHARSET | SET_COLLATION)),
        ("SET NAMES 'latin1' COLLATE 'latin1_bin', a=1", f!(SET_VARIABLE | SET_CHARSET | SET_COLLATION)),
        ("SET CHARACTER SET utf8mb4", f!(SET_VARIABLE | SET_CHARSET | SET_COLLATION)),
        ("set charset default", f!(SET_VARIABLE | SET_CHARSET | SET_COLLATION)),
        ("SET CHAR SET latin1", f!(SET_VARIABLE | SET_CHARSET | SET_COLLATION)),
        ("SET character_set_results=NULL", f!(SET_VARIABLE | SET_CHARSET)),
        ("SET collation_connection=utf8mb4_bin", f!(SET_VARIABLE | SET_CHARSET | SET_COLLATION)),
        ("SET TRANSACTION READ ONLY", f!(SET_TRANSACTION)),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", f!(SET_TRANSACTION)),
        ("SET SESSION TRANSACTION READ ONLY", f!(SET_VARIABLE)),
        ("SET GLOBAL TRANSACTION READ ONLY", f!(SET_GLOBAL)),
        ("SET @@transaction_isolation='SERIALIZABLE'", f!(SET_VARIABLE | SET_TRANSACTION)),
        ("SET @@session.transaction_isolation='SERIALIZABLE'", f!(SET_VARIABLE)),
        ("SET transaction_isolation='SERIALIZABLE'", f!(SET_VARIABLE)),
        ("SET ROLE r", f!(SET_ROLE)),
        ("SET ROLE r@localhost", f!(SET_ROLE)),
        ("SET DEFAULT ROLE r TO u@localhost", f!(CHANGES_ACCOUNTS)),
        ("SET SESSION AUTHORIZATION u", f!(SET_ROLE)),
        ("SET RESOURCE GROUP g", f!(SET_RESOURCE_GROUP)),
        ("SET PASSWORD = 'x'", f!(CHANGES_ACCOUNTS)),
        ("SET session_track_schema=OFF", f!(SET_MINOR_TRACKER)),
        ("SET autocommit=1, session_track_schema=1", f!(SET_VARIABLE | SET_MINOR_TRACKER)),
        ("SET SESSION Session_Track_GTIDs=OWN_GTID", f!(SET_MINOR_TRACKER)),
        ("SET session_track_schema=OFF; USE x", f!(SET_MINOR_TRACKER | SET_TRACKER | USE)),
        ("SET session_track_schema_=OFF", f!(SET_TRACKER)),
        ("SELECT @@session_track_schema, @@session . `Session_Track_GTIDs`", f!(READS_TRACKER)),
        ("SELECT session_track_schema, @session_track_schema", f!(USER_VARIABLE)),
        ("SHOW SESSION VARIABLES", f!(READS_TRACKER)),
        ("SHOW VARIABLES LIKE 'sql_mode'", f!()),
        ("SET session_track_system_variables='*', a=1", f!(SET_TRACKER | SET_VARIABLE)),
        ("SET @@session.session_track_state_change=1, a=1", f!(SET_TRACKER | SET_VARIABLE)),
        ("SET insert_id=5", f!(SET_VARIABLE | SET_ONE_SHOT)),
        ("SET SESSION gtid_next='AUTOMATIC'", f!(SET_VARIABLE | SET_WRITE_ONLY)),
        ("SET rand_seed1=1, rand_seed2=2", f!(SET_VARIABLE | SET_WRITE_ONLY)),
        ("SET last_insert_id=7", f!(SET_VARIABLE | SETS_LAST_INSERT_ID)),
        ("SET @@session.identity=7", f!(SET_VARIABLE | SETS_LAST_INSERT_ID | READS_LAST_INSERT_ID)),
        ("SET timestamp=1700000000.123", f!(SET_VARIABLE | SET_TIMESTAMP)),
        ("SET timestamp=1700000000, a=1", f!(SET_VARIABLE | SET_TIMESTAMP)),
        ("SET timestamp=DEFAULT", f!(SET_VARIABLE | FREE_TIMESTAMP)),
        ("SET timestamp=0, a=5", f!(SET_VARIABLE | FREE_TIMESTAMP)),
        ("SET timestamp=5-5", f!(SET_VARIABLE | SET_TIMESTAMP_UNSEEN)),
        ("SET timestamp=0.0", f!(SET_VARIABLE | SET_TIMESTAMP_UNSEEN)),
        ("SET timestamp=UNIX_TIMESTAMP()", f!(SET_VARIABLE | SET_TIMESTAMP_UNSEEN)),
        ("SET timestamp=@t", f!(SET_VARIABLE | SET_TIMESTAMP_UNSEEN | USER_VARIABLE)),
        ("SET a=timestamp", f!(SET_VARIABLE)),
        ("SET STATEMENT max_statement_time=1 FOR SELECT GET_LOCK('a',1)", f!(SET_STATEMENT | SET_VARIABLE | GET_LOCK)),
        ("SET STATEMENT a=1, b=2 FOR CALL p()", f!(SET_STATEMENT | SET_VARIABLE | CALL)),
    ]
}

/// What hides code, or only seems to.
fn hidden() -> Vec<(&'static str, Flags)> {
    vec![
        ("SELECT 'it''s', 'GET_LOCK(', \"CALL\" -- GET_LOCK('a',1)", f!()),
        ("SELECT 'a\\'; CALL p(); -- '", f!()),
        ("SELECT `a\\`; CALL p()", f!(CALL)),
        ("SELECT 1 # ' \n; CALL p()", f!(CALL)),
        ("SELECT 1 --' \n; CALL p() -- '", f!()),
        ("SELECT 1 --\t' \n; CALL p()", f!(CALL)),
        ("SELECT 1 --\n; CALL p()", f!(CALL)),
        ("SELECT 1 --- ' \n; CALL p()", f!(CALL)),
        ("SELECT 1 --1; CALL p()", f!(CALL)),
        ("SELECT 1 -- x\0; CALL p()", f!(CALL)),
        ("/* CALL */ SELECT /* ; CALL p() */ 1", f!()),
        ("/**/CALL/**/p()", f!(CALL)),
        ("/*/ CALL p() */ SELECT 1", f!()),
        ("/* /* */ CALL p() -- */", f!(CALL)),
        ("/***/ CALL p()", f!(CALL)),
        ("/*! CALL p() */", f!(CALL | EXECUTABLE_COMMENT)),
        ("/*!50000CALL p()*/", f!(CALL | EXECUTABLE_COMMENT)),
        ("/*!99999 CALL p()*/", f!(CALL | EXECUTABLE_COMMENT)),
        ("SHOW /*!50000 WARNINGS */", f!(READS_WARNINGS | EXECUTABLE_COMMENT)),
        ("SELECT 1 /*!40000 , 2*3 */; CALL p()", f!(CALL | EXECUTABLE_COMMENT)),
        ("SELECT 1 /*!40000 /* x */ + GET_LOCK('a',1) */", f!(GET_LOCK | EXECUTABLE_COMMENT)),
        // A server that skips the comment finds another end of it than we do.
        ("SELECT 1 /*!99999 ' */, GET_LOCK('a',1) -- '", f!(EXECUTABLE_COMMENT | OPAQUE)),
        ("SELECT 1 /*!99999 ` */, GET_LOCK('a',1) -- `", f!(EXECUTABLE_COMMENT | OPAQUE)),
        ("SELECT 1 /*!99999 # */, GET_LOCK('a',1)", f!(EXECUTABLE_COMMENT | OPAQUE)),
        ("SELECT 1 /*!99999 /*!99999 */ ' */, GET_LOCK('a',1) -- '", f!(EXECUTABLE_COMMENT | OPAQUE)),
        ("SELECT /*+ MAX_EXECUTION_TIME(1) */ 1", f!()),
        ("SELECT /*+ INDEX(`t` `i`) */ 1", f!()),
        ("SELECT /*+ QB_NAME(`*/`) */ GET_LOCK('a',1)", f!(OPAQUE)),
        // The first statement changes how the next is read.
        ("SET sql_mode='ANSI_QUOTES'; SELECT 1", f!(SET_VARIABLE)),
        ("SET sql_mode='ANSI_QUOTES'; SELECT \"a\"", f!(SET_VARIABLE | OPAQUE)),
        ("SET sql_mode='NO_BACKSLASH_ESCAPES'; SELECT '\\'; CALL p() -- '", f!(SET_VARIABLE | OPAQUE)),
        ("SET NAMES gbk; SELECT '\\''", f!(SET_VARIABLE | SET_CHARSET | SET_COLLATION | OPAQUE)),
        ("SET sql_mode='ANSI_QUOTES', a=\"b\"", f!(SET_VARIABLE)),
        ("CALL p(); SELECT \"a\"", f!(CALL | OPAQUE)),
        ("SET a=1; SELECT \"a\"", f!(SET_VARIABLE)),
        // Numbers and other literals.
        ("SELECT 0x27, x'27', b'1', N'a', _utf8mb4'b', 1e5, 1.5e-3, .5, 1.; CALL p()", f!(CALL)),
        ("SELECT 1 AS é, `né` FROM 表; CALL p()", f!(CALL)),
    ]
}

fn by_mode() -> Vec<(Mode, &'static [u8], Flags)> {
    vec![
        (ANSI, b"SELECT \"GET_LOCK\"('a',1)", f!(GET_LOCK)),
        (MYSQL, b"SELECT \"GET_LOCK\"('a',1)", f!()),
        (ANSI, b"SELECT \"a\\\"; CALL p() -- \"", f!(CALL)),
        (MYSQL, b"SELECT \"a\\\"; CALL p() -- \"", f!()),
        (ANSI, b"SELECT 'a\\'; CALL p() -- '", f!()),
        (PLAIN_BACKSLASH, b"SELECT 'a\\'; CALL p() -- '", f!(CALL)),
        (MARIA, b"/*M! CALL p() */", f!(CALL | EXECUTABLE_COMMENT)),
        (MARIA, b"/*M!100100 CALL p() */", f!(CALL | EXECUTABLE_COMMENT)),
        (MYSQL, b"/*M! CALL p() */", f!()),
        (MYSQL, b"/*M! ' */ CALL p()", f!(CALL)),
        (MARIA, b"/*M CALL p() */ SELECT 1", f!()),
        // Sequences.
        (MARIA, b"SELECT NEXTVAL(s)", f!(READS_SEQUENCE)),
        (MARIA, b"SELECT LASTVAL(s)", f!(READS_SEQUENCE)),
        (MYSQL, b"SELECT LASTVAL(s)", f!(READS_SEQUENCE | CALLS_FUNCTION)),
        (MARIA, b"SELECT setval (s, 5)", f!(READS_SEQUENCE)),
        // In quotes it is somebody's own; MariaDB says so of a keyword.
        (MARIA, b"SELECT `setval` (s, 5)", f!(READS_SEQUENCE | CALLS_FUNCTION)),
        (MARIA, b"INSERT INTO t VALUES (NEXT VALUE FOR s)", f!(READS_SEQUENCE)),
        (MARIA, b"SELECT s.nextval", f!(READS_SEQUENCE)),
        (MYSQL, b"SELECT NEXTVAL(s), NEXT VALUE, s.nextval", f!(CALLS_FUNCTION)),
        // MySQL 9 has strings in dollars.
        (
            MYSQL,
            b"CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ it's; CALL p() $$",
            f!(OPAQUE | CHANGES_ROUTINE),
        ),
        (MYSQL, b"SELECT $tag$ ' $tag$", f!(OPAQUE)),
        (MYSQL, b"SELECT $a, a$$, 1 AS a$b$", f!()),
        (MARIA, b"SELECT $tag$", f!()),
        // 0x83 0x5c is one character in sjis; 0xb1 is one by itself.
        (SJIS, b"SELECT '\x83\\'; CALL p() -- '", f!(CALL)),
        (MYSQL, b"SELECT '\x83\\'; CALL p() -- '", f!()),
        (SJIS, b"SELECT '\xb1\\'; CALL p() -- '", f!()),
        (SJIS, b"SELECT \x83`; CALL p()", f!(CALL)),
        (SJIS, b"SELECT @\x83`; CALL p()", f!(CALL | USER_VARIABLE)),
        (GBK, b"SELECT '\xb1\\'; CALL p() -- '", f!(CALL)),
        (GBK, b"SELECT '\\\xb1\\'; CALL p() -- '", f!()),
        (GBK, b"SELECT '\xb1'; CALL p()", f!(CALL | OPAQUE)),
        // 0xa0 is white space in latin1.
        (LATIN1, b"SELECT\xa0GET_LOCK('a',1)", f!(GET_LOCK | OPAQUE)),
        (LATIN1, b"SELECT 1 --\xa0'\n; CALL p() -- '", f!(OPAQUE)),
        (LATIN1, b"SELECT '\xa0', 'caf\xe9'", f!()),
        (MYSQL, b"SELECT '\xff\xfe\x80", f!()),
    ]
}

#[test]
fn every_text_does_what_the_table_says() {
    for (mode, text, flags) in table() {
        // Many texts read tables; this is about the others.
        let others = Flags::each(effects(text, mode).flags).filter(|flag| *flag != Flags::READS_TABLE);
        let found = others.fold(Flags::NONE, Flags::and);
        assert_eq!(found, flags, "{:?} as {mode:?}", String::from_utf8_lossy(text));
    }
}

#[test]
fn tables_that_are_read() {
    let table = [
        ("SELECT 1", false),
        ("SELECT 1 FROM DUAL WHERE 1", false),
        ("SELECT 'a' from t", true),
        ("SELECT 1 FROM `dual`", true),
        ("SELECT * FROM (SELECT 1) d", true),
        ("SELECT 'from', @from, a.from_", false),
        ("INSERT INTO t VALUES (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, (SELECT 1 FROM (SELECT 2) d))", true),
        ("SET @a = (SELECT MAX(n) FROM t)", true),
    ];
    for (text, reads) in table {
        assert_eq!(effects(text.as_bytes(), MYSQL).may(Flags::READS_TABLE), reads, "{text}");
    }
}

#[test]
fn how_a_text_is_cut_does_not_matter() {
    for (mode, text, _) in table() {
        let whole = effects(text, mode);
        for at in 0..=text.len() {
            let (front, back) = text.split_at(at);
            let mut lexer = Lexer::new(mode);
            lexer.feed(front);
            lexer.feed(back);
            assert_eq!(whole, lexer.finish(), "{:?} cut at {at}", String::from_utf8_lossy(text));
        }
        let mut lexer = Lexer::new(mode);
        text.iter().for_each(|byte| lexer.feed(std::slice::from_ref(byte)));
        assert_eq!(whole, lexer.finish(), "{:?} byte by byte", String::from_utf8_lossy(text));
    }
}

#[test]
fn first_word_and_count() {
    let table: &[(&str, Word, u16)] = &[
        ("", Word::None, 0),
        (" ; ;", Word::None, 0),
        ("-- only a comment", Word::None, 0),
        ("select 1", Word::Select, 1),
        ("select 1;", Word::Select, 1),
        ("select 1; -- x", Word::Select, 1),
        (" ((select 1))", Word::Select, 1),
        ("`select` 1", Word::Other, 1),
        ("frobnicate; select 1", Word::Other, 2),
        ("insert into t values (';'); update t set a=1; delete from t", Word::Insert, 3),
        ("SET STATEMENT a=1 FOR UPDATE t SET a=1", Word::Update, 1),
        ("SET STATEMENT a=(1) FOR SELECT 1; DO 1", Word::Select, 2),
    ];
    for (text, first, count) in table {
        let found = effects(text.as_bytes(), MARIA);
        assert_eq!((found.first, found.statements), (*first, *count), "{text}");
    }
}

#[test]
fn plain_forms() {
    let all = Window::ALL;
    let table = [
        ("SHOW WARNINGS", Some(Plain::ShowWarnings(all))),
        ("show /**/ warnings ; ", Some(Plain::ShowWarnings(all))),
        ("-- x\nSHOW ERRORS;", Some(Plain::ShowErrors(all))),
        ("SHOW COUNT(*) WARNINGS", Some(Plain::CountWarnings)),
        ("SHOW COUNT ( * ) ERRORS", Some(Plain::CountErrors)),
        ("SHOW WARNINGS LIMIT 1", Some(Plain::ShowWarnings(Window { skip: 0, take: 1 }))),
        ("SHOW WARNINGS LIMIT 2, 1", Some(Plain::ShowWarnings(Window { skip: 2, take: 1 }))),
        ("SHOW ERRORS LIMIT 1 OFFSET 2", Some(Plain::ShowErrors(Window { skip: 2, take: 1 }))),
        ("SHOW WARNINGS LIMIT @a", None),
        ("SHOW WARNINGS; SELECT 1", None),
        ("SHOW /*!50000 WARNINGS */", None),
        ("SHOW `WARNINGS`", None),
        ("SELECT ROW_COUNT()", None),
    ];
    for (text, expected) in table {
        assert_eq!(effects(text.as_bytes(), MYSQL).plain, expected, "{text}");
    }
}

/// Every question is worth 7 or, of the unsigned kinds, 8.
fn reworded(text: &str, mode: Mode) -> String {
    let answer = |question| match question {
        Question::RowCount | Question::FoundRows => Some(7),
        Question::ConnectionId | Question::WarningCount | Question::ErrorCount => Some(8),
        Question::UserVariable => None,
    };
    match reword(text.as_bytes(), mode, answer) {
        Reworded::AsIs => "as is".into(),
        Reworded::Unclear(question) => format!("unclear {}", question.text()),
        Reworded::Text(text) => {
            let text = String::from_utf8(text).unwrap();
            text.replace("IF(1,7,", "7(").replace("IF(1,CAST(8 AS UNSIGNED),", "8(")
        }
    }
}

#[test]
fn questions_are_answered_where_they_stand() {
    let table = [
        ("SELECT ROW_COUNT()", "SELECT 7(ROW_COUNT()) AS `ROW_COUNT()`"),
        ("select  Row_Count ( )  ;", "select  7(Row_Count ( )) AS `Row_Count ( )`  ;"),
        ("SELECT ROW_COUNT() n, FOUND_ROWS() AS 'm'", "SELECT 7(ROW_COUNT()) n, 7(FOUND_ROWS()) AS 'm'"),
        ("SELECT `ROW_COUNT`()", "SELECT 7(`ROW_COUNT`()) AS ```ROW_COUNT``()`"),
        ("SELECT 1+ROW_COUNT()+1", "SELECT 1+7(ROW_COUNT())+1 AS `1+ROW_COUNT()+1`"),
        ("SELECT ROW_COUNT() + 1 x", "SELECT 7(ROW_COUNT()) + 1 x"),
        ("SELECT DISTINCT ROW_COUNT() FROM t", "SELECT DISTINCT 7(ROW_COUNT()) AS `ROW_COUNT()` FROM t"),
        ("SELECT a FROM t WHERE b = ROW_COUNT()", "SELECT a FROM t WHERE b = 7(ROW_COUNT())"),
        ("(SELECT ROW_COUNT()) UNION SELECT 1", "(SELECT 7(ROW_COUNT()) AS `ROW_COUNT()`) UNION SELECT 1"),
        (
            "SELECT (SELECT ROW_COUNT()), 2",
            "SELECT (SELECT 7(ROW_COUNT()) AS `ROW_COUNT()`) AS `(SELECT ROW_COUNT())`, 2",
        ),
        ("SELECT CASE 1 WHEN 1 THEN ROW_COUNT() END c", "SELECT CASE 1 WHEN 1 THEN 7(ROW_COUNT()) END c"),
        (
            "SELECT CASE 1 WHEN 1 THEN ROW_COUNT() END",
            "SELECT CASE 1 WHEN 1 THEN 7(ROW_COUNT()) END AS `CASE 1 WHEN 1 THEN ROW_COUNT() END`",
        ),
        ("SELECT @@warning_count", "SELECT 8(@@warning_count) AS `@@warning_count`"),
        ("SELECT @@session.error_count e", "SELECT 8(@@session.error_count) e"),
        ("SELECT @@global.error_count", "as is"),
        ("SELECT CONNECTION_ID() id, @@version v", "SELECT 8(CONNECTION_ID()) id, @@version v"),
        ("INSERT INTO t VALUES (ROW_COUNT(), ?)", "INSERT INTO t VALUES (7(ROW_COUNT()), ?)"),
        ("SET @a = FOUND_ROWS(), b = 1", "SET @a = 7(FOUND_ROWS()), b = 1"),
        ("DO ROW_COUNT()", "DO 7(ROW_COUNT())"),
        ("SET @@session.error_count = 1, @@pseudo_thread_id := 2", "as is"),
        ("SET @a = @@error_count = 1, @@warning_count = 2", "SET @a = 8(@@error_count) = 1, @@warning_count = 2"),
        ("SET @a = GREATEST(1, @@error_count = 1)", "SET @a = GREATEST(1, 8(@@error_count) = 1)"),
        ("CALL p(ROW_COUNT())", "CALL p(7(ROW_COUNT()))"),
        // Of several statements only the first asks about what was before; the number is one's own in all.
        ("DO ROW_COUNT(); DO ROW_COUNT(), CONNECTION_ID()", "DO 7(ROW_COUNT()); DO ROW_COUNT(), 8(CONNECTION_ID())"),
        ("UPDATE t SET a=1; SELECT ROW_COUNT()", "as is"),
        // Only written down, or no question at all.
        ("CREATE VIEW v AS SELECT ROW_COUNT()", "as is"),
        ("CREATE PROCEDURE p() SELECT ROW_COUNT()", "as is"),
        ("CREATE PROCEDURE p() BEGIN DECLARE a INT; SET a = CONNECTION_ID(); END", "as is"),
        ("CREATE OR REPLACE DEFINER = u@h FUNCTION f() RETURNS INT BEGIN DO 1; RETURN CONNECTION_ID(); END", "as is"),
        ("CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW BEGIN DO 1; DO CONNECTION_ID(); END", "as is"),
        ("ALTER EVENT e DO BEGIN DO 1; DO CONNECTION_ID(); END", "as is"),
        ("CREATE TABLE event (n INT); DO CONNECTION_ID()", "CREATE TABLE event (n INT); DO 8(CONNECTION_ID())"),
        ("CREATE TABLE t (a INT DEFAULT (CONNECTION_ID()))", "as is"),
        ("CREATE TABLE t SELECT ROW_COUNT() n", "CREATE TABLE t SELECT 7(ROW_COUNT()) n"),
        ("EXPLAIN SELECT ROW_COUNT()", "as is"),
        ("SELECT db.ROW_COUNT(), row_count, 'ROW_COUNT()' -- ROW_COUNT()", "as is"),
        ("SELECT * FROM information_schema.processlist WHERE id = CONNECTION_ID()", "as is"),
        ("SELECT IS_USED_LOCK('a') = CONNECTION_ID()", "as is"),
        // What takes a parser to tell.
        ("SELECT ROW_COUNT() IS NULL", "unclear ROW_COUNT()"),
        ("SELECT NOW() + INTERVAL FOUND_ROWS() DAY", "unclear FOUND_ROWS()"),
        ("SELECT ROW_COUNT() /*!, 2 */", "unclear ROW_COUNT()"),
        ("BEGIN NOT ATOMIC SELECT ROW_COUNT(); END", "unclear ROW_COUNT()"),
    ];
    for (text, expected) in table {
        assert_eq!(reworded(text, MARIA), expected, "{text}");
    }
    assert_eq!(reworded("SELECT SQL%ROWCOUNT", MARIA), "unclear ROW_COUNT()");
    assert_eq!(reworded("VALUES (ROW_COUNT())", MARIA), "unclear ROW_COUNT()");
    let sjis = Mode { multibyte: Multibyte::Sjis, ..MYSQL };
    let text = b"SELECT CONCAT('\x83\x60', ROW_COUNT())";
    assert_eq!(reword(text, sjis, |_| Some(7)), Reworded::Unclear(Question::RowCount));
    assert_eq!(reword(b"SELECT ROW_COUNT()", MYSQL, |_| None), Reworded::AsIs);
}

#[test]
fn get_diagnostics_by_its_parts() {
    let shown = |text: &str| {
        let get = get_diagnostics(text.as_bytes(), MYSQL)?;
        let items = get.items.iter().map(|(name, item)| format!("{} {item:?}", String::from_utf8_lossy(name)));
        Some((get.condition, items.collect::<Vec<_>>().join(", ")))
    };
    let table = [
        ("GET DIAGNOSTICS @n = NUMBER, @`r` = row_count;", Some((None, "@n Number, @`r` RowCount"))),
        (
            "get current diagnostics condition 2 @a=MYSQL_ERRNO , @b.c = MESSAGE_TEXT,@d=RETURNED_SQLSTATE",
            Some((Some(2), "@a Errno, @b.c Message, @d State")),
        ),
        ("GET DIAGNOSTICS CONDITION @i @a = MYSQL_ERRNO", None),
        ("GET DIAGNOSTICS CONDITION 1 @a = TABLE_NAME", None),
        ("GET STACKED DIAGNOSTICS @a = NUMBER", None),
        ("GET DIAGNOSTICS @a = MYSQL_ERRNO", None),
        ("GET DIAGNOSTICS a = NUMBER", None),
        ("GET DIAGNOSTICS @'a b' = NUMBER", None),
        ("GET DIAGNOSTICS @a /* c */ = NUMBER", None),
        ("GET DIAGNOSTICS @a = NUMBER; SELECT 1", None),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected.map(|(n, items)| (n, items.to_owned())), "{text}");
    }
}

#[test]
fn locks_by_name() {
    let locking = |text: &str| effects(text.as_bytes(), MYSQL).locking;
    let Some(Locking::Get(name)) = locking("SELECT GET_LOCK('my lock', 10)") else { panic!("no lock") };
    for same in [
        "select get_lock(\"my lock\",0)",
        "DO GET_LOCK( 'my lock' , -1 );",
        "SELECT GET_LOCK('my lock', 0.5) AS l",
        "SELECT GET_LOCK('my lock', 1) l",
        "SELECT GET_LOCK('my lock', 1) AS 'l'",
    ] {
        assert_eq!(locking(same), Some(Locking::Get(name)), "{same}");
    }
    assert_eq!(locking("SELECT RELEASE_LOCK('my lock')"), Some(Locking::Release(name)));
    assert_ne!(locking("SELECT RELEASE_LOCK('My lock')"), Some(Locking::Release(name)));
    assert_eq!(locking("DO RELEASE_ALL_LOCKS()"), Some(Locking::ReleaseAll));
    for unsure in [
        "SELECT GET_LOCK('my' ' lock', 1)",
        "SELECT GET_LOCK('my''lock', 1)",
        "SELECT GET_LOCK(@a, 1)",
        "SELECT GET_LOCK('a', 1), 1",
        "SELECT GET_LOCK('a', 1) FROM t",
        "SELECT GET_LOCK('a', 1) LIMIT 0",
        "SELECT GET_LOCK('a', 1) + GET_LOCK('b', 1)",
        "SELECT GET_LOCK('a', 1); SELECT 1",
        "SELECT 1, RELEASE_ALL_LOCKS()",
        "SELECT IF(0, RELEASE_ALL_LOCKS(), 1)",
        "SELECT RELEASE_ALL_LOCKS() WHERE 0",
        "SELECT /*!99999 RELEASE_ALL_LOCKS() */",
    ] {
        assert_eq!(locking(unsure), None, "{unsure}");
    }
}

#[test]
fn kills() {
    let kill = |query_only, id| Some(Kill { query_only, soft: false, id });
    let table: &[(&str, Option<Kill>)] = &[
        ("KILL 5", kill(false, Some(5))),
        ("kill connection 18446744073709551615;", kill(false, Some(u64::MAX))),
        ("KILL QUERY 7", kill(true, Some(7))),
        ("KILL HARD QUERY 7", kill(true, Some(7))),
        ("KILL SOFT CONNECTION 7", Some(Kill { query_only: false, soft: true, id: Some(7) })),
        ("KILL 18446744073709551616", kill(false, None)),
        ("KILL 5 + 1", kill(false, None)),
        ("KILL QUERY ID 7", kill(true, None)),
        ("KILL USER 'u'", kill(false, None)),
        ("KILL CONNECTION_ID()", kill(false, None)),
        ("KILL 1.5", kill(false, None)),
        ("KILL 0x10", kill(false, None)),
        ("SELECT 1; KILL 5", None),
        ("KILL 5; KILL 6", None),
        ("SELECT 5", None),
    ];
    for (text, expected) in table {
        assert_eq!(effects(text.as_bytes(), MYSQL).kill, *expected, "{text}");
    }
}

#[test]
fn names_of_what_is_made_and_dropped() {
    let name = |text: &str| effects(text.as_bytes(), MYSQL).name;
    let t = name("PREPARE t FROM 'x'");
    assert!(t.is_some());
    for same in [
        "PREPARE `t` FROM @a",
        "DEALLOCATE PREPARE t",
        "DROP PREPARE `t`;",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE OR REPLACE TEMPORARY TABLE `t`(a INT)",
        "CREATE TEMPORARY TABLE IF NOT EXISTS t LIKE u",
        "CREATE OR REPLACE TEMPORARY TABLE IF NOT EXISTS t SELECT 1",
        "DROP TABLE t",
        "DROP TABLE IF EXISTS t",
        "DROP TEMPORARY TABLE t",
        "DROP TEMPORARY TABLE IF EXISTS `t`",
    ] {
        assert_eq!(name(same), t, "{same}");
    }
    assert_ne!(name("DROP TABLE T"), t);
    for unsure in [
        "PREPARE `t``u` FROM 'x'",
        "DEALLOCATE PREPARE `t``u`",
        "CREATE TEMPORARY TABLE d.t (a INT)",
        "CREATE TEMPORARY TABLE `t``u` (a INT)",
        "DROP TABLE d.t",
        "DROP TABLE t, u",
        "DROP TABLE `t``u`",
        "DROP TABLE t; SELECT 1",
        "DROP /*!40000 TEMPORARY */ TABLE t",
        "CREATE TABLE t (a INT)",
    ] {
        assert_eq!(name(unsure), None, "{unsure}");
    }
}

#[test]
fn variables_that_mariadb_does_not_report() {
    let names = |text: &str, mode| {
        let found = effects(text.as_bytes(), mode).unreported;
        if found.overflowed() { "overflow".to_owned() } else { found.iter().collect::<Vec<_>>().join(" ") }
    };
    let long = format!("SET @@{}=1", "a".repeat(80));
    let many = format!("SET {}@@z=1", "@@abcdefghijklmnopqrstuvwxyz=1, ".repeat(4));
    let table = [
        ("SET @@sql_mode='', @@Time_Zone = 1, a=1, @@session.b=1, @@global.c=1", "sql_mode time_zone"),
        ("SET SESSION a=1, @@b=2", "b"),
        ("SET @@`a`=1; SET @@b=1", "a b"),
        ("SET @@`a-b`=1", "overflow"),
        ("SET @@tx_isolation='SERIALIZABLE'", ""),
        ("SELECT @@a", ""),
        (&long, "overflow"),
        (&many, "overflow"),
    ];
    for (text, expected) in table {
        assert_eq!(names(text, MARIA), expected, "{text}");
        assert_eq!(names(text, MYSQL), "", "{text}");
    }
}

/// Past the first few tokens of a long statement there is a short cut.
#[test]
fn the_end_of_a_long_statement_counts_too() {
    let table = [
        ("@@session.warning_count", f!(READS_WARNINGS)),
        ("@@warning_count", f!(READS_WARNINGS)),
        ("GET_LOCK ('a', 1)", f!(GET_LOCK)),
        ("LAST_INSERT_ID(5)", f!(READS_LAST_INSERT_ID | SETS_LAST_INSERT_ID)),
        ("LAST_INSERT_ID()", f!(READS_LAST_INSERT_ID)),
        ("db.GET_LOCK('a', 1)", f!(CALLS_FUNCTION)),
        ("1.INTO @a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        (".5INTO @a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("'x' INTO @a", f!(USER_VARIABLE | WRITES_USER_VARIABLE)),
        ("@a := 5", f!(USER_VARIABLE | WRITES_USER_VARIABLE | CREATES_USER_VARIABLE)),
        ("(SELECT 1), s.currval", f!(READS_SEQUENCE)),
        ("5; SAVEPOINT s", f!(SAVEPOINT)),
        ("SQL%ROWCOUNT", f!(READS_ROW_COUNT)),
    ];
    let front = format!("SELECT {}", "1, 'x', ".repeat(20));
    for (end, flags) in table {
        assert_eq!(effects(format!("{front}{end}").as_bytes(), MARIA).flags, flags, "{end}");
        assert_eq!(effects(format!("SELECT 1; {front}{end}").as_bytes(), MARIA).flags, flags, "{end}");
    }
    let sets = format!("SET {}@@tail=1, timestamp=0", "a=1, ".repeat(20));
    let found = effects(sets.as_bytes(), MARIA);
    assert_eq!(found.flags, f!(SET_VARIABLE | FREE_TIMESTAMP));
    assert!(found.unreported.iter().eq(["tail"]));
}

#[test]
fn megabytes_of_values_take_no_time_to_speak_of() {
    let mut text = b"INSERT INTO t VALUES ('".to_vec();
    text.resize(32 << 20, b'x');
    text.extend_from_slice(b"'); CALL p()");
    assert_eq!(effects(&text, MYSQL).flags, Flags::CALL);
}

/// Pieces of SQL that are likely to interfere with each other.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "'", "\"", "`", "\\", "/*", "*/", "/*!", "/*!50000", "/*M!", "/*+", "--", "-- ", "#", "\n", ";", "@", "@@", ":=", ":", ".",
            "(", ")", ",", "=", "SET ", "GLOBAL ", "GET_LOCK", "INTO ", "SELECT ", "CALL ", "FOR ", "STATEMENT ", "timestamp", "0",
            "12", "sql_mode", "NAMES ", "KILL ", "PREPARE ", "TEMPORARY ", "TABLE ", "CREATE ", "DROP ", " ", "-", "*", "/", "é",
            "f", "WITH ", "AS ", "INSERT ", "VALUES ",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(text in pieces(), settings in any::<u8>(), cut in any::<u8>()) {
        let mut data = vec![settings, cut % 9];
        data.extend_from_slice(&text);
        fuzz(&data);
    }

    #[test]
    fn code_after_a_string_is_seen(string in "[a-zA-Z0-9 @;:#*/.,()=é-]{0,40}") {
        for quoted in [format!("'{string}'"), format!("\"{string}\""), format!("`{string}`")] {
            let text = format!("SELECT {quoted}, GET_LOCK('a', 1)");
            prop_assert_eq!(effects(text.as_bytes(), MYSQL).flags, Flags::GET_LOCK);
        }
    }
}
