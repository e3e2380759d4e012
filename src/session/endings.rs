//! What a turn provably ended, and which pins go with it.

use super::turn::Turn;
use super::{PinReason, Rare, Session};
use crate::sql::{Flags, Locking, Word};

impl Session {
    /// Pins that end with one statement of a known form.
    pub(super) fn end_plain(&mut self) {
        let turn = &self.turn;
        if turn.certainly_did(Flags::UNLOCK_TABLES) {
            self.pins.remove(PinReason::GlobalReadLock);
        }
        if turn.certainly_did(Flags::UNLOCK_INSTANCE) {
            self.pins.remove(PinReason::InstanceLock);
        }
        if turn.certainly_did(Flags::BACKUP_END) {
            self.pins.remove(PinReason::BackupStage);
        }
        if turn.certainly_did(Flags::COMMIT | Flags::ROLLBACK) {
            self.pins.remove(PinReason::AutocommitSavepoint);
        }
        // BEGIN is refused while an XA transaction is still bound to the connection.
        if turn.certainly_did(Flags::XA_FINISH | Flags::BEGIN) && !turn.flags.any(Flags::XA_PREPARE) {
            self.pins.remove(PinReason::Xa);
        }
        // An id that the client chose does not use up `insert_id`: only the server knows.
        if turn.inserted && self.pins.contains(PinReason::OneShotVariable) {
            self.rare().doubtful.push("insert_id".into());
        }
    }

    /// Pins that end with the last of several things.
    pub(super) fn end_counted(&mut self) {
        let turn = &self.turn;
        let kinds = Flags::HANDLER_OPEN | Flags::CREATE_TEMPORARY | Flags::GET_LOCK;
        if !turn.flags.any(kinds) && self.rare.is_none() {
            return;
        }
        let schema = schema_seed(self.state.schema());
        let table = turn.name.map(|name| name ^ schema);
        let turn = &self.turn;
        let rare = self.rare.get_or_insert_default();
        let is = |flags| turn.flags.any(flags);
        let known = |name: Option<u64>| name.filter(|_| turn.certain);

        // One statement that failed has made nothing. (A lock is different: it may be held all the same.)
        let made = |flag| is(flag) && !(turn.certain && turn.failed);
        if made(Flags::HANDLER_OPEN) {
            rare.handlers.add(turn.certain.then_some(0));
        }
        if made(Flags::CREATE_TEMPORARY) {
            rare.tables.add_once(known(table));
        }
        // A table may have another name by now.
        if turn.runs_statement() && matches!(turn.first, Word::Alter | Word::Rename | Word::Other) {
            rare.tables.doubt();
        }
        match turn.locking {
            Some(Locking::Get(name)) if turn.certain => rare.locks.add(Some(name)),
            _ if is(Flags::GET_LOCK) => rare.locks.add(None),
            _ => {}
        }
        if turn.certain && turn.succeeded() {
            end_by_name(rare, &self.turn, table);
        }
        let gone = [
            (rare.handlers.is_empty(), PinReason::Handler),
            (rare.tables.is_empty(), PinReason::TemporaryTable),
            (rare.locks.is_empty(), PinReason::UserLock),
        ];
        for (_, reason) in gone.into_iter().filter(|(gone, _)| *gone) {
            self.pins.remove(reason);
        }
    }
}

/// What a single statement of a known form, which succeeded, has taken away.
fn end_by_name(rare: &mut Rare, turn: &Turn, table: Option<u64>) {
    if turn.flags.any(Flags::HANDLER_CLOSE) {
        rare.handlers.remove(0);
    }
    if let (true, Some(table)) = (turn.flags.any(Flags::DROP_TABLE), table) {
        rare.tables.remove(table);
    }
    match turn.locking {
        Some(Locking::Release(name)) => rare.locks.remove(name),
        Some(Locking::ReleaseAll) => rare.locks.clear(),
        _ => {}
    }
}

/// A table's name means something only within the schema.
fn schema_seed(schema: Option<&[u8]>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    schema.unwrap_or_default().iter().fold(0x9e37_79b9_7f4a_7c15, step)
}
