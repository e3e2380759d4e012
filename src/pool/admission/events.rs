//! What may happen: requests, tickets, releases, dials that end, retirement, time.

use std::hash::Hash;
use std::time::Instant;

use super::gate::Ceiling;
use super::{
    Admission, Asked, Cause, ClassId, Decision, Grant, Held, Joined, LeaseKind, LeaseState, SlotId, SlotState, Ticket,
    Whose, Wish, withdraw,
};
use crate::metrics::CloseReason;
use crate::pool::FailureKind;

/// Requests and tickets.
impl<K: Clone + Eq + Hash> Admission<K> {
    /// An idle connection of this class, at once. Nobody is overtaken: whoever waits while there is one, and room for one
    /// more to run, waits for something else.
    pub(in crate::pool) fn take(&mut self, asked: &Asked<'_, K>, now: Instant) -> Option<Grant> {
        self.now = now;
        let class = *self.by_key.get(asked.class)?;
        let held = self.held_by(class, asked.schema);
        if !self.running.has_room() || self.quotas.full(held).is_some() {
            return None;
        }
        let wish = Wish { class, owner: asked.owner, state: asked.state, held, since: now };
        let slot = self.choose(wish)?;
        self.quotas.acquire(held);
        Some(self.grant(slot, wish))
    }

    /// Goes to the end of the line, or to its front if `first`.
    pub(in crate::pool) fn join(&mut self, asked: &Asked<'_, K>, first: bool, now: Instant) -> Joined {
        self.now = now;
        if self.shut_down {
            return Joined::Refused(Cause::Closed);
        }
        if self.line.len() >= self.limits.max_waiting {
            return Joined::QueueFull { limit: self.limits.max_waiting, whose: Whose::Everybody };
        }
        let class = self.class_of(asked.class, asked.party);
        let held = self.held_by(class, asked.schema);
        if let Some(refused) = self.refusal_of(class, held, now) {
            self.forget_if_unused(class);
            return refused;
        }
        let wish = Wish { class, owner: asked.owner, state: asked.state, held, since: now };
        let ticket = if first { self.line.first_number() } else { self.line.last_number() };
        let parked = self.quotas.full(held);
        match parked {
            Some(quota) => self.quotas.park(quota, ticket),
            None => self.quotas.acquire(held),
        }
        self.quotas.comes(held);
        self.line.join(ticket, wish, parked);
        self.count_ticket(class, 1);
        self.mark_ready(class);
        self.changed = true;
        Joined::Waiting(ticket)
    }

    /// Why nobody who needs this class, and counts against these quotas, may join the line now.
    fn refusal_of(&self, class: ClassId, [user, schema]: Held, now: Instant) -> Option<Joined> {
        if self.gate.is_shut(now) && self.is_bereft(class) {
            return Some(Joined::Refused(Cause::Unreachable));
        }
        let crowded = |held, whose| Some(Joined::QueueFull { limit: self.quotas.crowded(held)?, whose });
        crowded([user, None], Whose::User).or_else(|| crowded([None, schema], Whose::Schema))
    }

    /// Leaves the line; `false` if a decision about this ticket was made before.
    pub(in crate::pool) fn leave(&mut self, ticket: Ticket) -> bool {
        let Some(waiting) = self.line.leave(ticket) else { return false };
        let Wish { class, held, .. } = waiting.wish;
        match waiting.parked {
            Some(quota) => self.quotas.unpark(quota, ticket),
            None => self.quotas.release(held),
        }
        self.quotas.goes(held);
        self.count_ticket(class, -1);
        self.forget_if_unused(class);
        self.changed = true;
        true
    }

    /// A ticket of this class came (`1`) or went (`-1`).
    pub(super) fn count_ticket(&mut self, class: ClassId, change: isize) {
        let party = self.classes[class.0].party;
        if self.parties.tickets(party, change) {
            self.show_pass(party);
        }
    }

