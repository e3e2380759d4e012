//! Fairness between users: who gets the next connection when several wait.
//!
//! Weighted fair queueing by time. Every party (a user) has a *pass*: the time that it has held connections while others
//! waited, divided by its weight. The one with the smallest pass is next; within one party the oldest ticket. A grant
//! advances the pass at once by what such a lease usually takes, and its end corrects that to what it took; so a party
//! that runs long reports gets as much of the server as one that reads single rows, however many clients either has. Who
//! was away gathers no credit: a party that comes to the line starts at the pass of the one served last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;

use super::quota::{Allowance, QuotaId};
use super::{ClassId, Party};
use crate::pool::survey::UserSurvey;

/// The number of a party; used again when none of its classes is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartyId(usize);

/// What a lease is thought to take before any has ended, in nanoseconds.
const FIRST_GUESS: u64 = 1_000_000;

/// Weights multiply a pass by this over themselves, so that division loses nothing.
const SCALE: u128 = 1_000;

#[derive(Debug)]
struct Entry {
    party: Party,
    weight: u128,
    pass: u128,
    /// What its leases take, in nanoseconds: a moving mean.
    usual: u64,
    tickets: usize,
    slots: usize,
    classes: Vec<ClassId>,
    quota: Option<QuotaId>,
    allowed: Allowance,
}

/// Every user that has connections or tickets.
#[derive(Debug, Default)]
pub(super) struct Parties {
    entries: Slab<Entry>,
    /// Names come from clients: a hash that they cannot play with.
    by_name: HashMap<Arc<str>, PartyId>,
    /// The pass of the party that was served last.
    clock: u128,
    /// The sum of all weights.
    weights: u128,
}

impl Parties {
    /// The party of a class that is new; `quota` makes its quota, if it needs one and has none yet.
    pub(super) fn enter(&mut self, party: &Party, class: ClassId, quota: impl FnOnce(Allowance) -> QuotaId) -> PartyId {
        if let Some(id) = self.by_name.get(&party.name).copied() {
            self.entries[id.0].classes.push(class);
            return id;
        }
        let allowed = Allowance::configured(party.max_connections, party.max_waiting);
        let entry = Entry {
            party: party.clone(),
            weight: u128::from(party.weight.max(1)),
            pass: self.clock,
            usual: FIRST_GUESS,
            tickets: 0,
            slots: 0,
            classes: vec![class],
            quota: (allowed != Allowance::ALL).then(|| quota(allowed)),
            allowed,
        };
        self.weights += entry.weight;
        let id = PartyId(self.entries.insert(entry));
        self.by_name.insert(Arc::clone(&party.name), id);
        id
    }

    /// A class is gone. With its party's last one the party goes, too, and its quota is returned.
    pub(super) fn leave(&mut self, party: PartyId, class: ClassId) -> Option<QuotaId> {
        let entry = &mut self.entries[party.0];
        entry.classes.retain(|it| *it != class);
        if !entry.classes.is_empty() {
            return None;
        }
        debug_assert!(entry.tickets == 0 && entry.slots == 0);
        let gone = self.entries.remove(party.0);
        self.by_name.remove(&gone.party.name);
        self.weights -= gone.weight;
        gone.quota
    }

    /// Is there more than one?
    pub(super) fn are_several(&self) -> bool {
        self.entries.len() > 1
    }

    /// A party's quota.
    pub(super) fn quota(&self, party: PartyId) -> Option<QuotaId> {
        self.entries[party.0].quota
    }

    /// All, for operators.
    pub(super) fn survey(&self) -> Vec<UserSurvey> {
        let survey = self.entries.iter().map(|(_, entry)| UserSurvey {
            name: Arc::clone(&entry.party.name),
            listed: entry.party.listed,
            connections: entry.slots,
            waiting: entry.tickets,
        });
        survey.collect()
    }

    /// Who it is.
    pub(super) fn party(&self, party: PartyId) -> Party {
        self.entries[party.0].party.clone()
    }

    /// A party's pass.
    pub(super) fn pass(&self, party: PartyId) -> u128 {
        self.entries[party.0].pass
    }

    /// Its classes, all of which have its pass.
    pub(super) fn classes(&self, party: PartyId) -> &[ClassId] {
        &self.entries[party.0].classes
    }

    /// A ticket of this party came (`1`) or went (`-1`). True if its pass has changed.
    pub(super) fn tickets(&mut self, party: PartyId, change: isize) -> bool {
        let (clock, entry) = (self.clock, &mut self.entries[party.0]);
        let first = entry.tickets == 0 && change > 0;
        entry.tickets = entry.tickets.checked_add_signed(change).expect("a ticket goes once");
        let late = first && entry.pass < clock;
        if late {
            entry.pass = clock;
        }
        late
    }

    /// A connection of this party came (`1`) or went (`-1`).
    pub(super) fn slots(&mut self, party: PartyId, change: isize) {
        let slots = &mut self.entries[party.0].slots;
        *slots = slots.checked_add_signed(change).expect("a connection goes once");
    }

