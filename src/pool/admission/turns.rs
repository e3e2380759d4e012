//! What happens to a lease between its grant and its end: turns that pause and resume, and what it cost.

use std::hash::Hash;
use std::time::Instant;

use super::parties::PartyId;
use super::running::Run;
use super::{Admission, ClassId, Decision, LeaseState, Resumed, SlotId, SlotState, Ticket};

impl<K: Clone + Eq + Hash> Admission<K> {
    /// The turn is over, and the session keeps its connection.
    pub(in crate::pool) fn pause(&mut self, slot: SlotId, now: Instant) {
        self.now = now;
        debug_assert_eq!(self.slots[slot.0].state, SlotState::Leased);
        let run = std::mem::take(&mut self.slots[slot.0].lease.run);
        self.running.stop(slot, run, self.somebody_waits(), now);
        self.changed = true;
    }

    /// A session that keeps its connection wants its next turn. It goes before new work as often as its tickets last, and
    /// until new work has waited for `kickup`.
    pub(in crate::pool) fn resume(&mut self, slot: SlotId, now: Instant) -> Resumed {
        self.now = now;
        debug_assert_eq!(self.slots[slot.0].state, SlotState::Leased);
        // With room for one more nobody waits who could run.
        if self.running.has_room() {
            self.slots[slot.0].lease.run = self.running.start(slot, now);
            return Resumed::Now;
        }
        let lease = &mut self.slots[slot.0].lease;
        let first = lease.went_first < self.limits.high_priority_tickets;
        lease.went_first += u32::from(first);
        lease.returns = Some(now);
        let served = if first { now } else { now + self.limits.kickup };
        let ticket = self.line.last_number();
        self.returning.insert((served, ticket), slot);
        self.changed = true;
        Resumed::Waiting(ticket)
    }

    /// Does not want its turn any more; `false` if it has been called.
    pub(in crate::pool) fn stay(&mut self, ticket: Ticket) -> bool {
        // Few: there are no more than connections.
        let found = self.returning.keys().find(|(_, other)| *other == ticket).copied();
        let slot = found.and_then(|key| self.returning.remove(&key));
        if let Some(slot) = slot {
            self.slots[slot.0].lease.returns = None;
        }
        slot.is_some()
    }

    /// Who returns first, if that is before new work with this ticket.
    pub(super) fn first_to_return(&self, new: Option<Ticket>) -> Option<(Instant, Ticket)> {
        let first = *self.returning.first_key_value()?.0;
        let since = |ticket| self.line.wish(ticket).map(|wish| (wish.since + self.limits.kickup, ticket));
        new.and_then(since).is_none_or(|new| first < new).then_some(first)
    }

    /// Lets this session have its turn.
    pub(super) fn call(&mut self, key: (Instant, Ticket)) {
        let slot = self.returning.remove(&key).expect("it waits");
        let lease = &mut self.slots[slot.0].lease;
        (lease.run, lease.returns) = (self.running.start(slot, self.now), None);
        self.decisions.push(Decision::Resume { ticket: key.1 });
    }

    /// May one more run, if need be because others have stalled?
    pub(super) fn may_run(&mut self) -> bool {
        if self.running.has_room() {
            return true;
        }
        let mut stalled = false;
        while let Some((slot, run)) = self.running.stall(self.now) {
            self.slots[slot.0].lease.run = run;
            stalled = true;
        }
        if stalled {
            self.running.lose_patience(self.now);
        }
        self.running.has_room()
    }

    /// What a lease of this class costs its party: nothing while there is nobody to be fair to.
    pub(super) fn charge(&mut self, class: ClassId) -> Option<u64> {
        if !self.parties.are_several() || self.line.len() == 0 {
            return None;
        }
        let party = self.classes[class.0].party;
        let price = self.parties.charge(party);
        self.show_pass(party);
        Some(price)
    }

    /// A lease has ended.
    pub(super) fn lease_ended(&mut self, slot: SlotId, lease: LeaseState, class: ClassId) {
        debug_assert!(!self.returning.values().any(|it| *it == slot), "it waits for its turn");
        if lease.run != Run::Paused {
            let waits = self.somebody_waits();
            self.running.stop(slot, lease.run, waits, self.now);
        }
        self.quotas.release(lease.held);
        if let Some(price) = lease.price {
            let party = self.classes[class.0].party;
            self.parties.paid(party, price, self.now.saturating_duration_since(lease.began));
            self.show_pass(party);
        }
        if let Some(slot) = self.slots.get_mut(slot.0) {
            slot.lease = LeaseState::new(self.now);
        }
    }

    /// Tells the line the pass of a party.
    pub(super) fn show_pass(&mut self, party: PartyId) {
        let pass = self.parties.pass(party);
        self.parties.classes(party).iter().for_each(|class| self.line.set_pass(*class, pass));
    }
}
