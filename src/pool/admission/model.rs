//! Random events against a model: the cap holds, the line is served in order, no ticket is lost, all numbers agree.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::tests::limits;
use super::*;
use crate::pool::FailureKind;

/// Whoever looks at a connection without being a session.
const NOBODY: u64 = u64::MAX;
const CLASSES: [&str; 3] = ["a", "b", "c"];

/// One event; the numbers choose among what there is.
#[derive(Clone, Debug)]
enum Event {
    Ask { class: usize, owner: u64, state: u64, schema: bool },
    GiveUp(usize),
    Release { lease: usize, state: u64 },
    PutBack(usize),
    Inspect,
    Inspected { lease: usize, state: u64 },
    Discard(usize),
    Pause(usize),
    Resume(usize),
    Stay(usize),
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
    let number = || 0..100usize;
    let failure = prop::sample::select(vec![Refused, Timeout, Full, AccountFull, Account, Other]);
    let result = prop_oneof![3 => Just(None), 1 => failure.prop_map(Some)];
    prop_oneof![
        12 => (0..3usize, 0..6u64, 0..3u64, any::<bool>())
            .prop_map(|(class, owner, state, schema)| Event::Ask { class, owner, state, schema }),
        3 => number().prop_map(Event::GiveUp),
        8 => (number(), 0..3u64).prop_map(|(lease, state)| Event::Release { lease, state }),
        1 => number().prop_map(Event::PutBack),
        1 => Just(Event::Inspect),
        1 => (number(), 0..3u64).prop_map(|(lease, state)| Event::Inspected { lease, state }),
        2 => number().prop_map(Event::Discard),
        4 => number().prop_map(Event::Pause),
        4 => number().prop_map(Event::Resume),
        1 => number().prop_map(Event::Stay),
        8 => (number(), result).prop_map(|(dial, result)| Event::DialEnds { dial, result }),
        1 => number().prop_map(Event::DialStops),
        5 => number().prop_map(Event::CloseEnds),
        1 => number().prop_map(Event::FindDead),
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
    /// While leased: is it for a session in the limited schema?
    schema: bool,
    /// While leased: does its turn run?
    runs: bool,
    /// While leased: the ticket by which its session waits for its next turn.
    returns: Option<Ticket>,
}

/// What the line holds.
#[derive(Clone, Copy, Debug)]
struct Stands {
    class: usize,
    owner: u64,
    state: u64,
    schema: bool,
}

/// The limits of a world.
#[derive(Clone, Copy, Debug)]
struct Size {
    max_connections: usize,
    open_parallel: usize,
    min_idle: usize,
    /// 0: not limited.
    max_running: usize,
    oversubscribe: usize,
    /// Connections of sessions in the limited schema.
    schema: usize,
    /// Connections of the party of the last class.
    party: usize,
}

struct World {
    admission: Admission<&'static str>,
    now: Instant,
    size: Size,
    slots: BTreeMap<SlotId, Seen>,
    /// Every ticket in line.
    line: BTreeMap<Ticket, Stands>,
    /// The connection that each owner was given, or gave back, last.
    latest: HashMap<u64, u64>,
    wakes: Vec<Instant>,
    next_conn: u64,
}

impl World {
    fn new(size: Size) -> Self {
        let schema = SchemaLimits { name: "s".into(), max_connections: size.schema, ..SchemaLimits::default() };
        let max_running = if size.max_running == 0 { MaxRunning::Off } else { MaxRunning::At(size.max_running) };
        let limits = Limits {
            min_idle: size.min_idle,
            idle_timeout: Duration::from_millis(500),
            max_lifetime: Duration::from_secs(2),
            max_waiting: 20,
            max_running,
            oversubscribe: size.oversubscribe,
            kickup: Duration::from_millis(150),
            high_priority_tickets: 2,
            schemas: vec![schema],
            ..limits(size.max_connections, size.open_parallel)
        };
        let now = Instant::now();
        Self {
            admission: Admission::new(limits, 5, now),
            now,
            size,
            slots: BTreeMap::new(),
            line: BTreeMap::new(),
            latest: HashMap::new(),
            wakes: Vec::new(),
            next_conn: 0,
        }
    }

    /// The first two classes are one party's, the last is another's, which is limited.
    fn party(&self, class: usize) -> Party {
        let limited = class == 2;
        let name = if limited { "limited" } else { "free" }.into();
        Party { name, max_connections: if limited { self.size.party } else { 0 }, weight: 2, ..Party::default() }
    }

