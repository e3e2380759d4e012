//! Plans, applied to a model of a server.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::session::user_value::UserValue;
use crate::session::user_variables::assignments;

/// A server's session, as far as restores touch it. It reads only what a restore may be made of.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    schema: Option<Vec<u8>>,
    variables: BTreeMap<String, Option<Vec<u8>>>,
    last_insert_id: u64,
    multi_statements: bool,
    warned: bool,
    /// User variables: what they were set to, and whether they were made NULL then.
    user_variables: BTreeMap<String, (String, bool)>,
}

/// What no variable shows.
const RESULTS_COLLATION: &str = "(the collation of results)";

/// The collation that a character set brings along.
fn default_collation(charset: &[u8]) -> Vec<u8> {
    [charset, b"_general_ci"].concat()
}

impl Model {
    fn of(held: &BackendState) -> Self {
        let charset = held.state.charset();
        let mut variables: BTreeMap<_, _> = held
            .state
            .spec()
            .variables
            .iter()
            .map(|(name, value)| (name.to_string(), Some(value.0.to_vec())))
            .collect();
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        variables.insert("character_set_client".into(), bytes(&charset.client));
        variables.insert("character_set_connection".into(), bytes(&charset.connection));
        variables.insert("character_set_results".into(), charset.results.as_deref().and_then(bytes));
        variables.insert("collation_connection".into(), bytes(&charset.collation));
        let results = charset.results.as_ref().map(|results| default_collation(results.as_bytes()));
        let results = charset.results_collation.as_deref().and_then(bytes).or(results);
        variables.insert(RESULTS_COLLATION.into(), results);
        Self {
            schema: held.state.schema().map(<[u8]>::to_vec),
            variables,
            last_insert_id: held.last_insert_id,
            multi_statements: held.multi_statements,
            warned: held.warned,
            user_variables: held.user_variables.iter().flat_map(|all| all.assigned()).collect(),
        }
    }

    fn run(&mut self, command: &[u8]) {
        let (code, rest) = command.split_first().expect("a command");
        match code {
            0x02 => {
                let client = self.variables["character_set_client"].as_deref();
                assert!(rest.is_ascii() || client == Some(b"utf8mb4"), "the name would be misread");
                self.schema = Some(rest.to_vec());
            }
            0x1b => self.multi_statements = rest == [0, 0],
            0x03 => self.query(std::str::from_utf8(rest).expect("ASCII")),
            _ => panic!("command {code}"),
        }
    }

    fn query(&mut self, text: &str) {
        assert!(text.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'\\' && b != b'"'), "{text}");
        assert_eq!(sql::effects(text.as_bytes(), Mode::default()).statements, 1, "{text}");
        let Some(mut rest) = text.strip_prefix("SET ") else {
            assert!(text.starts_with("DO "));
            self.warned = false;
            return;
        };
        while !rest.is_empty() {
            rest = self.assignment(rest);
            rest = rest.strip_prefix(", ").unwrap_or(rest);
        }
    }

    fn assignment<'t>(&mut self, text: &'t str) -> &'t str {
        if let Some(rest) = text.strip_prefix("NAMES utf8mb4") {
            self.names(b"utf8mb4", default_collation(b"utf8mb4"));
            return rest;
        }
        if let Some(rest) = text.strip_prefix("NAMES ") {
            let (charset, rest) = value(rest);
            let charset = charset.expect("a name");
            let Some(rest) = rest.strip_prefix(" COLLATE ") else {
                self.names(&charset, default_collation(&charset));
                return rest;
            };
            let (collation, rest) = value(rest);
            self.names(&charset, collation.expect("a name"));
            return rest;
        }
        if let Some(rest) = text.strip_prefix("@`") {
            let (name, rest) = rest.split_once("`=").expect("an assignment");
            let end = rest.find(", ").unwrap_or(rest.len());
            let (value, rest) = rest.split_at(end);
            if value == "NULL" {
                self.user_variables.get_mut(name).expect("a type").1 = true;
            } else {
                self.user_variables.insert(name.into(), (value.into(), false));
            }
            self.user_variables.retain(|_, value| *value != ("_binary ''".into(), true));
            return rest;
        }
        let rest = text.strip_prefix("@@session.").expect("a session variable");
        let (name, rest) = rest.split_once('=').expect("an assignment");
        let name = name.replace('`', "");
        let (value, rest) = if let Some(rest) = rest.strip_prefix("DEFAULT") { (None, rest) } else { value(rest) };
        match (name.as_str(), value) {
            ("last_insert_id", Some(id)) => self.last_insert_id = String::from_utf8_lossy(&id).parse().expect("an id"),
            ("character_set_connection", Some(charset)) => {
                self.variables.insert("collation_connection".into(), Some(default_collation(&charset)));
                self.variables.insert(name, Some(charset));
            }
            ("collation_connection", Some(collation)) => {
                let charset = collation.split(|b| *b == b'_').next().expect("a prefix").to_vec();
                self.variables.insert("character_set_connection".into(), Some(charset));
                self.variables.insert(name, Some(collation));
            }
            ("character_set_results", value) => {
                self.variables.insert(RESULTS_COLLATION.into(), value.as_deref().map(default_collation));
                self.variables.insert(name, value);
            }
            (_, None) => drop(self.variables.remove(&name)),
            (_, value) => drop(self.variables.insert(name, value)),
        }
        rest
    }

    fn names(&mut self, charset: &[u8], collation: Vec<u8>) {
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.variables.insert(name.into(), Some(charset.to_vec()));
        }
        self.variables.insert("collation_connection".into(), Some(collation.clone()));
        self.variables.insert(RESULTS_COLLATION.into(), Some(collation));
    }
}