    /// The best idle connection: the owner's own, one in the same state, one never used, the one idle for longest.
    pub(super) fn choose(&self, wish: Wish) -> Option<SlotId> {
        let own = self.owners.get(&wish.owner).copied().filter(|slot| {
            let slot = &self.slots[slot.0];
            slot.state == SlotState::Idle && slot.class == wish.class
        });
        own.or_else(|| self.idle.oldest_in(wish.class, Some(wish.state)))
            .or_else(|| self.idle.oldest_in(wish.class, None))
            .or_else(|| self.idle.oldest_of(wish.class))
    }

    /// Leases an idle connection. What the owner left on another one is no longer its latest.
    pub(super) fn grant(&mut self, slot: SlotId, wish: Wish) -> Grant {
        let this = &self.slots[slot.0];
        let kind = match this.left {
            _ if this.owner == Some(wish.owner) => LeaseKind::Own,
            None => LeaseKind::Fresh,
            Some(left) if left == wish.state => LeaseKind::SameState,
            Some(_) => LeaseKind::OtherState,
        };
        if kind != LeaseKind::Own
            && let Some(other) = self.owners.get(&wish.owner).copied()
        {
            withdraw(&mut self.owners, &mut self.slots[other.0]);
        }
        self.enter(slot, SlotState::Leased);
        let run = self.running.start(slot, self.now);
        let price = self.charge(wish.class);
        self.slots[slot.0].lease = LeaseState { run, held: wish.held, price, ..LeaseState::new(self.now) };
        Grant { slot, kind }
    }

    /// Neither a connection nor a dial under way: nothing could serve a ticket of this class.
    pub(super) fn is_bereft(&self, class: ClassId) -> bool {
        let counts = self.classes[class.0].counts;
        counts.opening + counts.idle + counts.leased == 0
    }
}

/// Connections.
impl<K: Clone + Eq + Hash> Admission<K> {
    /// A lease ended between two turns.
    pub(in crate::pool) fn release(&mut self, slot: SlotId, owner: u64, state: u64, now: Instant) {
        self.now = now;
        let this = &mut self.slots[slot.0];
        debug_assert_eq!(this.state, SlotState::Leased);
        this.left = Some(state);
        if this.owner != Some(owner) {
            withdraw(&mut self.owners, this);
            this.owner = Some(owner);
            if let Some(other) = self.owners.insert(owner, slot) {
                self.slots[other.0].owner = None;
            }
        }
        self.rest(slot, now);
    }

    /// The connection that has been idle for longest, of whatever class, to be looked at. It is nobody's any more.
    pub(in crate::pool) fn inspect(&mut self) -> Option<Grant> {
        let (slot, _) = self.idle.oldest()?;
        withdraw(&mut self.owners, &mut self.slots[slot.0]);
        self.enter(slot, SlotState::Leased);
        self.slots[slot.0].lease = LeaseState::new(self.now);
        Some(Grant { slot, kind: LeaseKind::OtherState })
    }

    /// The look is over and was no use: unless there is a reason to close it, the connection is idle since it was.
    pub(in crate::pool) fn inspected(&mut self, slot: SlotId, state: u64, now: Instant) {
        let since = self.slots[slot.0].since;
        self.slots[slot.0].left = Some(state);
        self.rest(slot, now);
        let this = &mut self.slots[slot.0];
        if this.state == SlotState::Idle {
            this.since = since;
            self.idle.put_first(slot, since);
        }
    }

    /// A lease ended before it was used: the ticket it was for had vanished.
    pub(in crate::pool) fn put_back(&mut self, slot: SlotId, now: Instant) {
        debug_assert_eq!(self.slots[slot.0].state, SlotState::Leased);
        self.rest(slot, now);
    }

    /// A dial succeeded.
    pub(in crate::pool) fn opened(&mut self, slot: SlotId, now: Instant) {
        let class = self.slots[slot.0].class;
        debug_assert_eq!(self.slots[slot.0].state, SlotState::Opening);
        self.gate.reached();
        Ceiling::raise(&mut self.ceiling, self.counts.total());
        let this = &mut self.classes[class.0];
        Ceiling::raise(&mut this.ceiling, this.counts.total());
        if !self.limits.max_lifetime.is_zero() {
            let lifetime = self.limits.max_lifetime.mul_f64(1.0 - self.dice.throw() / 10.0);
            self.slots[slot.0].expires = now.checked_add(lifetime);
        }
        self.line.dials(class, -1);
        self.rest(slot, now);
        if self.slots[slot.0].state == SlotState::Idle {
            let this = &self.classes[class.0];
            self.last_opened = Some((this.key.clone(), self.parties.party(this.party)));
        }
    }

