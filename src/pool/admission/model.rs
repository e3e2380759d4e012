//! Random events against a model: the cap holds, the line is served in order, no ticket is lost, all numbers agree.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::pool::FailureKind;

/// Whoever looks at a connection without being a session.
const NOBODY: u64 = u64::MAX;
const CLASSES: [&str; 3] = ["a", "b", "c"];

/// One event; the numbers choose among what there is.
#[derive(Clone, Debug)]
enum Event {
    Ask { class: usize, owner: u64, state: u64 },
    GiveUp(usize),
    Release { lease: usize, state: u64 },
    PutBack(usize),
    Inspect,
    Inspected { lease: usize, state: u64 },
    Discard(usize),
    DialEnds { dial: usize, result: Option<FailureKind> },
    DialStops(usize),
    CloseEnds(usize),
    FindDead(usize),
    Pass(u64),
    RetireAll,
    RetireClass(usize),
    Keep,
}

fn event() -> impl Strategy<Value = Event> {
    use FailureKind::{Account, AccountFull, Full, Other, Refused, Timeout};
    let any = || 0..100usize;
    let failure = prop::sample::select(vec![Refused, Timeout, Full, AccountFull, Account, Other]);
    let result = prop_oneof![3 => Just(None), 1 => failure.prop_map(Some)];
    prop_oneof![
        12 => (0..3usize, 0..6u64, 0..3u64).prop_map(|(class, owner, state)| Event::Ask { class, owner, state }),
        3 => any().prop_map(Event::GiveUp),
        8 => (any(), 0..3u64).prop_map(|(lease, state)| Event::Release { lease, state }),
        1 => any().prop_map(Event::PutBack),
        1 => Just(Event::Inspect),
        1 => (any(), 0..3u64).prop_map(|(lease, state)| Event::Inspected { lease, state }),
        2 => any().prop_map(Event::Discard),
        8 => (any(), result).prop_map(|(dial, result)| Event::DialEnds { dial, result }),
        1 => any().prop_map(Event::DialStops),
        5 => any().prop_map(Event::CloseEnds),
        1 => any().prop_map(Event::FindDead),
        3 => (0..300u64).prop_map(Event::Pass),
        1 => Just(Event::RetireAll),
        1 => (0..3usize).prop_map(Event::RetireClass),
        1 => Just(Event::Keep),
    ]
}

/// What the outside world knows of one slot.
#[derive(Clone, Debug)]
struct Seen {
    state: SlotState,
    class: usize,
    /// Which connection: a number never used again.
    conn: u64,
    /// Who holds it, while leased.
    holder: u64,
    /// Who released it last, with which state.
    last: Option<(u64, u64)>,
}

struct World {
    admission: Admission<&'static str>,
    now: Instant,
    max_connections: usize,
    open_parallel: usize,
    slots: BTreeMap<SlotId, Seen>,
    /// Class, owner and state of each ticket in line.
    line: BTreeMap<Ticket, (usize, u64, u64)>,
    /// The connection that each owner was given, or gave back, last.
    latest: HashMap<u64, u64>,
    wakes: Vec<Instant>,
    next_conn: u64,
}

impl World {
    fn new(max_connections: usize, open_parallel: usize, min_idle: usize) -> Self {
        let limits = Limits {
            max_connections,
            min_idle,
            idle_timeout: Duration::from_millis(500),
            max_lifetime: Duration::from_secs(2),
            open_parallel,
            max_waiting: 20,
        };
        Self {
            admission: Admission::new(limits, 5),
            now: Instant::now(),
            max_connections,
            open_parallel,
            slots: BTreeMap::new(),
            line: BTreeMap::new(),
            latest: HashMap::new(),
            wakes: Vec::new(),
            next_conn: 0,
        }
    }

    /// The `n`th slot in this state, if there is any.
    fn nth(&self, state: SlotState, n: usize) -> Option<SlotId> {
        let slots = self.slots.iter().filter(|(_, seen)| seen.state == state).map(|(slot, _)| *slot);
        let slots = slots.collect::<Vec<_>>();
        slots.get(n.checked_rem(slots.len())?).copied()
    }

    fn happen(&mut self, event: &Event) {
        self.tell(event);
        self.admission.decide(self.now);
        for decision in self.admission.decisions() {
            self.obey(decision);
        }
        self.check();
    }