/// One literal, and what follows it.
fn value(text: &str) -> (Option<Vec<u8>>, &str) {
    if let Some(rest) = text.strip_prefix("NULL") {
        return (None, rest);
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let (value, rest) = rest.split_once('\'').expect("a closing quote");
        assert!(!rest.starts_with('\''), "a doubled quote");
        return (Some(value.as_bytes().to_vec()), rest);
    }
    let end = text.find(", ").unwrap_or(text.len());
    let (literal, rest) = text.split_at(end);
    let value = match literal.strip_prefix("_utf8mb4 0x") {
        Some(hex) => {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
        }
        None => {
            assert!(literal.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'-'), "{literal}");
            literal.as_bytes().to_vec()
        }
    };
    (Some(value), rest)
}

fn charsets() -> impl Strategy<Value = Charset> {
    let name = || prop::sample::select(vec!["utf8mb4", "latin1", "gbk"]);
    let tail = prop::sample::select(vec!["general_ci", "bin"]);
    let told = prop::option::of(prop::sample::select(vec!["general_ci", "bin"]));
    (name(), name(), prop::option::of(name()), tail, told, any::<bool>()).prop_map(
        |(client, connection, results, tail, told, same)| {
            let connection = if same { client } else { connection };
            let results = if same { Some(client) } else { results };
            Charset {
                client: client.into(),
                connection: connection.into(),
                results: results.map(Into::into),
                collation: format!("{connection}_{tail}").into(),
                results_collation: results.zip(told).map(|(results, tail)| format!("{results}_{tail}").into()),
            }
        },
    )
}