    /// A dial failed; `kind` is `None` if it ended without a result.
    pub(in crate::pool) fn failed(&mut self, slot: SlotId, kind: Option<FailureKind>, now: Instant) {
        let class = self.remove_slot(slot).class;
        self.line.dials(class, -1);
        match kind {
            Some(FailureKind::Refused | FailureKind::Timeout) => {
                self.gate.unreachable(slot, now, &mut self.dice);
                if self.gate.is_shut(now) {
                    let wanting = self.line.wanting_classes();
                    let bereft = wanting.filter(|class| self.is_bereft(*class)).collect::<Vec<_>>();
                    bereft.into_iter().for_each(|class| self.refuse_class(class, Cause::ThisDial));
                }
            }
            Some(FailureKind::Full) => {
                self.gate.reached();
                Ceiling::lower(&mut self.ceiling, self.counts.total(), now, &mut self.dice);
            }
            Some(FailureKind::AccountFull) => {
                self.gate.reached();
                self.limit(class, now);
            }
            Some(FailureKind::Account) => {
                self.gate.reached();
                self.last_opened.take_if(|(key, _)| *key == self.classes[class.0].key);
                let counts = self.classes[class.0].counts;
                self.refuse_or_limit(class, counts.idle + counts.leased == 0, now);
            }
            Some(FailureKind::Other) => {
                self.gate.gave_up(slot, now, &mut self.dice);
                self.refuse_or_limit(class, self.is_bereft(class), now);
            }
            None => {
                self.gate.gave_up(slot, now, &mut self.dice);
                self.limit(class, now);
            }
        }
        self.forget_if_unused(class);
    }

    /// A connection was dropped: on a [`Decision::Close`], or because its lease was not released.
    pub(in crate::pool) fn closed(&mut self, slot: SlotId) {
        let class = self.remove_slot(slot).class;
        self.forget_if_unused(class);
    }

    /// A leased connection is being closed, with a goodbye that takes a while.
    pub(in crate::pool) fn closing(&mut self, slot: SlotId) {
        self.enter(slot, SlotState::Closing);
    }

    /// This connection was found dead; `false` if it is not idle any more.
    pub(in crate::pool) fn lost(&mut self, slot: SlotId) -> bool {
        let idle = self.slots.get(slot.0).is_some_and(|this| this.state == SlotState::Idle);
        if idle {
            self.doom(slot, CloseReason::Lost);
        }
        idle
    }

    /// A connection has nothing to do: idle, unless there is a reason to close it.
    fn rest(&mut self, slot: SlotId, now: Instant) {
        let this = &self.slots[slot.0];
        let class = this.class;
        if self.shut_down {
            self.doom(slot, CloseReason::Drain);
        } else if this.epoch < self.min_epoch.max(self.classes[class.0].min_epoch) {
            self.doom(slot, CloseReason::Stale);
        } else if self.gate.is_open() && this.expires.is_some_and(|expires| expires <= now) {
            self.doom(slot, CloseReason::MaxLifetime);
        } else {
            self.slots[slot.0].since = now;
            self.enter(slot, SlotState::Idle);
            if self.line.len() > 0 {
                self.mark_ready(class);
            }
        }
    }

    /// This connection is to be closed.
    pub(super) fn doom(&mut self, slot: SlotId, reason: CloseReason) {
        self.enter(slot, SlotState::Closing);
        self.decisions.push(Decision::Close { slot, reason });
    }

    /// Fails the tickets of a class whose dial failed, or has them wait for the connections that there are.
    fn refuse_or_limit(&mut self, class: ClassId, refuse: bool, now: Instant) {
        if refuse {
            self.refuse_class(class, Cause::ThisDial);
        } else {
            self.limit(class, now);
        }
    }