    fn tell(&mut self, event: &Event) {
        let now = self.now;
        match *event {
            Event::Ask { class, owner, state } => self.ask(class, owner, state),
            Event::GiveUp(n) => {
                let tickets = self.line.keys().copied().collect::<Vec<_>>();
                if let Some(n) = n.checked_rem(tickets.len()) {
                    assert!(self.admission.leave(tickets[n]));
                    self.line.remove(&tickets[n]);
                }
            }
            Event::Release { lease, state } => {
                let Some(slot) = self.nth(SlotState::Leased, lease) else { return };
                let seen = self.slots.get_mut(&slot).unwrap();
                (seen.state, seen.last) = (SlotState::Idle, Some((seen.holder, state)));
                self.latest.insert(seen.holder, seen.conn);
                self.admission.release(slot, seen.holder, state, now);
            }
            Event::PutBack(lease) => {
                let Some(slot) = self.nth(SlotState::Leased, lease) else { return };
                self.slots.get_mut(&slot).unwrap().state = SlotState::Idle;
                self.admission.put_back(slot, now);
            }
            Event::Inspect => {
                let Some(grant) = self.admission.inspect() else { return };
                let seen = self.slots.get_mut(&grant.slot).unwrap();
                assert_eq!(seen.state, SlotState::Idle);
                (seen.state, seen.holder) = (SlotState::Leased, NOBODY);
            }
            Event::Inspected { lease, state } => {
                let Some(slot) = self.nth(SlotState::Leased, lease) else { return };
                let seen = self.slots.get_mut(&slot).unwrap();
                if seen.holder == NOBODY {
                    (seen.state, seen.last) = (SlotState::Idle, Some((NOBODY, state)));
                    self.admission.inspected(slot, state, now);
                }
            }
            Event::Discard(lease) => self.gone(SlotState::Leased, lease, |admission, slot| admission.closed(slot)),
            Event::CloseEnds(n) => self.gone(SlotState::Closing, n, |admission, slot| admission.closed(slot)),
            Event::DialEnds { dial, result: Some(kind) } => {
                self.gone(SlotState::Opening, dial, |admission, slot| admission.failed(slot, Some(kind), now));
            }
            Event::DialStops(dial) => {
                self.gone(SlotState::Opening, dial, |admission, slot| admission.failed(slot, None, now));
            }
            Event::DialEnds { dial, result: None } => {
                let Some(slot) = self.nth(SlotState::Opening, dial) else { return };
                self.slots.get_mut(&slot).unwrap().state = SlotState::Idle;
                self.admission.opened(slot, now);
            }
            Event::FindDead(n) => {
                let Some(slot) = self.nth(SlotState::Idle, n) else { return };
                assert!(self.admission.lost(slot));
            }
            Event::Pass(milliseconds) => self.pass(Duration::from_millis(milliseconds)),
            Event::RetireAll => self.admission.retire_all(),
            Event::RetireClass(class) => self.admission.retire_class(&CLASSES[class]),
            Event::Keep => {
                self.admission.expire(now);
                self.admission.refill(now);
            }
        }
    }

    fn ask(&mut self, class: usize, owner: u64, state: u64) {
        match self.admission.take(&CLASSES[class], owner, state) {
            Some(grant) => {
                assert!(self.line.values().all(|(other, ..)| *other != class), "overtaken by a newcomer");
                self.granted(grant, class, owner, state);
            }
            None => match self.admission.join(&CLASSES[class], owner, state, false, self.now) {
                Joined::Waiting(ticket) => {
                    assert!(self.line.keys().all(|other| *other < ticket));
                    self.line.insert(ticket, (class, owner, state));
                }
                Joined::QueueFull => assert_eq!(self.line.len(), 20),
                Joined::Refused(cause) => assert_eq!(cause, Cause::Unreachable),
            },
        }
    }

