//! What a text calls by name, and whether the body of a routine leaves anything that nobody would report.
//!
//! Only for the few texts that call something: it allocates. A body is judged by its words, wherever they stand, for its
//! statements begin anywhere (`IF a THEN SET @b = 1`): a needless suspicion costs a connection.

use super::rules::{Kind, Rules, Token};
use super::{Effects, Flags, Lexer, Mentions, Mode, Word};

/// A stored routine, as a text names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// As spelled, if it is named.
    pub schema: Option<Box<str>>,
    /// In lower case.
    pub name: Box<str>,
    /// A procedure, not a function.
    pub procedure: bool,
}

/// What was found in a text or body.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// What it calls; `None`: something whose name cannot be known.
    pub calls: Option<Vec<Routine>>,
    /// It leaves nothing in its session that the server would not report (what it calls apart), but perhaps user variables.
    pub reported: bool,
    /// The user variables that it names, each of which it may write.
    pub variables: Mentions,
}

/// Collects while the text is lexed.
#[derive(Debug)]
pub(super) struct Collector {
    code: Code,
    /// The names with dots between them that were read last.
    chain: Vec<Vec<u8>>,
    /// A `CALL` was read, its procedure's name follows.
    calling: bool,
}

/// Reads a text for what it calls, or the body of a routine.
#[must_use]
pub fn code(text: &[u8], mode: Mode) -> Code {
    let mut lexer = Lexer::new(mode);
    lexer.rules.collector = Some(Box::new(Collector::new()));
    lexer.feed(text);
    lexer.end();
    lexer.rules.finish_code()
}

/// Flags of what no tracker reports, wherever in a statement it stands.
const UNREPORTED: Flags = Flags::GET_LOCK
    .and(Flags::READS_SEQUENCE)
    .and(Flags::CALC_FOUND_ROWS)
    .and(Flags::SET_TRACKER)
    .and(Flags::SET_MINOR_TRACKER)
    .and(Flags::SET_ONE_SHOT)
    .and(Flags::SET_WRITE_ONLY)
    .and(Flags::OPAQUE);

impl Collector {
    pub(super) fn new() -> Self {
        Self {
            code: Code { calls: Some(Vec::new()), reported: true, variables: Mentions::default() },
            chain: Vec::new(),
            calling: false,
        }
    }

    fn finish(mut self, found: &Effects) -> Code {
        self.end_call();
        self.code.variables = found.mentions;
        self.code.reported &= !found.flags.any(UNREPORTED) && !found.mentions.overflowed();
        self.code
    }

    /// A token, and the word before it.
    pub(super) fn note(&mut self, token: &Token<'_>, after_dot: bool, previous: Word) {
        let is_name = matches!(token.kind, Kind::Word | Kind::Name);
        if self.calling && !self.chain.is_empty() && !after_dot && token.kind != Kind::Punct(b'.') {
            self.end_call();
        }
        if is_name {
            if !after_dot {
                self.chain.clear();
            }
            self.chain.push(token.text.to_vec());
        }
        match token.kind {
            Kind::SystemVariable => self.code.reported = false,
            Kind::Word if !after_dot => {
                if token.word == Word::Call {
                    self.calling = true;
                    self.chain.clear();
                }
                self.code.reported &= !is_suspicious(token, previous);
            }
            _ => {}
        }
    }

    /// The names read last are a function's.
    pub(super) fn calls_function(&mut self) {
        self.add(false);
    }

    pub(super) fn end_call(&mut self) {
        if std::mem::take(&mut self.calling) {
            self.add(true);
        }
    }

    fn add(&mut self, procedure: bool) {
        let plain = |name: &Vec<u8>| {
            let plain =
                !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'-'));
            plain.then(|| String::from_utf8_lossy(name).into_owned())
        };
        let routine = |schema: Option<String>, name: String| Routine {
            schema: schema.map(String::into_boxed_str),
            name: name.to_ascii_lowercase().into(),
            procedure,
        };
        let routine = match self.chain.as_slice() {
            [name] => plain(name).map(|name| routine(None, name)),
            [schema, name] => plain(schema).and_then(|schema| Some(routine(Some(schema), plain(name)?))),
            _ => None,
        };
        match (routine, &mut self.code.calls) {
            (Some(routine), Some(calls)) if !calls.contains(&routine) => calls.push(routine),
            (Some(_), _) => {}
            (None, calls) => *calls = None,
        }
    }
}

/// Words of statements that leave what is not reported.
fn is_suspicious(token: &Token<'_>, previous: Word) -> bool {
    match token.word {
        Word::Authorization
        | Word::Backup
        | Word::Binlog
        | Word::Deallocate
        | Word::Execute
        | Word::Flush
        | Word::Lock
        | Word::Prepare
        | Word::Resource
        | Word::Role
        | Word::Savepoint
        // MariaDB takes it back with the routine, but not what its status says of quotes.
        | Word::SqlMode
        | Word::Statement
        | Word::Temporary
        | Word::Xa => true,
        Word::Handler => !matches!(previous, Word::Continue | Word::Exit),
        _ => false,
    }
}