    /// Lowers the ceiling of a class to what it has.
    fn limit(&mut self, class: ClassId, now: Instant) {
        let this = &mut self.classes[class.0];
        if this.ceiling.is_none() {
            self.limited.push(class);
        }
        Ceiling::lower(&mut this.ceiling, this.counts.total(), now, &mut self.dice);
    }

    /// Fails all tickets of a class, the oldest first.
    pub(super) fn refuse_class(&mut self, class: ClassId, cause: Cause) {
        while let Some(ticket) = self.line.oldest_of(class) {
            self.leave(ticket);
            self.decisions.push(Decision::Refuse { ticket, cause });
        }
        self.forget_if_unused(class);
    }
}

/// Retirement and time.
impl<K: Clone + Eq + Hash> Admission<K> {
    /// Connections dialed before now are not used again.
    pub(in crate::pool) fn retire_all(&mut self) {
        self.epoch += 1;
        self.min_epoch = self.epoch;
        let idle = self.idle.iter().collect::<Vec<_>>();
        idle.into_iter().for_each(|slot| self.doom(slot, CloseReason::Stale));
    }

    /// As [`Admission::retire_all`], for one class.
    pub(in crate::pool) fn retire_class(&mut self, class: &K) {
        self.last_opened.take_if(|(key, _)| key == class);
        let Some(class) = self.by_key.get(class).copied() else { return };
        self.epoch += 1;
        self.classes[class.0].min_epoch = self.epoch;
        let idle = self.idle.iter_of(class).collect::<Vec<_>>();
        idle.into_iter().for_each(|slot| self.doom(slot, CloseReason::Stale));
    }

    /// No connection is dialed for `min_idle` until one of another class was.
    pub(in crate::pool) fn forget_last_opened(&mut self) {
        self.last_opened = None;
    }

    /// Closes what has been open, or idle, for too long.
    pub(in crate::pool) fn expire(&mut self, now: Instant) {
        let expired = |slot: &SlotId| self.slots[slot.0].expires.is_some_and(|expires| expires <= now);
        let old = if self.gate.is_open() { self.idle.iter().filter(expired).collect::<Vec<_>>() } else { Vec::new() };
        old.into_iter().for_each(|slot| self.doom(slot, CloseReason::MaxLifetime));
        let timeout = self.limits.idle_timeout;
        while !timeout.is_zero()
            && self.counts.idle > self.limits.min_idle
            && let Some((slot, since)) = self.idle.oldest()
            && now.saturating_duration_since(since) >= timeout
        {
            self.doom(slot, CloseReason::IdleTimeout);
        }
    }

    /// Dials until `min_idle` connections are idle or on their way.
    pub(in crate::pool) fn refill(&mut self, now: Instant) {
        self.now = now;
        let Some((key, party)) = self.last_opened.clone() else { return };
        let lacking = self.limits.min_idle.saturating_sub(self.counts.idle + self.counts.opening);
        if lacking == 0 || self.line.len() > 0 {
            return;
        }
        let class = self.class_of(&key, &party);
        for _ in 0..lacking {
            let party = self.classes[class.0].party;
            let has_room = self.has_room(now) && self.parties.has_room(party);
            if !self.may_dial(now) || !has_room || self.is_held_back(class, now) {
                break;
            }
            self.dial(class, now);
        }
        self.forget_if_unused(class);
    }

    /// A [`Decision::Wake`] came back.
    pub(in crate::pool) fn woke(&mut self, now: Instant) {
        self.now = now;
        self.wake_at.take_if(|at| *at <= now);
        self.changed = true;
    }

    /// Takes nothing new, refuses everybody in line, closes what is idle; the rest is closed when its lease ends.
    pub(in crate::pool) fn shut_down(&mut self) {
        self.shut_down = true;
        let mut tickets = self.line.tickets().collect::<Vec<_>>();
        tickets.sort_unstable();
        for ticket in tickets {
            self.leave(ticket);
            self.decisions.push(Decision::Refuse { ticket, cause: Cause::Closed });
        }
        let idle = self.idle.iter().collect::<Vec<_>>();
        idle.into_iter().for_each(|slot| self.doom(slot, CloseReason::Drain));
    }
}