    fn gone(&mut self, state: SlotState, n: usize, tell: impl FnOnce(&mut Admission<&'static str>, SlotId)) {
        let Some(slot) = self.nth(state, n) else { return };
        self.slots.remove(&slot);
        tell(&mut self.admission, slot);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        let due = self.wakes.iter().filter(|at| **at <= now).count();
        self.wakes.retain(|at| *at > now);
        (0..due).for_each(|_| self.admission.woke(now));
    }

    fn obey(&mut self, decision: Decision<&'static str>) {
        match decision {
            Decision::Grant { ticket, grant } => {
                let (class, owner, state) = self.line.remove(&ticket).expect("in line");
                let oldest = self.line.iter().find(|(_, (other, ..))| *other == class);
                assert!(oldest.is_none_or(|(other, _)| ticket < *other), "overtaken in line");
                self.granted(grant, class, owner, state);
            }
            Decision::Refuse { ticket, cause } => {
                let (class, ..) = self.line.remove(&ticket).expect("in line");
                let open =
                    |seen: &Seen| seen.class == class && matches!(seen.state, SlotState::Idle | SlotState::Leased);
                assert!(!self.slots.values().any(open), "could be served: {cause:?}");
            }
            Decision::Close { slot, .. } => {
                let seen = self.slots.get_mut(&slot).unwrap();
                assert_eq!(seen.state, SlotState::Idle);
                seen.state = SlotState::Closing;
            }
            Decision::Dial { slot, class } => {
                let class = CLASSES.iter().position(|known| *known == class).unwrap();
                self.next_conn += 1;
                let seen = Seen { state: SlotState::Opening, class, conn: self.next_conn, holder: 0, last: None };
                assert!(self.slots.insert(slot, seen).is_none(), "the slot is in use");
            }
            Decision::Wake { at } => {
                assert!(at > self.now);
                self.wakes.push(at);
            }
        }
    }

    fn granted(&mut self, grant: Grant, class: usize, owner: u64, state: u64) {
        let seen = self.slots.get_mut(&grant.slot).unwrap();
        assert_eq!((seen.state, seen.class), (SlotState::Idle, class));
        match (grant.kind, seen.last) {
            (LeaseKind::Own, Some((last, _))) => {
                assert_eq!((last, self.latest.get(&owner)), (owner, Some(&seen.conn)), "not its latest");
            }
            (LeaseKind::Fresh, None) => {}
            (LeaseKind::SameState, Some((_, left))) => assert_eq!(left, state),
            (LeaseKind::OtherState, Some((_, left))) => assert_ne!(left, state),
            mismatch => panic!("{mismatch:?}"),
        }
        (seen.state, seen.holder) = (SlotState::Leased, owner);
        self.latest.insert(owner, seen.conn);
    }

    fn check(&self) {
        let counts = self.admission.counts();
        let count = |state| self.slots.values().filter(|seen| seen.state == state).count();
        let seen = Counts {
            opening: count(SlotState::Opening),
            idle: count(SlotState::Idle),
            leased: count(SlotState::Leased),
            closing: count(SlotState::Closing),
            waiting: self.line.len(),
        };
        assert_eq!(counts, seen);
        assert!(counts.total() <= self.max_connections && counts.opening <= self.open_parallel);
        for class in 0..CLASSES.len() {
            let waits = self.line.values().any(|(other, ..)| *other == class);
            let idle = self.slots.values().any(|seen| seen.class == class && seen.state == SlotState::Idle);
            assert!(!(waits && idle), "an idle connection beside a ticket");
        }
        let admission = &self.admission;
        assert_eq!(admission.idle().count(), counts.idle);
        if admission.may_dial(self.now) && admission.line.head().is_some() {
            assert!(!admission.has_room(self.now), "room for a dial, and nobody dials");
            let wanted = admission.line.wanting().min(self.open_parallel - counts.opening);
            assert!(counts.idle == 0 || counts.closing >= wanted, "room could be made");
        }
        for (owner, slot) in &admission.owners {
            assert_eq!(admission.slots[slot.0].owner, Some(*owner));
        }
        let owned = admission.slots.iter().filter(|(_, slot)| slot.owner.is_some()).count();
        assert_eq!(owned, admission.owners.len());
        for (_, class) in &admission.classes {
            assert!(class.counts.total() > 0 || self.line.values().any(|(used, ..)| CLASSES[*used] == class.key));
        }
    }

    /// The server works, everybody behaves, and nobody new comes: the line must empty, woken only when asked for.
    fn run_dry(&mut self) {
        for _ in 0..2000 {
            if self.line.is_empty() {
                return;
            }
            let event = if self.nth(SlotState::Closing, 0).is_some() {
                Event::CloseEnds(0)
            } else if self.nth(SlotState::Opening, 0).is_some() {
                Event::DialEnds { dial: 0, result: None }
            } else if self.nth(SlotState::Leased, 0).is_some() {
                Event::Release { lease: 0, state: 0 }
            } else {
                let at = self.wakes.iter().min().expect("tickets wait, and nothing will happen");
                Event::Pass(at.duration_since(self.now).as_millis() as u64 + 1)
            };
            self.happen(&event);
        }
        panic!("tickets are left: {:?}", self.line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_order_of_events_keeps_the_promises(
        max_connections in 1..6usize,
        open_parallel in 1..4usize,
        min_idle in 0..2usize,
        events in prop::collection::vec(event(), 1..150),
    ) {
        let mut world = World::new(max_connections, open_parallel, min_idle);
        for event in &events {
            world.happen(event);
        }
        world.run_dry();
    }
}
