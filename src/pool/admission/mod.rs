//! The pure scheduler: events and `now` in, decisions out. No runtime, no clock, no connection.
//!
//! A slot is room for one connection and what became of it:
//!
//! ```text
//!            dial             opened              take, Grant
//!   (none) ───────▶ Opening ─────────▶ Idle ◀──────────────────▶ Leased
//!                      │ failed         │    release, put_back      │ closed (discarded)
//!                      ▼                ▼ Close                     ▼
//!                   (none)           Closing ───── closed ─────▶ (none)
//! ```
//!
//! All four states count against the cap. [`Admission::enter`] is the only function that changes a slot's state.
//!
//! After every event the caller runs [`Admission::decide`] and carries out [`Admission::decisions`] in order. Then, unless
//! `max_running` statements run: no session waits for its next turn, no class has both an idle connection and a ticket
//! that is not parked; and if the head of the line may dial, there is neither room nor an idle connection that may be
//! closed for it and is not already. `events` has what may happen, `turns` what happens to a lease that is kept, `decide`
//! what follows. `line` has who waits, `parties` who is next among users, `quota` what users and schemas are limited to,
//! `running` and `adapt` how many statements run at once.

mod adapt;
mod decide;
mod events;
#[cfg(test)]
mod fairness;
mod gate;
mod idle;
mod line;
#[cfg(test)]
mod model;
mod parties;
mod quota;
mod running;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use slab::Slab;

use self::gate::{Ceiling, Dice, Gate};
use self::idle::IdleIndex;
use self::line::{Line, Wish};
use self::parties::{Parties, PartyId};
use self::quota::{Allowance, Held, QuotaId, Quotas};
use self::running::{Run, RunLimits, Running};
use super::survey::Survey;
use super::{Counts, LeaseKind, Party, SchemaId};
use crate::config::{MaxRunning, SchemaLimits};
use crate::metrics::CloseReason;

/// The number of a slot; used again when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SlotId(pub(super) usize);

/// The number of a class; used again when it has neither slot nor ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClassId(usize);

/// A place in the waiting line; never used again. Smaller is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(u64);

/// The numbers that limit the pool.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) max_connections: usize,
    pub(super) min_idle: usize,
    /// Zero is never.
    pub(super) idle_timeout: Duration,
    /// Zero is never.
    pub(super) max_lifetime: Duration,
    pub(super) open_parallel: usize,
    pub(super) max_waiting: usize,
    pub(super) max_running: MaxRunning,
    pub(super) stall_limit: Duration,
    pub(super) oversubscribe: usize,
    /// How long new work waits before it goes with open transactions.
    pub(super) kickup: Duration,
    /// How often a session that keeps its connection goes first.
    pub(super) high_priority_tickets: u32,
    pub(super) schemas: Vec<SchemaLimits>,
}

/// Who asks for a connection, and for which.
#[derive(Debug)]
pub(super) struct Asked<'a, K> {
    pub(super) class: &'a K,
    pub(super) party: &'a Party,
    pub(super) schema: Option<SchemaId>,
    pub(super) owner: u64,
    pub(super) state: u64,
}

/// What the caller must do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision<K> {
    /// Give this connection to this ticket, which has left the line.
    Grant { ticket: Ticket, grant: Grant },
    /// Let this session, which holds a connection, have its next turn.
    Resume { ticket: Ticket },
    /// Tell this ticket, which has left the line, that it gets nothing.
    Refuse { ticket: Ticket, cause: Cause },
    /// Close this connection, then report [`Admission::closed`].
    Close { slot: SlotId, reason: CloseReason },
    /// Dial for this class, then report [`Admission::opened`] or [`Admission::failed`].
    Dial { slot: SlotId, class: K },
    /// Report [`Admission::woke`] at this time.
    Wake { at: Instant },
}

/// A connection for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) slot: SlotId,
    pub(super) kind: LeaseKind,
}

/// Why a ticket gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The dial that failed just now.
    ThisDial,
    /// The server is out of reach since the last such failure.
    Unreachable,
    /// The pool is closed.
    Closed,
}

/// The answer to [`Admission::join`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// In line.
    Waiting(Ticket),
    /// So many tickets are in line already: as many as may be.
    QueueFull { limit: usize, whose: Whose },
    /// Not in line.
    Refused(Cause),
}

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// `scheduler.max_waiting`
    Everybody,
    /// `max_waiting` of a user.
    User,
    /// `max_waiting` of a schema.
    Schema,
}

/// The answer to [`Admission::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resumed {
    /// Its turn may begin.
    Now,
    /// When this ticket is called.
    Waiting(Ticket),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Opening,
    Idle,
    Leased,
    Closing,
}

#[derive(Debug)]
struct Slot {
    class: ClassId,
    state: SlotState,
    /// The epoch in which it was dialed.
    epoch: u64,
    /// When it was dialed, or last came to rest.
    since: Instant,
    expires: Option<Instant>,
    /// Who had it last, if that one has had no other connection since.
    owner: Option<u64>,
    /// The state it was left in, if it was ever used.
    left: Option<u64>,
    /// While leased.
    lease: LeaseState,
}

