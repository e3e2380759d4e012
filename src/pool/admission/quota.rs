//! Quotas: how many leases and tickets a user, or the clients of a schema, may have at once.
//!
//! A lease counts against its quotas, and so does a ticket in the line, which thereby is sure of them. A ticket that
//! would exceed one is *parked* there: it keeps its number, and goes to its place in the line when there is room.

use std::collections::BTreeSet;

use slab::Slab;

use super::Ticket;

/// The number of a quota; used again when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuotaId(usize);

/// The quotas that a ticket or lease counts against: its user's and its schema's.
pub(super) type Held = [Option<QuotaId>; 2];

/// What a quota allows; `usize::MAX` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Leases at once.
    pub(super) connections: usize,
    /// Tickets at once.
    pub(super) waiting: usize,
}

impl Allowance {
    /// Nothing is limited.
    pub(super) const ALL: Self = Self { connections: usize::MAX, waiting: usize::MAX };

    /// As configured, where zero is no limit.
    pub(super) fn configured(connections: usize, waiting: usize) -> Self {
        let limit = |limit| if limit == 0 { usize::MAX } else { limit };
        Self { connections: limit(connections), waiting: limit(waiting) }
    }
}

#[derive(Debug)]
struct Quota {
    allowed: Allowance,
    /// Leases, and tickets in the line.
    used: usize,
    /// Tickets, wherever they are.
    waiting: usize,
    parked: BTreeSet<Ticket>,
}

/// Every quota.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    quotas: Slab<Quota>,
    /// Those that may have both room and a parked ticket.
    freed: Vec<QuotaId>,
}

impl Quotas {
    /// A new one, unused.
    pub(super) fn add(&mut self, allowed: Allowance) -> QuotaId {
        QuotaId(self.quotas.insert(Quota { allowed, used: 0, waiting: 0, parked: BTreeSet::new() }))
    }

    /// It is not used any more.
    pub(super) fn remove(&mut self, quota: QuotaId) {
        let gone = self.quotas.remove(quota.0);
        debug_assert!(gone.used == 0 && gone.waiting == 0 && gone.parked.is_empty());
        self.freed.retain(|freed| *freed != quota);
    }

    /// The first of these that has no room for one more lease.
    pub(super) fn full(&self, held: Held) -> Option<QuotaId> {
        held.into_iter().flatten().find(|quota| {
            let quota = &self.quotas[quota.0];
            quota.used >= quota.allowed.connections
        })
    }

    /// The limit of the first of these that may not have one more ticket.
    pub(super) fn crowded(&self, held: Held) -> Option<usize> {
        let limits = held.into_iter().flatten().map(|quota| &self.quotas[quota.0]);
        limits.into_iter().find(|quota| quota.waiting >= quota.allowed.waiting).map(|quota| quota.allowed.waiting)
    }

    /// One more lease, or ticket in the line.
    pub(super) fn acquire(&mut self, held: Held) {
        held.into_iter().flatten().for_each(|quota| self.quotas[quota.0].used += 1);
    }

    /// One less.
    pub(super) fn release(&mut self, held: Held) {
        for id in held.into_iter().flatten() {
            let quota = &mut self.quotas[id.0];
            quota.used -= 1;
            if !quota.parked.is_empty() && !self.freed.contains(&id) {
                self.freed.push(id);
            }
        }
    }

    /// A ticket begins to wait.
    pub(super) fn comes(&mut self, held: Held) {
        held.into_iter().flatten().for_each(|quota| self.quotas[quota.0].waiting += 1);
    }

    /// A ticket waits no longer.
    pub(super) fn goes(&mut self, held: Held) {
        held.into_iter().flatten().for_each(|quota| self.quotas[quota.0].waiting -= 1);
    }

    /// This ticket waits until there is room.
    pub(super) fn park(&mut self, quota: QuotaId, ticket: Ticket) {
        self.quotas[quota.0].parked.insert(ticket);
    }

    /// This ticket does not wait here any more.
    pub(super) fn unpark(&mut self, quota: QuotaId, ticket: Ticket) {
        self.quotas[quota.0].parked.remove(&ticket);
    }

    /// The oldest ticket that is parked where there is room now.
    pub(super) fn next(&mut self) -> Option<Ticket> {
        let quotas = &self.quotas;
        let mut oldest = None;
        self.freed.retain(|id| {
            let quota = &quotas[id.0];
            let first = quota.parked.first().filter(|_| quota.used < quota.allowed.connections).copied();
            oldest = oldest.into_iter().chain(first).min();
            first.is_some()
        });
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parked_tickets_come_back_in_order_when_there_is_room() {
        let mut quotas = Quotas::default();
        let [user, schema] = [2, 1].map(|connections| quotas.add(Allowance { connections, waiting: 3 }));
        let (both, one) = ([Some(user), Some(schema)], [Some(user), None]);
        assert_eq!(quotas.full(both), None);
        quotas.acquire(both);
        assert_eq!((quotas.full(both), quotas.full(one)), (Some(schema), None));
        quotas.acquire(one);
        assert_eq!(quotas.full(both), Some(user));
        for ticket in [9, 4] {
            quotas.comes(both);
            quotas.park(user, Ticket(ticket));
        }
        assert_eq!(quotas.next(), None);
        quotas.release(one);
        assert_eq!(quotas.next(), Some(Ticket(4)));
        quotas.unpark(user, Ticket(4));
        quotas.park(schema, Ticket(4));
        assert_eq!(quotas.next(), Some(Ticket(9)));
        quotas.acquire(one);
        assert_eq!(quotas.next(), None, "the room is taken");
        quotas.release(both);
        assert_eq!(quotas.next(), Some(Ticket(4)));
        quotas.unpark(schema, Ticket(4));
        assert_eq!(quotas.next(), Some(Ticket(9)));
    }

    #[test]
    fn so_many_may_wait() {
        let mut quotas = Quotas::default();
        let held = [Some(quotas.add(Allowance { waiting: 2, ..Allowance::ALL })), None];
        quotas.comes(held);
        assert_eq!(quotas.crowded(held), None);
        quotas.comes(held);
        assert_eq!(quotas.crowded(held), Some(2));
        quotas.goes(held);
        assert_eq!(quotas.crowded(held), None);
        assert_eq!(quotas.crowded([None, None]), None);
    }
}
