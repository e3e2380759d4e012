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
//! After every event the caller runs [`Admission::decide`] and carries out [`Admission::decisions`] in order. Then:
//! no class has both an idle connection and a ticket; and if the head of the line may dial, there is neither room nor
//! an idle connection that is not already being closed for it. `events` has what may happen, `decide` what follows.

mod decide;
mod events;
mod gate;
mod idle;
mod line;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::time::{Duration, Instant};

use slab::Slab;

use self::gate::{Ceiling, Dice, Gate};
use self::idle::IdleIndex;
use self::line::{Line, Wish};
use super::{Counts, LeaseKind};
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
}

/// What the caller must do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision<K> {
    /// Give this connection to this ticket, which has left the line.
    Grant { ticket: Ticket, grant: Grant },
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
    /// `max_waiting` tickets are in line already.
    QueueFull,
    /// Not in line.
    Refused(Cause),
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
}

#[derive(Debug)]
struct Class<K> {
    key: K,
    counts: Counts,
    /// After the server said that this account has no room, or that it is wrong.
    ceiling: Option<Ceiling>,
    /// Connections dialed in an earlier epoch are not used again.
    min_epoch: u64,
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
    last_opened: Option<K>,
    /// The earliest [`Decision::Wake`] that has not come back.
    wake_at: Option<Instant>,
    shut_down: bool,
    changed: bool,
    dice: Dice,
    decisions: Vec<Decision<K>>,
}

impl<K: Clone + Eq + Hash> Admission<K> {
    /// Nothing there, nobody waiting. The seed is for jitter.
    pub(super) fn new(limits: Limits, seed: u64) -> Self {
        Self {
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
        Counts { waiting: self.line.len(), ..self.counts }
    }

    /// Would [`Admission::decide`] have anything to do, or to hand out? Cheap.
    pub(super) fn is_settled(&self) -> bool {
        self.decisions.is_empty() && !(self.changed && self.line.len() > 0)
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
        let class = &mut self.classes[this.class.0];
        for counts in [&mut self.counts, &mut class.counts] {
            *counted(counts, old) -= 1;
            *counted(counts, state) += 1;
        }
        if old == SlotState::Idle {
            self.idle.remove(slot);
        }
        if state == SlotState::Idle {
            self.idle.insert(slot, this.class, this.left, this.since);
        }
        self.changed = true;
    }

    /// A new slot, in state `Opening`.
    fn add_slot(&mut self, class: ClassId, now: Instant) -> SlotId {
        self.counts.opening += 1;
        self.classes[class.0].counts.opening += 1;
        let (state, epoch) = (SlotState::Opening, self.epoch);
        SlotId(self.slots.insert(Slot { class, state, epoch, since: now, expires: None, owner: None, left: None }))
    }

    /// The connection of this slot is gone; its room is free.
    fn remove_slot(&mut self, slot: SlotId) -> Slot {
        let mut this = self.slots.remove(slot.0);
        for counts in [&mut self.counts, &mut self.classes[this.class.0].counts] {
            *counted(counts, this.state) -= 1;
        }
        if this.state == SlotState::Idle {
            self.idle.remove(slot);
        }
        withdraw(&mut self.owners, &mut this);
        if self.line.oldest_of(this.class).is_some() {
            self.bereft.push(this.class);
        }
        self.changed = true;
        this
    }

    /// The class with this key, made if need be.
    fn class_of(&mut self, key: &K) -> ClassId {
        if let Some(class) = self.by_key.get(key) {
            return *class;
        }
        let entry = Class { key: key.clone(), counts: Counts::default(), ceiling: None, min_epoch: 0 };
        let class = ClassId(self.classes.insert(entry));
        self.by_key.insert(key.clone(), class);
        class
    }

    /// Forgets a class that has neither slot nor ticket.
    fn forget_if_unused(&mut self, class: ClassId) {
        let unused = self.classes.get(class.0).is_some_and(|this| this.counts.total() == 0);
        if unused && self.line.oldest_of(class).is_none() {
            let this = self.classes.remove(class.0);
            self.by_key.remove(&this.key);
            self.limited.retain(|limited| *limited != class);
            self.line.hold_back(class, false);
        }
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