    /// May this party have one more connection, open or idle?
    pub(super) fn has_room(&self, party: PartyId) -> bool {
        let entry = &self.entries[party.0];
        entry.slots < entry.allowed.connections
    }

    /// Has this party more connections than its weight gives it of so many?
    pub(super) fn is_over_its_share(&self, party: PartyId, of: usize) -> bool {
        let entry = &self.entries[party.0];
        entry.slots as u128 * self.weights > of as u128 * entry.weight
    }

    /// A lease begins while somebody waits: its price, to be handed to [`Parties::paid`] when it ends.
    pub(super) fn charge(&mut self, party: PartyId) -> u64 {
        let entry = &mut self.entries[party.0];
        self.clock = self.clock.max(entry.pass);
        let price = entry.usual;
        entry.pass += u128::from(price) * SCALE / entry.weight;
        price
    }

    /// The lease with this price has ended after `took`.
    pub(super) fn paid(&mut self, party: PartyId, price: u64, took: Duration) {
        let entry = &mut self.entries[party.0];
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let pass = entry.pass + u128::from(took) * SCALE / entry.weight;
        entry.pass = pass.saturating_sub(u128::from(price) * SCALE / entry.weight);
        entry.usual = entry.usual - entry.usual / 8 + took / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn party(name: &str, weight: u32) -> Party {
        Party { name: name.into(), weight, ..Party::default() }
    }

    /// Serves whoever is next, `times`, each for as long as its leases take; the time that each party got.
    fn serve(parties: &mut Parties, takes: &[(PartyId, Duration)], times: usize) -> Vec<Duration> {
        let mut got = vec![Duration::ZERO; takes.len()];
        for _ in 0..times {
            let next = (0..takes.len()).min_by_key(|n| parties.pass(takes[*n].0)).unwrap();
            let (party, took) = takes[next];
            let price = parties.charge(party);
            parties.paid(party, price, took);
            got[next] += took;
        }
        got
    }

    #[test]
    fn time_is_shared_by_weight() {
        for (weights, takes) in [([1, 1], [1, 1]), ([1, 1], [1, 500]), ([3, 1], [7, 2]), ([1, 10], [20, 1])] {
            let mut parties = Parties::default();
            let ids = [0, 1].map(|n| {
                parties.enter(&party(["a", "b"][n], weights[n]), ClassId(n), |_| unreachable!("nothing is limited"))
            });
            let takes = [(ids[0], takes[0] * MS), (ids[1], takes[1] * MS)];
            let got = serve(&mut parties, &takes, 20_000);
            let share = got[0].as_secs_f64() / got[1].as_secs_f64();
            let wanted = f64::from(weights[0]) / f64::from(weights[1]);
            assert!((share / wanted - 1.0).abs() < 0.1, "{weights:?} {takes:?}: {share}");
        }
    }

    #[test]
    fn who_was_away_has_no_credit() {
        let mut parties = Parties::default();
        let none = |_| unreachable!("nothing is limited");
        let a = parties.enter(&party("a", 1), ClassId(0), none);
        let b = parties.enter(&party("b", 1), ClassId(1), none);
        serve(&mut parties, &[(a, MS)], 10_000);
        assert!(parties.tickets(b, 1), "its pass moves up");
        let got = serve(&mut parties, &[(a, MS), (b, MS)], 1_000);
        assert!(got[1] <= 520 * MS, "{got:?}");
        assert!(!parties.tickets(b, 1) && !parties.tickets(b, -1));
    }

    #[test]
    fn shares_follow_the_weights() {
        let mut parties = Parties::default();
        let none = |_| unreachable!("nothing is limited");
        let a = parties.enter(&party("a", 3), ClassId(0), none);
        let b = parties.enter(&party("b", 1), ClassId(1), none);
        assert_eq!(parties.enter(&party("a", 3), ClassId(2), none), a);
        parties.slots(a, 12);
        parties.slots(b, 5);
        assert!(!parties.is_over_its_share(a, 16) && parties.is_over_its_share(b, 16));
        parties.slots(a, -12);
        assert_eq!((parties.leave(a, ClassId(0)), parties.are_several()), (None, true));
        assert_eq!((parties.leave(a, ClassId(2)), parties.are_several()), (None, false));
        assert!(!parties.is_over_its_share(b, 5));
    }

    #[test]
    fn a_quota_is_made_only_where_something_is_limited() {
        let (mut parties, mut quotas) = (Parties::default(), super::super::quota::Quotas::default());
        let limited = Party { max_connections: 2, ..party("a", 1) };
        let a = parties.enter(&limited, ClassId(0), |allowed| quotas.add(allowed));
        assert!(parties.quota(a).is_some() && parties.has_room(a));
        parties.slots(a, 2);
        assert!(!parties.has_room(a));
        parties.slots(a, -2);
        assert_eq!(parties.quota(a), parties.leave(a, ClassId(0)));
    }
}