impl Rules {
    /// The text is over: what was called in it.
    pub(super) fn finish_code(mut self) -> Code {
        self.end_statement();
        let (collector, found) = (self.collector.take(), self.found);
        let nothing = Code { calls: None, reported: false, variables: Mentions::default() };
        collector.map_or(nothing, |collector| collector.finish(&found))
    }

    pub(super) fn collect_token(&mut self, token: &Token<'_>, after_dot: bool) {
        let previous = if self.statement.previous == Kind::Word { self.statement.previous_word } else { Word::None };
        if let Some(collector) = &mut self.collector {
            collector.note(token, after_dot, previous);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tests::MARIA;

    fn calls(text: &str) -> String {
        let shown = |routine: &Routine| {
            let schema = routine.schema.as_ref().map_or(String::new(), |schema| format!("{schema}."));
            format!("{}{schema}{}", if routine.procedure { "CALL " } else { "" }, routine.name)
        };
        let calls = code(text.as_bytes(), MARIA).calls;
        calls.map_or("?".into(), |calls| calls.iter().map(shown).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn what_is_called_by_name() {
        for (text, wanted) in [
            ("SELECT 1, ABS(2), COUNT(*) FROM t WHERE a IN (1)", ""),
            ("SELECT F(1), f(2), db.G(3), `Db`.`h` (4)", "f, db.g, Db.h"),
            ("SELECT f(g(1)) FROM t JOIN u ON h(t.a)", "f, g, h"),
            ("CALL p", "CALL p"),
            ("CALL P()", "CALL p"),
            ("call db.p(f(1), 2)", "CALL db.p, f"),
            ("CALL `p` /* x */ (1);", "CALL p"),
            ("CALL db . p", "CALL db.p"),
            ("IF a THEN CALL p(); ELSE CALL q; END IF", "CALL p, CALL q"),
            ("BEGIN CALL p END", "CALL p"),
            ("SELECT `a b`(1)", "?"),
            ("SELECT a.b.c(1)", "?"),
            ("SELECT é(1)", "?"),
            ("CALL `a.b`()", "?"),
        ] {
            assert_eq!(calls(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_a_body_leaves() {
        for reported in [
            "SELECT 1",
            "RETURN n + 1",
            "BEGIN DECLARE x INT DEFAULT 0; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; \
             START TRANSACTION; INSERT INTO t (a) VALUES (1); SET x = LAST_INSERT_ID(); UPDATE t SET a = x; COMMIT; END",
            "BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; l: LOOP FETCH c INTO a; LEAVE l; END LOOP; END",
            "BEGIN SET time_zone = '+01:00'; SET NAMES utf8mb4; END",
            "SELECT 'SET @a = 1', \"PREPARE\" -- CALL p()",
            "BEGIN SELECT a INTO x FROM t; SELECT t.role FROM t; END",
        ] {
            assert!(code(reported.as_bytes(), MARIA).reported, "{reported}");
        }
        for left in [
            "SET @`\u{e9}` = 1",
            "IF GET_LOCK('a', 1) THEN SELECT 1; END IF",
            "BEGIN PREPARE s FROM 'x'; EXECUTE s; END",
            "IF 1 THEN EXECUTE IMMEDIATE 'SET @a = 1'; END IF",
            "IF 1 THEN CREATE TEMPORARY TABLE t (n INT); END IF",
            "BEGIN HANDLER t OPEN; END",
            "IF 1 THEN HANDLER t OPEN; END IF",
            "FLUSH TABLES t WITH READ LOCK",
            "SET @@time_zone = '+01:00'",
            "SET sql_mode = 'ANSI'",
            "SET ROLE r",
            "SET insert_id = 5",
            "SET rand_seed1 = 5",
            "SET session_track_schema = 0",
            "SAVEPOINT a",
            "XA START 'x'",
            "SELECT NEXTVAL(s)",
            "SELECT PREVIOUS VALUE FOR s",
            "SELECT 1 /*!99999 ' */, 2 -- '",
            "SET STATEMENT a = 1 FOR SELECT 1",
        ] {
            assert!(!code(left.as_bytes(), MARIA).reported, "{left}");
        }
    }

    #[test]
    fn the_user_variables_of_a_body() {
        for (text, wanted) in [
            ("SELECT 1", ""),
            ("SET @A = 1", "a"),
            (
                "BEGIN IF @x IS NULL THEN SET @a = 1; END IF; SELECT n INTO @b FROM t; FETCH c INTO x, @c; END",
                "x a b c",
            ),
            ("BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND SET @done = 1; SELECT @n := n FROM t; END", "done n"),
            ("CALL p(@out)", "out"),
            ("/*!50000 SET @a = 1 */", "a"),
        ] {
            let code = code(text.as_bytes(), MARIA);
            let names: Vec<_> = code.variables.iter().map(|mention| mention.name).collect();
            assert_eq!((names.join(" ").as_str(), code.reported), (wanted, true), "{text}");
        }
    }
}
