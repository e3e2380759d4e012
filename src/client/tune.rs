//! MariaDB's query cache: it is not used for a session whose transactions are tracked, and the proxy needs that tracker, for
//! a one-shot SET TRANSACTION and for table locks. A plain SELECT can cause neither: where the server has a query cache,
//! it runs with that tracker off, and whatever comes next has it switched on again, in the same write.

use super::serve::Client;
use super::turn::Task;
use crate::pool::{Lease, Server};
use crate::protocol::command::Command;
use crate::session::{PinReason, PinSet};
use crate::sql::{Effects, Flags, Word};

/// What a SELECT must not do to be let alone.
const LOUD: Flags = Flags::RUNS_UNSEEN.and(Flags::READS_DIAGNOSTICS).and(Flags::READS_SEQUENCE);

impl Client {
    /// Switches the tracker of transactions as this command needs it, in front of it. False if the backend is lost.
    pub(super) async fn tune(&self, lease: &mut Lease<Server>, task: &mut Task) -> bool {
        let (command, effects) = (task.command, task.effects.as_ref());
        if lease.is_quiet() {
            if self.must_be_loud(command, effects) {
                let sql = lease.set_quiet();
                task.prefix.append(sql, lease);
            }
            return true;
        }
        if !self.may_be_cached(command, effects) {
            return true;
        }
        let door = &self.door;
        let has_cache = match door.connector.has_query_cache() {
            Some(known) => known,
            None => match Box::pin(lease.ask_for_query_cache(&door.connector)).await {
                Ok(answer) => answer,
                Err(_) => return false,
            },
        };
        if has_cache {
            let sql = lease.set_quiet();
            task.prefix.append(sql, lease);
        }
        true
    }

    /// The tracker must be switched on before this command, and what the last statement left would not outlive that.
    pub(super) fn parts_by_tuning(&self, lease: &Lease<Server>, command: Command, effects: Option<&Effects>) -> bool {
        let asks = effects.is_some_and(|effects| effects.first_flags.any(Flags::READS_DIAGNOSTICS));
        lease.is_quiet() && asks && self.must_be_loud(command, effects)
    }

    /// May the server answer this from its query cache, if it has one?
    fn may_be_cached(&self, command: Command, effects: Option<&Effects>) -> bool {
        if !self.session.options().mariadb
            || self.door.connector.has_query_cache() == Some(false)
            || !self.session.wishes().ignore_transactions()
        {
            return false;
        }
        let kept: PinSet = [PinReason::OneShotTransaction, PinReason::Locks].into_iter().collect();
        // One that uses no table leaves the list of warnings alone; what switches the tracker does not.
        let nothing_to_lose = self.session.memory().warnings == 0;
        let reads = |effects: &Effects| {
            let is_plain = effects.is_certain() && effects.first == Word::Select && !effects.may(LOUD);
            is_plain && (effects.may(Flags::READS_TABLE) || nothing_to_lose)
        };
        command.runs_statement() && effects.is_some_and(reads) && !self.session.pins().intersects(kept)
    }

    /// May this do what only the tracker tells? What merely asks does not.
    fn must_be_loud(&self, command: Command, effects: Option<&Effects>) -> bool {
        let asks = |effects: &Effects| {
            let asks = matches!(effects.first, Word::Select | Word::Show) && !effects.may(Flags::RUNS_UNSEEN);
            effects.is_certain() && asks
        };
        command.runs_statement() && !effects.is_some_and(asks)
    }
}
