//! What follows from what happened: grants, dials, closings to make room.

use std::hash::Hash;
use std::time::{Duration, Instant};

use super::line::Rank;
use super::{Admission, Cause, ClassId, Decision, SlotId, Ticket};
use crate::metrics::CloseReason;

/// For so long after its last use, a connection is not closed for another user while its own has no more than its share.
const LINGER: Duration = Duration::from_millis(100);

impl<K: Clone + Eq + Hash> Admission<K> {
    /// Decides as far as can be decided now. While one more may run, who comes first is served first:
    ///
    /// - a session that keeps its connection and waits for its next turn, unless new work has waited for `kickup`;
    /// - the first ticket that wants a dial, if one is allowed now: with free room; else, if an idle connection can be
    ///   closed for it;
    /// - the first ticket of a class with an idle connection: that connection.
    ///
    /// A ticket that nothing can be done for (a dial for it is under way, or nobody may dial now) does not stop those
    /// behind it; it comes first again as soon as something can be done.
    pub(in crate::pool) fn decide(&mut self, now: Instant) {
        self.now = now;
        self.changed = false;
        loop {
            self.unpark();
            self.refuse_bereft(now);
            // Those that were refused may have made room.
            if self.quotas.next().is_none() {
                break;
            }
        }
        for class in std::mem::take(&mut self.limited) {
            self.hold_back(class, now);
        }
        while self.somebody_waits() && self.may_run() {
            let taker = self.first_taker();
            if let Some(key) = self.first_to_return(taker.map(|((_, ticket), _)| ticket)) {
                self.call(key);
                continue;
            }
            let head = if self.may_dial(now) { self.line.head() } else { None };
            let dialed = match (head, taker) {
                (Some((head, class)), Some((taker, _))) if head < taker => self.dial_or_make_room(class, now),
                (Some((_, class)), None) => self.dial_or_make_room(class, now),
                _ => false,
            };
            match taker {
                _ if dialed => {}
                Some(((_, ticket), class)) => self.serve(ticket, class),
                None => break,
            }
        }
        self.arm(now);
    }

    /// Tickets whose user, or schema, has room again go to their place in the line.
    fn unpark(&mut self) {
        while let Some(ticket) = self.quotas.next() {
            let waiting = self.line.waiting(ticket).expect("a parked ticket waits");
            let wish = waiting.wish;
            if let Some(quota) = waiting.parked {
                self.quotas.unpark(quota, ticket);
            }
            let parked = self.quotas.full(wish.held);
            match parked {
                Some(quota) => self.quotas.park(quota, ticket),
                None => {
                    self.quotas.acquire(wish.held);
                    self.mark_ready(wish.class);
                    self.bereft.push(wish.class);
                }
            }
            self.line.unpark(ticket, parked);
        }
    }

    /// Is a dial allowed now, room apart?
    pub(super) fn may_dial(&self, now: Instant) -> bool {
        !self.shut_down && self.counts.opening < self.limits.open_parallel && self.gate.lets_through(now)
    }

    /// Is there room for one more connection?
    pub(super) fn has_room(&self, now: Instant) -> bool {
        let total = self.counts.total();
        total < self.limits.max_connections && self.ceiling.as_ref().is_none_or(|ceiling| ceiling.has_room(total, now))
    }

    /// Is this class at its own ceiling?
    pub(super) fn is_held_back(&self, class: ClassId, now: Instant) -> bool {
        let this = &self.classes[class.0];
        this.ceiling.as_ref().is_some_and(|ceiling| !ceiling.has_room(this.counts.total(), now))
    }

    /// Begins a dial.
    pub(super) fn dial(&mut self, class: ClassId, now: Instant) {
        let slot = self.add_slot(class, now);
        self.gate.dialing(slot);
        self.line.dials(class, 1);
        if self.classes[class.0].ceiling.is_some() {
            let held_back = self.is_held_back(class, now);
            self.line.hold_back(class, held_back);
        }
        self.decisions.push(Decision::Dial { slot, class: self.classes[class.0].key.clone() });
    }

    /// A dial for the head of the line, or an idle connection closed so that there is room for it; `false` if neither.
    fn dial_or_make_room(&mut self, class: ClassId, now: Instant) -> bool {
        if self.has_room(now) && self.parties.has_room(self.classes[class.0].party) {
            self.dial(class, now);
            return true;
        }
        // What is being closed already makes room for as many.
        let wanted = self.line.wanting().min(self.limits.open_parallel - self.counts.opening);
        if self.counts.closing >= wanted {
            return false;
        }
        let victim = self.victim(class, now);
        if let Some(victim) = victim {
            self.doom(victim, CloseReason::Displaced);
        }
        victim.is_some()
    }

