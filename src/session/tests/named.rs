//! Statements that have a name: what executing them does, and when they pin.

use super::*;
use crate::sql::{Flags, Naming, Word};

impl Stage {
    /// What a text does, of which the session has been told what it does to a name.
    pub(super) fn spoken(&mut self, text: &str) -> Effects {
        let (mode, effects) = (self.session.mode(), self.effects(text));
        let named = match sql::naming(text.as_bytes(), mode) {
            None => return effects,
            Some(Naming::Prepare { name, bare, literal, read }) => {
                let named = literal.map(|literal| {
                    let inner = sql::effects(&literal.value, mode);
                    let text = Texts::default().intern(text.as_bytes(), mode, inner);
                    let state = meaning(&self.interner, self.session.state());
                    Arc::new(Named { name: name.clone(), text, state })
                });
                self.session.expect_deed(Deed::Prepare { name, bare, named, read });
                return effects;
            }
            Some(Naming::Deallocate(name)) => {
                self.session.expect_deed(Deed::Deallocate(name));
                return effects;
            }
            Some(Naming::Immediate(literal)) => return sql::effects(&literal.value, mode).executed(&effects),
            Some(Naming::Execute(name)) => self.session.named(&name),
        };
        match named {
            Known::Statement(named) => self.session.effects_of_named(&named, &effects),
            Known::Nothing => effects.of_no_statement(),
            Known::Unseen => effects,
        }
    }

    fn names(&self) -> Vec<&str> {
        self.session.all_named().map(|named| &*named.name).collect()
    }
}

#[test]
fn a_name_pins_nothing_and_its_statement_does_what_its_text_does() {
    for mut stage in Stage::both() {
        stage.query("PREPARE P FROM 'SELECT GET_LOCK(''a'', 1)'", &[ok().state()]).pinned(&[]);
        stage.query("PREPARE q FROM 'SELECT 1'", &[ok().state()]).pinned(&[]);
        assert_eq!(stage.names(), ["p", "q"]);
        stage.query("EXECUTE q", &[rows(1)]).pinned(&[]);
        stage.query("EXECUTE p", &[rows(1)]).pinned(&["user_lock"]);
        stage.query("DO RELEASE_LOCK('a')", &[ok()]).pinned(&[]);
        stage.query("EXECUTE nobody", &[err(1243)]).pinned(&[]);
        stage.query("DEALLOCATE PREPARE `P`", &[ok().state()]).query("DROP PREPARE q", &[ok().state()]).pinned(&[]);
        assert!(stage.session.rare.is_none());
    }
}

#[test]
fn a_preparation_that_the_server_cannot_read_leaves_the_name_to_whatever_it_is() {
    for mut stage in Stage::both() {
        stage.query("PREPARE p FROM 'SELECT 1'", &[ok().state()]).pinned(&[]);
        stage.query("PREPARE q FROM 5", &[err(1064)]).pinned(&[]);
        stage.query("PREPARE p FROM 'SELECT", &[err(1064)]).pinned(&["text_prepare"]);
        assert!(stage.names().is_empty() && matches!(stage.session.named("p"), Known::Unseen));
        stage.query("DEALLOCATE PREPARE p", &[ok().state()]).pinned(&[]);
        stage.query("PREPARE p FROM 'SELECT 1'", &[ok().state()]);
        stage.query("PREPARE p FROM @a", &[err(1064)]).pinned(&[]);
        assert!(stage.names().is_empty());
    }
}

#[test]
fn what_it_reads_and_writes_is_known() {
    for mut stage in Stage::both() {
        stage.query("PREPARE p FROM 'SELECT a INTO @x FROM t WHERE b = ?'", &[ok()]);
        let effects = stage.spoken("EXECUTE p USING @y");
        let mentions: Vec<_> = effects.mentions.iter().map(|it| (it.name, it.is_read)).collect();
        assert_eq!(mentions, [("x", false), ("y", true)]);
        assert!(effects.may(Flags::WRITES_USER_VARIABLE) && !effects.may(Flags::RUNS_UNSEEN));
        assert_eq!((effects.first, effects.is_certain()), (Word::Select, true));
        stage.query("EXECUTE p USING @y", &[ok()]);
        assert!(stage.session.held().user_variables.is_some_and(|all| all.has("x")));
    }
}

