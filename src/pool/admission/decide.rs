//! What follows from what happened: grants, dials, closings to make room.

use std::hash::Hash;
use std::time::Instant;

use super::{Admission, Cause, ClassId, Decision, Ticket};
use crate::metrics::CloseReason;

impl<K: Clone + Eq + Hash> Admission<K> {
    /// Decides as far as can be decided now. The oldest ticket that anything can be done for comes first:
    ///
    /// - the oldest ticket that wants a dial, if one is allowed now: with free room; else, if the idle connection
    ///   that was not used for longest, of whatever class, can be closed for it;
    /// - the oldest ticket of a class with an idle connection: that connection.
    ///
    /// A ticket that nothing can be done for (a dial for it is under way, or nobody may dial now) does not stop those
    /// behind it; it comes first again as soon as something can be done.
    pub(in crate::pool) fn decide(&mut self, now: Instant) {
        self.changed = false;
        self.refuse_bereft(now);
        for class in std::mem::take(&mut self.limited) {
            self.hold_back(class, now);
        }
        while self.line.len() > 0 {
            let head = if self.may_dial(now) { self.line.head() } else { None };
            let taker = self.oldest_taker();
            let dialed = match (head, taker) {
                (Some((head, class)), Some((taker, _))) if head < taker => self.dial_or_make_room(class, now),
                (Some((_, class)), None) => self.dial_or_make_room(class, now),
                _ => false,
            };
            match taker {
                _ if dialed => {}
                Some((ticket, class)) => self.serve(ticket, class),
                None => break,
            }
        }
        self.ready.clear();
        self.arm(now);
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
        if self.has_room(now) {
            self.dial(class, now);
            return true;
        }
        // What is being closed already makes room for as many.
        let wanted = self.line.wanting().min(self.limits.open_parallel - self.counts.opening);
        match self.idle.oldest() {
            Some((victim, _)) if self.counts.closing < wanted => {
                self.doom(victim, CloseReason::Displaced);
                true
            }
            _ => false,
        }
    }

    /// The oldest ticket of a class that has an idle connection.
    fn oldest_taker(&mut self) -> Option<(Ticket, ClassId)> {
        let (idle, line) = (&self.idle, &self.line);
        let mut oldest = None;
        self.ready.retain(|class| {
            let ticket = line.oldest_of(*class).filter(|_| idle.oldest_of(*class).is_some());
            if let Some(ticket) = ticket
                && oldest.is_none_or(|(other, _)| ticket < other)
            {
                oldest = Some((ticket, *class));
            }
            ticket.is_some()
        });
        oldest
    }

    /// Grants an idle connection of this class to its oldest ticket.
    fn serve(&mut self, ticket: Ticket, class: ClassId) {
        let wish = self.line.wish(ticket).expect("a ticket in line has a wish");
        debug_assert_eq!(wish.class, class);
        let slot = self.choose(wish).expect("a taker's class has an idle connection");
        self.line.leave(ticket);
        let grant = self.grant(slot, wish);
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
        let limited = self.limited.iter().filter(|class| self.line.has_uncovered(**class));
        let classes = limited.filter_map(|class| Some(self.classes[class.0].ceiling.as_ref()?.until()));
        let Some(at) = server.chain(classes).filter(|at| *at > now).min() else { return };
        if self.wake_at.is_none_or(|armed| at < armed) {
            self.wake_at = Some(at);
            self.decisions.push(Decision::Wake { at });
        }
    }
}
