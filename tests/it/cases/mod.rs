//! Small reproductions of what multiplexers have got wrong, as scripts: each runs by text, prepared (COM_STMT_PREPARE), and
//! by name (`PREPARE`), beside private connections that do the same in another schema. Every packet must be alike.
//!
//! A line is `a: statement`: client a runs it, and then somebody else uses a backend. `a! statement`: the client keeps its
//! backend. `a: statement <- x, y`: with values for its question marks. `a-`: the client hangs up and comes again.
//! docs/TESTING.md says which case is tested where.

mod answers;
mod state;

use std::collections::BTreeMap;

use myriad::protocol::command::Command;
use myriad::protocol::packet::prepare::PrepareOk;

use crate::prepared::{execution, text};
use crate::support::{Packets, Setup, Twin};

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Prepared,
    Named,
}

pub(crate) const ALL: &[Form] = &[Form::Text, Form::Prepared, Form::Named];

/// Texts that are understood by no other form, or pin by name.
pub(crate) const TWO: &[Form] = &[Form::Text, Form::Prepared];

/// ER_UNSUPPORTED_PS
const UNPREPARABLE: u16 = 1295;

/// Plays a script in these forms, one after the other.
pub(crate) async fn play(t: &Setup, forms: &[Form], script: &[&str]) {
    for form in forms {
        println!("{form:?}");
        let mut twins: BTreeMap<char, Twin> = BTreeMap::new();
        for line in script {
            let who = line.chars().next().expect("a client");
            if let Some("-") = line.get(1..) {
                twins.remove(&who);
                twins.insert(who, Twin::new(t, &t.app()).await);
                continue;
            }
            let twin = match twins.entry(who) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => entry.insert(Twin::new(t, &t.app()).await),
            };
            let (how, rest) = line[1..].split_at(1);
            let (sql, values) = rest.trim().split_once(" <- ").unwrap_or((rest.trim(), ""));
            let values: Vec<_> = values.split(", ").filter(|value| !value.is_empty()).collect();
            println!("{line}");
            say(twin, *form, sql, &values).await;
            if how == ":" {
                twin.intrude().await;
            }
        }
    }
    assert_eq!(t.metric("myriad_unanswered_total", None), 0.0, "something was refused");
}

/// Both run this statement in this form.
pub(crate) async fn say(twin: &mut Twin, form: Form, sql: &str, values: &[&str]) -> Packets {
    match form {
        Form::Text => {
            let mut values = values.iter();
            let parts: Vec<_> = sql.split('?').collect();
            let last = parts.len() - 1;
            let filled = parts.iter().enumerate().map(|(at, part)| match values.next() {
                Some(value) if at < last => format!("{part}'{value}'"),
                _ => (*part).to_owned(),
            });
            twin.query_and_keep(&filled.collect::<String>()).await
        }
        Form::Prepared => {
            let reply = twin.command(Command::StmtPrepare, sql.as_bytes()).await;
            match reply.error() {
                Some((UNPREPARABLE, _)) => return twin.query_and_keep(sql).await,
                Some(_) => return reply,
                None => {}
            }
            let id = PrepareOk::parse(&reply.raw[0].1).expect("a prepared statement").statement_id;
            let values: Vec<_> = values.iter().map(|value| text(value)).collect();
            let reply = twin.command(Command::StmtExecute, &execution(id, false, &values, true)).await;
            twin.send(Command::StmtClose, &id.to_le_bytes()).await;
            reply
        }
        Form::Named => {
            let literal = sql.replace('\\', "\\\\").replace('\'', "''");
            let reply = twin.query_and_keep(&format!("PREPARE statement_ FROM '{literal}'")).await;
            match reply.error() {
                Some((UNPREPARABLE, _)) => return twin.query_and_keep(sql).await,
                Some(_) => return reply,
                None => {}
            }
            let mut using = String::new();
            for (at, value) in values.iter().enumerate() {
                twin.query_and_keep(&format!("SET @value_{at} = '{value}'")).await;
                using += &format!("{} @value_{at}", if at == 0 { " USING" } else { "," });
            }
            twin.query_and_keep(&format!("EXECUTE statement_{using}")).await
        }
    }
}

/// Defines a test that plays a script.
macro_rules! case {
    ($(#[$meta:meta])* $name:ident, $configure:expr, $forms:expr, $script:expr) => {
        on_both!(
            $(#[$meta])*
            $name,
            $configure,
            |t| async move { $crate::cases::play(&t, $forms, $script).await }
        );
    };
}
pub(crate) use case;