/// What a lease costs.
#[derive(Clone, Copy, Debug)]
struct LeaseState {
    began: Instant,
    run: Run,
    held: Held,
    /// What its party was charged.
    price: Option<u64>,
    /// How often its session went first.
    went_first: u32,
    /// Since when its session waits for its next turn.
    returns: Option<Instant>,
}

#[derive(Debug)]
struct Class<K> {
    key: K,
    party: PartyId,
    counts: Counts,
    /// After the server said that this account has no room, or that it is wrong.
    ceiling: Option<Ceiling>,
    /// Connections dialed in an earlier epoch are not used again.
    min_epoch: u64,
    /// It is in [`Admission::ready`].
    ready: bool,
}

/// A map whose keys are numbers of our own making: nobody outside chooses them, so a fast hash will do.
pub(super) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// Decides who may use which connection.
#[derive(Debug)]
pub(super) struct Admission<K> {
    limits: Limits,
    slots: Slab<Slot>,
    counts: Counts,
    classes: Slab<Class<K>>,
    by_key: Map<K, ClassId>,
    /// The slot that each owner had last. An entry here and [`Slot::owner`] come and go together.
    owners: Map<u64, SlotId>,
    idle: IdleIndex,
    line: Line,
    /// Sessions that keep their connection and wait for their next turn, by when new work that came then would be served.
    returning: BTreeMap<(Instant, Ticket), SlotId>,
    parties: Parties,
    quotas: Quotas,
    /// By [`SchemaId`].
    schemas: Vec<Option<QuotaId>>,
    running: Running,
    gate: Gate,
    /// After the server said that it has no room.
    ceiling: Option<Ceiling>,
    /// Classes with a ceiling.
    limited: Vec<ClassId>,
    /// Classes that may have both an idle connection and a ticket.
    ready: Vec<ClassId>,
    /// Classes that may have tickets but no connection any more.
    bereft: Vec<ClassId>,
    epoch: u64,
    min_epoch: u64,
    /// The class that `min_idle` is for: the one that a connection was opened for last.
    last_opened: Option<(K, Party)>,
    /// The time of the latest event that told it.
    now: Instant,
    /// The earliest [`Decision::Wake`] that has not come back.
    wake_at: Option<Instant>,
    shut_down: bool,
    changed: bool,
    dice: Dice,
    decisions: Vec<Decision<K>>,
}

impl<K: Clone + Eq + Hash> Admission<K> {
    /// Nothing there, nobody waiting. The seed is for jitter.
    pub(super) fn new(limits: Limits, seed: u64, now: Instant) -> Self {
        let Limits { max_running, stall_limit, oversubscribe, max_connections: most, .. } = limits;
        let mut quotas = Quotas::default();
        let mut quota = |schema: &SchemaLimits| {
            let allowed = Allowance::configured(schema.max_connections, schema.max_waiting);
            (allowed != Allowance::ALL).then(|| quotas.add(allowed))
        };
        Self {
            schemas: limits.schemas.iter().map(&mut quota).collect(),
            quotas,
            running: Running::new(RunLimits { max_running, stall_limit, oversubscribe, most }, now),
            returning: BTreeMap::new(),
            parties: Parties::default(),
            now,
            limits,
            slots: Slab::new(),
            counts: Counts::default(),
            classes: Slab::new(),
            by_key: Map::default(),
            owners: Map::default(),
            idle: IdleIndex::default(),
            line: Line::new(),
            gate: Gate::new(),
            ceiling: None,
            limited: Vec::new(),
            ready: Vec::new(),
            bereft: Vec::new(),
            epoch: 0,
            min_epoch: 0,
            last_opened: None,
            wake_at: None,
            shut_down: false,
            changed: false,
            dice: Dice::new(seed),
            decisions: Vec::new(),
        }
    }

    /// What there is now.
    pub(super) fn counts(&self) -> Counts {
        let (running, stalled, _) = self.running.counts();
        Counts { waiting: self.line.len(), returning: self.returning.len(), running, stalled, ..self.counts }
    }

    /// What operators want to know now and then.
    pub(super) fn survey(&self, now: Instant) -> Survey {
        let waited = |since: Option<Instant>| since.map(|since| now.saturating_duration_since(since));
        let returning = self.returning.values().filter_map(|slot| self.slots[slot.0].lease.returns);
        Survey {
            limit: (!self.running.is_off()).then(|| self.running.limit()),
            gradient: self.running.adapted().map(|adapted| (adapted.gradient, adapted.samples)),
            stalls: self.running.counts().2,
            oldest: waited(self.line.oldest_since()).unwrap_or_default(),
            oldest_returning: waited(returning.min()).unwrap_or_default(),
            users: self.parties.survey(),
        }
    }

    /// Would [`Admission::decide`] have anything to do, or to hand out? Cheap.
    pub(super) fn is_settled(&self) -> bool {
        self.decisions.is_empty() && !(self.changed && self.somebody_waits())
    }