    /// The connection that has been idle for longest, of those that may be closed for this class: of its own party if that
    /// has as many as it may have; else not those that a party with no more than its share used just now.
    pub(super) fn victim(&self, class: ClassId, now: Instant) -> Option<SlotId> {
        let party = self.classes[class.0].party;
        let own_only = !self.parties.has_room(party);
        self.idle.iter().find(|slot| {
            let owner = self.classes[self.slots[slot.0].class.0].party;
            owner == party || (!own_only && self.is_free_for_all(*slot, now))
        })
    }

    /// May this idle connection be closed for another party?
    fn is_free_for_all(&self, slot: SlotId, now: Instant) -> bool {
        let this = &self.slots[slot.0];
        let party = self.classes[this.class.0].party;
        this.since + LINGER <= now || self.parties.is_over_its_share(party, self.limits.max_connections)
    }

    /// The first ticket of a class that has an idle connection.
    fn first_taker(&mut self) -> Option<(Rank, ClassId)> {
        let (idle, line, classes) = (&self.idle, &self.line, &mut self.classes);
        let mut first = None;
        self.ready.retain(|class| {
            let rank = line.rank_of(*class).filter(|_| idle.oldest_of(*class).is_some());
            if let Some(rank) = rank
                && first.is_none_or(|(other, _)| rank < other)
            {
                first = Some((rank, *class));
            }
            classes[class.0].ready = rank.is_some();
            rank.is_some()
        });
        first
    }

    /// Grants an idle connection of this class to its oldest ticket.
    fn serve(&mut self, ticket: Ticket, class: ClassId) {
        let wish = self.line.wish(ticket).expect("a ticket in line has a wish");
        debug_assert_eq!(wish.class, class);
        let slot = self.choose(wish).expect("a taker's class has an idle connection");
        // Before its ticket goes: a lease is charged for while somebody waits.
        let grant = self.grant(slot, wish);
        self.line.leave(ticket);
        self.quotas.goes(wish.held);
        self.count_ticket(class, -1);
        self.decisions.push(Decision::Grant { ticket, grant });
    }

    /// While the server is out of reach, tickets whose class has lost its last connection fail.
    fn refuse_bereft(&mut self, now: Instant) {
        let mut bereft = std::mem::take(&mut self.bereft);
        if self.gate.is_shut(now) {
            for class in bereft.iter().copied() {
                if self.line.oldest_of(class).is_some() && self.is_bereft(class) {
                    self.refuse_class(class, Cause::Unreachable);
                }
            }
        }
        bereft.clear();
        self.bereft = bereft;
    }

    /// Holds a class back, or no longer, as its ceiling says.
    fn hold_back(&mut self, class: ClassId, now: Instant) {
        let held_back = self.is_held_back(class, now);
        self.line.hold_back(class, held_back);
        if self.classes[class.0].ceiling.is_some() {
            self.limited.push(class);
        }
    }

    /// If time alone may let a ticket dial, asks to be woken then.
    fn arm(&mut self, now: Instant) {
        let server = self.ceiling.as_ref().map(|ceiling| ceiling.until()).into_iter().chain(self.gate.opens_at());
        let server = server.filter(|_| self.line.wanting() > 0);
        let stall = self.running.next_stall().filter(|_| !self.running.has_room() && self.somebody_waits());
        let linger = self.lingers_until(now);
        let limited = self.limited.iter().filter(|class| self.line.has_uncovered(**class));
        let classes = limited.filter_map(|class| Some(self.classes[class.0].ceiling.as_ref()?.until()));
        let Some(at) = server.chain(classes).chain(stall).chain(linger).filter(|at| *at > now).min() else { return };
        if self.wake_at.is_none_or(|armed| at < armed) {
            self.wake_at = Some(at);
            self.decisions.push(Decision::Wake { at });
        }
    }

    /// When the first idle connection may be closed for a party that wants a dial now.
    fn lingers_until(&self, now: Instant) -> Option<Instant> {
        let (_, class) = self.line.head().filter(|_| self.may_dial(now))?;
        if self.counts.closing > 0 || self.victim(class, now).is_some() {
            return None;
        }
        let (oldest, _) = self.idle.oldest()?;
        Some(self.slots[oldest.0].since + LINGER)
    }
}