#[test]
fn what_cannot_be_carried_pins_until_it_is_gone() {
    for (text, mysql, maria) in [
        ("@text", true, true),
        ("'SELECT ROW_COUNT()'", true, true),
        ("'SELECT @a'", true, false),
        ("'SET @a = 1'", false, false),
        ("'SELECT 1'", false, false),
        ("'SELECT 1' COLLATE utf8mb4_bin", true, true),
    ] {
        for mut stage in Stage::both() {
            let pins = if stage.session.options().mariadb { maria } else { mysql };
            let pinned: &[&str] = if pins { &["text_prepare"] } else { &[] };
            stage.query(&format!("PREPARE p FROM {text}"), &[ok()]).pinned(pinned);
            stage.query("PREPARE q FROM 'SELECT 1'", &[ok()]).pinned(pinned);
            stage.query("DEALLOCATE PREPARE nobody", &[err(1243)]).pinned(pinned);
            stage.query("DEALLOCATE PREPARE p", &[ok()]).pinned(&[]);
        }
    }
    for mut stage in Stage::both() {
        stage.query("PREPARE p FROM @text", &[ok()]).query("EXECUTE p", &[ok()]).pinned(&["text_prepare", "call"]);
    }
}

#[test]
fn a_preparation_that_fails_takes_the_name_away() {
    for mut stage in Stage::both() {
        stage.query("PREPARE p FROM 'SELECT 1'", &[ok()]).query("PREPARE p FROM 'SELEKT'", &[err(1064)]);
        assert!(matches!(stage.session.named("p"), Known::Nothing));
        // Nobody could read this name; but of another one that was spelled with quotes, it is gone.
        stage.query("PREPARE `select` FROM 'SELECT 1'", &[ok()]);
        stage.query("PREPARE select FROM 'SELECT 2'", &[err(1064)]).pinned(&["text_prepare"]);
        assert!(matches!(stage.session.named("select"), Known::Unseen));
        stage.query("PREPARE `select` FROM 'SELEKT'", &[err(1064)]).pinned(&[]);
        assert!(matches!(stage.session.named("select"), Known::Nothing));
    }
}

#[test]
fn what_is_not_understood_makes_all_names_unsure() {
    for text in [
        "PREPARE \u{e9} FROM 'SELECT 1'",
        "DEALLOCATE PREPARE \u{e9}",
        "PREPARE q FROM 'SELECT 1'; SELECT 1",
        "/*!50000 DEALLOCATE PREPARE p */",
    ] {
        for mut stage in Stage::both() {
            stage.query("PREPARE p FROM 'SELECT 1'", &[ok()]).query(text, &[ok()]).pinned(&["text_prepare"]);
            assert!(matches!(stage.session.named("p"), Known::Unseen) && stage.names().is_empty(), "{text}");
            stage.query("DEALLOCATE PREPARE p", &[ok()]).pinned(&["text_prepare"]);
        }
    }
    for mut stage in Stage::both() {
        stage.query("DEALLOCATE PREPARE \u{e9}", &[err(1243)]).query("DEALLOCATE PREPARE \u{e9}", &[ok()]).pinned(&[]);
        stage.query("PREPARE p FROM 'SELECT 1'", &[ok()]).query("CALL p()", &[ok()]).pinned(&["call"]);
        assert!(matches!(stage.session.named("p"), Known::Unseen), "the procedure may have used the name");
    }
}

#[test]
fn names_and_texts_are_bounded() {
    for mut stage in Stage::both() {
        for n in 0..256 {
            stage.query(&format!("PREPARE p{n} FROM 'SELECT 1'"), &[ok()]);
        }
        stage.pinned(&[]);
        stage.query("PREPARE more FROM 'SELECT 1'", &[ok()]).pinned(&["text_prepare"]);
        assert!(stage.names().is_empty());
        let mut stage = Stage::new(stage.session.options());
        assert!(stage.session.may_name(1 << 20));
        stage.query("PREPARE p FROM 'SELECT 1'", &[ok()]);
        assert!(!stage.session.may_name(1 << 20) && stage.session.may_name(1 << 10));
    }
}