    fn asked<R>(
        &mut self,
        stands: Stands,
        ask: impl FnOnce(&mut Admission<&'static str>, &Asked<'_, &'static str>, Instant) -> R,
    ) -> R {
        let Stands { class, owner, state, schema } = stands;
        let (party, schema) = (self.party(class), schema.then_some(SchemaId(0)));
        ask(&mut self.admission, &Asked { class: &CLASSES[class], party: &party, schema, owner, state }, self.now)
    }

    /// The `n`th lease that its session can use: it does not wait for its turn.
    fn lease(&self, n: usize) -> Option<SlotId> {
        let usable = |seen: &Seen| seen.state == SlotState::Leased && seen.returns.is_none();
        let slots = self.slots.iter().filter(|(_, seen)| usable(seen)).map(|(slot, _)| *slot).collect::<Vec<_>>();
        slots.get(n.checked_rem(slots.len())?).copied()
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
            Event::Ask { class, owner, state, schema } => self.ask(Stands { class, owner, state, schema }),
            Event::GiveUp(n) => {
                let tickets = self.line.keys().copied().collect::<Vec<_>>();
                if let Some(n) = n.checked_rem(tickets.len()) {
                    assert!(self.admission.leave(tickets[n]));
                    self.line.remove(&tickets[n]);
                }
            }
            Event::Release { lease, state } => {
                let Some(slot) = self.lease(lease) else { return };
                let seen = self.slots.get_mut(&slot).unwrap();
                (seen.state, seen.last) = (SlotState::Idle, Some((seen.holder, state)));
                self.latest.insert(seen.holder, seen.conn);
                self.admission.release(slot, seen.holder, state, now);
            }
            Event::PutBack(lease) => {
                let Some(slot) = self.lease(lease) else { return };
                self.slots.get_mut(&slot).unwrap().state = SlotState::Idle;
                self.admission.put_back(slot, now);
            }
            Event::Inspect => {
                let Some(grant) = self.admission.inspect() else { return };
                let seen = self.slots.get_mut(&grant.slot).unwrap();
                assert_eq!(seen.state, SlotState::Idle);
                (seen.state, seen.holder, seen.runs, seen.schema) = (SlotState::Leased, NOBODY, false, false);
            }
            Event::Inspected { lease, state } => {
                let Some(slot) = self.lease(lease) else { return };
                let seen = self.slots.get_mut(&slot).unwrap();
                if seen.holder == NOBODY {
                    (seen.state, seen.last) = (SlotState::Idle, Some((NOBODY, state)));
                    self.admission.inspected(slot, state, now);
                }
            }
            Event::Discard(lease) => {
                let Some(slot) = self.lease(lease) else { return };
                self.slots.remove(&slot);
                self.admission.closed(slot);
            }
            Event::Pause(_) | Event::Resume(_) | Event::Stay(_) => self.tell_turn(event),
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

    /// What happens to leases that are kept.
    fn tell_turn(&mut self, event: &Event) {
        let now = self.now;
        match *event {
            Event::Pause(lease) => {
                let Some(slot) = self.lease(lease) else { return };
                let seen = self.slots.get_mut(&slot).unwrap();
                if std::mem::take(&mut seen.runs) {
                    self.admission.pause(slot, now);
                }
            }
            Event::Resume(lease) => {
                let Some(slot) = self.lease(lease) else { return };
                let seen = self.slots.get_mut(&slot).unwrap();
                if seen.runs || seen.holder == NOBODY || self.size.max_running == 0 {
                    return;
                }
                match self.admission.resume(slot, now) {
                    Resumed::Now => seen.runs = true,
                    Resumed::Waiting(ticket) => seen.returns = Some(ticket),
                }
            }
            Event::Stay(n) => {
                let returns = self.slots.values_mut().filter(|seen| seen.returns.is_some());
                let mut returns = returns.collect::<Vec<_>>();
                if let Some(n) = n.checked_rem(returns.len()) {
                    assert!(self.admission.stay(returns[n].returns.take().unwrap()));
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, stands: Stands) {
        match self.asked(stands, |admission, asked, now| admission.take(asked, now)) {
            Some(grant) => {
                let same = |other: &Stands| other.class == stands.class && other.schema == stands.schema;
                assert!(!self.line.values().any(same), "overtaken by a newcomer");
                self.granted(grant, stands);
            }
            None => match self.asked(stands, |admission, asked, now| admission.join(asked, false, now)) {
                Joined::Waiting(ticket) => {
                    assert!(self.line.keys().all(|other| *other < ticket));
                    self.line.insert(ticket, stands);
                }
                Joined::QueueFull { limit, whose } => {
                    assert_eq!((self.line.len(), limit, whose), (20, 20, Whose::Everybody));
                }
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
                let stands = self.line.remove(&ticket).expect("in line");
                let same = |other: &Stands| other.class == stands.class && other.schema == stands.schema;
                let oldest = self.line.iter().find(|(_, other)| same(other));
                assert!(
                    oldest.is_none_or(|(other, _)| ticket < *other),
                    "overtaken in line: {ticket:?} before {:?}",
                    oldest.map(|(other, _)| (other, self.admission.line.waiting(*other)))
                );
                self.granted(grant, stands);
            }
            Decision::Resume { ticket } => {
                let seen = self.slots.values_mut().find(|seen| seen.returns == Some(ticket)).expect("it waits");
                (seen.returns, seen.runs) = (None, true);
            }
            Decision::Refuse { ticket, cause } => {
                let Stands { class, .. } = self.line.remove(&ticket).expect("in line");
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
                let (state, conn) = (SlotState::Opening, self.next_conn);
                let (schema, runs, returns) = (false, false, None);
                let seen = Seen { state, class, conn, holder: 0, last: None, schema, runs, returns };
                assert!(self.slots.insert(slot, seen).is_none(), "the slot is in use");
            }
            Decision::Wake { at } => {
                assert!(at > self.now);
                self.wakes.push(at);
            }
        }
    }

    fn granted(&mut self, grant: Grant, stands: Stands) {
        let Stands { class, owner, state, schema } = stands;
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
        (seen.state, seen.holder, seen.runs, seen.schema) = (SlotState::Leased, owner, true, schema);
        self.latest.insert(owner, seen.conn);
    }

    fn check(&self) {
        let counts = self.admission.counts();
        let count = |state| self.slots.values().filter(|seen| seen.state == state).count();
        let leased = || self.slots.values().filter(|seen| seen.state == SlotState::Leased);
        let seen = Counts {
            opening: count(SlotState::Opening),
            idle: count(SlotState::Idle),
            leased: count(SlotState::Leased),
            closing: count(SlotState::Closing),
            waiting: self.line.len(),
            returning: leased().filter(|seen| seen.returns.is_some()).count(),
            running: counts.running,
            stalled: counts.stalled,
        };
        assert_eq!(counts, seen);
        assert!(counts.total() <= self.size.max_connections && counts.opening <= self.size.open_parallel);
        let room_to_run = self.check_running(counts, leased().filter(|seen| seen.runs).count());
        let in_schema = leased().filter(|seen| seen.schema).count();
        assert!(in_schema <= self.size.schema, "the schema has too many");
        let of_party = self.slots.values().filter(|seen| seen.class == 2).count();
        assert!(of_party <= self.size.party, "the party has too many");
        let admission = &self.admission;
        for (ticket, stands) in &self.line {
            let waiting = admission.line.waiting(*ticket).expect("in line");
            let idle = self.slots.values().any(|seen| seen.class == stands.class && seen.state == SlotState::Idle);
            match waiting.parked {
                Some(_) => assert!(admission.quotas.full(waiting.wish.held).is_some(), "parked for nothing"),
                None => assert!(!(idle && room_to_run), "an idle connection beside a ticket"),
            }
        }
        assert_eq!(admission.idle().count(), counts.idle);
        if admission.may_dial(self.now)
            && room_to_run
            && let Some((_, class)) = admission.line.head()
        {
            let party_has_room = admission.parties.has_room(admission.classes[class.0].party);
            assert!(!(admission.has_room(self.now) && party_has_room), "room for a dial, and nobody dials");
            let wanted = admission.line.wanting().min(self.size.open_parallel - counts.opening);
            let victim = admission.victim(class, self.now);
            assert!(victim.is_none() || counts.closing >= wanted, "room could be made");
        }
        for (owner, slot) in &admission.owners {
            assert_eq!(admission.slots[slot.0].owner, Some(*owner));
        }
        let owned = admission.slots.iter().filter(|(_, slot)| slot.owner.is_some()).count();
        assert_eq!(owned, admission.owners.len());
        for (_, class) in &admission.classes {
            assert!(class.counts.total() > 0 || self.line.values().any(|used| CLASSES[used.class] == class.key));
        }
    }

    /// What runs is within limits; whether one more could.
    fn check_running(&self, counts: Counts, runs: usize) -> bool {
        if self.size.max_running == 0 {
            assert_eq!((counts.running, counts.stalled, counts.returning), (0, 0, 0));
            return true;
        }
        assert_eq!(counts.running + counts.stalled, runs);
        assert!(counts.running <= self.size.max_running && counts.stalled <= self.size.oversubscribe);
        let room = counts.running < self.size.max_running;
        assert!(!room || counts.returning == 0, "somebody could have its turn");
        room
    }

    /// The server works, everybody behaves, and nobody new comes: the line must empty, woken only when asked for.
    fn run_dry(&mut self) {
        for _ in 0..2000 {
            if self.line.is_empty() && self.slots.values().all(|seen| seen.returns.is_none()) {
                return;
            }
            let event = if self.nth(SlotState::Closing, 0).is_some() {
                Event::CloseEnds(0)
            } else if self.nth(SlotState::Opening, 0).is_some() {
                Event::DialEnds { dial: 0, result: None }
            } else if self.lease(0).is_some() {
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
    fn every_order_of_events_keeps_the_promises(size in size(), events in prop::collection::vec(event(), 1..150)) {
        let mut world = World::new(size);
        for event in &events {
            world.happen(event);
        }
        world.run_dry();
    }
}

fn size() -> impl Strategy<Value = Size> {
    (1..6usize, 1..4usize, 0..2usize, 0..5usize, 0..3usize, 1..6usize, 1..6usize).prop_map(
        |(max_connections, open_parallel, min_idle, max_running, oversubscribe, schema, party)| Size {
            max_connections,
            open_parallel,
            min_idle,
            max_running,
            oversubscribe,
            schema,
            party,
        },
    )
}