fn specs() -> impl Strategy<Value = StateSpec> {
    let schema = prop::option::of(prop::sample::select(vec!["test", "sé", "a`b", "x'; DROP TABLE t"]));
    let value = prop_oneof![
        prop::sample::select(vec![
            "",
            "0",
            "-1.5",
            "1.5.2",
            "+02:00",
            "ON",
            "a'b",
            "a\"b",
            "a\\",
            "é",
            "\n",
            "ANSI,STRICT"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let name = prop::sample::select(vec!["a", "b", "sql_mode", "time_zone", "plug.name"]);
    (schema, charsets(), prop::collection::btree_map(name, value, 0..4)).prop_map(|(schema, charset, variables)| {
        StateSpec {
            schema: schema.map(|name| name.as_bytes().into()),
            charset,
            variables: variables.into_iter().map(|(name, value)| (name.into(), Value(value.into()))).collect(),
        }
    })
}

type Held = (StateSpec, u64, bool, bool, Vec<(&'static str, usize)>);

fn held() -> impl Strategy<Value = Held> {
    let user_variable = (prop::sample::select(vec!["a", "b", "c d"]), 0..VALUES.len());
    (specs(), 0..3_u64, any::<bool>(), any::<bool>(), prop::collection::vec(user_variable, 0..3))
}

/// User variables as servers tell them: kind, collation, value.
const VALUES: [(&str, &str, Option<&[u8]>); 6] = [
    ("signed", "binary", Some(b"5")),
    ("signed", "binary", None),
    ("double", "binary", Some(b"-0")),
    ("text", "binary", Some(b"x")),
    ("text", "utf8mb4_bin", None),
    ("text", "utf8mb4_bin", Some("'\\\u{e9}, ".as_bytes())),
];

fn user_variables(all: &[(&str, usize)]) -> Option<Arc<UserVariables>> {
    let mut variables = UserVariables::default();
    for (name, value) in all {
        let (kind, collation, value) = VALUES[*value];
        variables.learn(name, UserValue::of(kind.as_bytes(), collation.as_bytes(), value));
    }
    (!all.is_empty()).then(|| Arc::new(variables))
}

impl UserVariables {
    /// What the model makes of a backend with these.
    fn assigned(&self) -> BTreeMap<String, (String, bool)> {
        let (all, _) = assignments(None, Some(self));
        let mut model = Model { user_variables: BTreeMap::new(), ..Model::default() };
        all.iter().for_each(|text| model.query(&format!("SET {text}")));
        model.user_variables
    }
}

proptest! {
    #[test]
    fn a_plan_leads_where_it_should(from in held(), to in held()) {
        let interner = Interner::new();
        let make = |(spec, last_insert_id, multi_statements, warned, users): Held| BackendState {
            state: interner.intern(spec), last_insert_id, multi_statements, warned, user_variables: user_variables(&users),
        };
        let (from, to) = (make(from), BackendState { warned: false, ..make(to) });
        let mut model = Model::of(&from);
        match plan(&from, &to) {
            Plan::Unreachable => prop_assert!(from.state.schema().is_some() && to.state.schema().is_none()),
            Plan::Nothing => prop_assert_eq!(model, Model::of(&to)),
            Plan::Restore(restore) => {
                prop_assert_eq!(restore.must_be_awaited(), from.state.schema() != to.state.schema());
                restore.commands().iter().for_each(|command| model.run(command));
                prop_assert_eq!(model, Model::of(&to));
            }
        }
    }
}

#[test]
fn texts() {
    let interner = Interner::new();
    let at = |change: &dyn Fn(&mut StateSpec)| {
        let mut spec = base();
        change(&mut spec);
        BackendState::fresh(interner.intern(spec), false)
    };
    let set = |from: &BackendState, to: &BackendState| match plan(from, to) {
        Plan::Restore(restore) => restore.set.unwrap_or_default(),
        other => format!("{other:?}"),
    };
    let start = at(&|_| {});
    assert_eq!(plan(&start, &start.clone()), Plan::Nothing);
    let some = at(&|spec| {
        spec.variables.insert("autocommit".into(), "OFF".into());
        spec.variables.insert("sql_mode".into(), "".into());
        spec.variables.insert("long_query_time".into(), "0.250000".into());
    });
    assert_eq!(
        set(&start, &some),
        "SET @@session.`autocommit`='OFF', @@session.`long_query_time`=0.250000, @@session.`sql_mode`=''"
    );
    assert_eq!(
        set(&some, &start),
        "SET @@session.`autocommit`=DEFAULT, @@session.`long_query_time`=DEFAULT, @@session.`sql_mode`=DEFAULT"
    );
    let limited = at(&|spec| {
        spec.variables.insert("default_master_connection".into(), "123".into());
        spec.variables.insert("max_execution_time".into(), "1".into());
        spec.variables.insert("max_statement_time".into(), "0.000001".into());
        spec.variables.insert("time_zone".into(), "SYSTEM".into());
    });
    assert_eq!(
        set(&start, &limited),
        "SET @@session.`default_master_connection`='123', @@session.`time_zone`='SYSTEM', \
         @@session.`max_execution_time`=1, @@session.`max_statement_time`=0.000001"
    );
    assert!(
        set(&limited, &start)
            .ends_with("@@session.`max_execution_time`=DEFAULT, @@session.`max_statement_time`=DEFAULT")
    );
    let unchecked = at(&|spec| drop(spec.variables.insert("foreign_key_checks".into(), "OFF".into())));
    assert_eq!(set(&unchecked, &start), "SET @@session.`foreign_key_checks`=@@global.foreign_key_checks");
    let evil = at(&|spec| drop(spec.variables.insert("a".into(), "\\'; DROP TABLE t -- ".into())));
    assert_eq!(set(&start, &evil), "SET @@session.`a`=_utf8mb4 0x5C273B2044524F50205441424C452074202D2D20");
    let latin1 = at(&|spec| spec.charset = Charset::names("latin1", "latin1_bin"));
    assert_eq!(set(&start, &latin1), "SET NAMES 'latin1' COLLATE 'latin1_bin'");
    let raw = at(&|spec| spec.charset.results = None);
    assert_eq!(
        set(&start, &raw),
        "SET @@session.character_set_client='utf8mb4', @@session.character_set_connection='utf8mb4', \
         @@session.character_set_results=NULL, @@session.collation_connection='utf8mb4_general_ci'"
    );
    let other_id = BackendState { last_insert_id: 7, ..start.clone() };
    assert_eq!(set(&start, &other_id), "SET @@session.last_insert_id=7");
    let in_schema = at(&|spec| spec.schema = Some("sé".as_bytes().into()));
    let Plan::Restore(restore) = plan(&latin1, &in_schema) else { panic!("nothing to do?") };
    assert_eq!(restore.prelude, Some("SET NAMES utf8mb4"));
    assert_eq!(restore.schema.as_deref(), Some("sé".as_bytes()));
    assert_eq!(plan(&in_schema, &start), Plan::Unreachable);
}
