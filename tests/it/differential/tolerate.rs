//! Differences that are known limits of the proxy: counted, not reported. The shorter this file, the better.

use myriad::protocol::command::Command;

use super::normal::Form;
use super::script::{Act, Step};
use super::world::Outcome;
use crate::support::Kind;

/// Why this difference is no news, if it is not.
pub(super) fn reason(
    _kind: Kind,
    step: &Step,
    (_, _direct): (&Form, &Outcome),
    (_, proxied): (&Form, &Outcome),
) -> Option<&'static str> {
    let refused = match proxied {
        Outcome::Reply(reply, _) => reply.error().is_some_and(|(code, _)| code == 1235),
        _ => false,
    };
    let asks = matches!(step.act, Act::Command(Command::Query, _) | Act::Statement(Command::StmtExecute, ..));
    (refused && asks).then_some("a question about the statement before, refused by 1235")
}