    /// Does anybody wait for anything?
    fn somebody_waits(&self) -> bool {
        self.line.len() > 0 || !self.returning.is_empty()
    }

    /// What to do, in this order.
    pub(super) fn decisions(&mut self) -> Vec<Decision<K>> {
        std::mem::take(&mut self.decisions)
    }

    /// Every idle connection, the one idle for longest first.
    pub(super) fn idle(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.idle.iter()
    }

    /// Changes a slot's state, and with it every number and index that depends on it.
    fn enter(&mut self, slot: SlotId, state: SlotState) {
        let this = &mut self.slots[slot.0];
        let old = std::mem::replace(&mut this.state, state);
        let (class, lease) = (this.class, this.lease);
        for counts in [&mut self.counts, &mut self.classes[class.0].counts] {
            *counted(counts, old) -= 1;
            *counted(counts, state) += 1;
        }
        match old {
            SlotState::Idle => drop(self.idle.remove(slot)),
            SlotState::Leased => self.lease_ended(slot, lease, class),
            SlotState::Opening | SlotState::Closing => {}
        }
        let this = &self.slots[slot.0];
        if state == SlotState::Idle {
            self.idle.insert(slot, this.class, this.left, this.since);
        }
        self.changed = true;
    }

    /// A new slot, in state `Opening`.
    fn add_slot(&mut self, class: ClassId, now: Instant) -> SlotId {
        self.counts.opening += 1;
        self.classes[class.0].counts.opening += 1;
        self.parties.slots(self.classes[class.0].party, 1);
        let (state, epoch, lease) = (SlotState::Opening, self.epoch, LeaseState::new(now));
        SlotId(self.slots.insert(Slot {
            class,
            state,
            epoch,
            since: now,
            expires: None,
            owner: None,
            left: None,
            lease,
        }))
    }

    /// The connection of this slot is gone; its room is free.
    fn remove_slot(&mut self, slot: SlotId) -> Slot {
        let mut this = self.slots.remove(slot.0);
        for counts in [&mut self.counts, &mut self.classes[this.class.0].counts] {
            *counted(counts, this.state) -= 1;
        }
        match this.state {
            SlotState::Idle => drop(self.idle.remove(slot)),
            SlotState::Leased => self.lease_ended(slot, this.lease, this.class),
            SlotState::Opening | SlotState::Closing => {}
        }
        self.parties.slots(self.classes[this.class.0].party, -1);
        withdraw(&mut self.owners, &mut this);
        if self.line.has_any(this.class) {
            self.bereft.push(this.class);
        }
        self.changed = true;
        this
    }

    /// The class with this key, made if need be.
    fn class_of(&mut self, key: &K, party: &Party) -> ClassId {
        if let Some(class) = self.by_key.get(key) {
            return *class;
        }
        let class = ClassId(self.classes.vacant_key());
        let party = self.parties.enter(party, class, |allowed| self.quotas.add(allowed));
        let counts = Counts::default();
        self.classes.insert(Class { key: key.clone(), party, counts, ceiling: None, min_epoch: 0, ready: false });
        self.by_key.insert(key.clone(), class);
        self.line.set_pass(class, self.parties.pass(party));
        class
    }

    /// Forgets a class that has neither slot nor ticket.
    fn forget_if_unused(&mut self, class: ClassId) {
        let unused = self.classes.get(class.0).is_some_and(|this| this.counts.total() == 0);
        if unused && !self.line.has_any(class) {
            let this = self.classes.remove(class.0);
            self.by_key.remove(&this.key);
            self.limited.retain(|limited| *limited != class);
            self.ready.retain(|ready| *ready != class);
            self.line.hold_back(class, false);
            if let Some(quota) = self.parties.leave(this.party, class) {
                self.quotas.remove(quota);
            }
        }
    }

    /// This class may have both an idle connection and a ticket.
    fn mark_ready(&mut self, class: ClassId) {
        if !std::mem::replace(&mut self.classes[class.0].ready, true) {
            self.ready.push(class);
        }
    }

    /// What a lease of this class, for a session in this schema, counts against.
    fn held_by(&self, class: ClassId, schema: Option<SchemaId>) -> Held {
        let schema = schema.and_then(|schema| self.schemas.get(usize::from(schema.0)).copied().flatten());
        [self.parties.quota(self.classes[class.0].party), schema]
    }
}

impl LeaseState {
    fn new(now: Instant) -> Self {
        Self { began: now, run: Run::Paused, held: [None, None], price: None, went_first: 0, returns: None }
    }
}

/// The number of slots in this state.
fn counted(counts: &mut Counts, state: SlotState) -> &mut usize {
    match state {
        SlotState::Opening => &mut counts.opening,
        SlotState::Idle => &mut counts.idle,
        SlotState::Leased => &mut counts.leased,
        SlotState::Closing => &mut counts.closing,
    }
}

/// This slot is no longer its owner's.
fn withdraw(owners: &mut Map<u64, SlotId>, slot: &mut Slot) {
    if let Some(owner) = slot.owner.take() {
        owners.remove(&owner);
    }
}
