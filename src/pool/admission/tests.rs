//! Tables of events and the decisions that follow.

use std::time::{Duration, Instant};

use super::*;
use crate::pool::FailureKind;

/// Limits that limit nothing else.
pub(super) fn limits(max_connections: usize, open_parallel: usize) -> Limits {
    Limits {
        max_connections,
        min_idle: 0,
        idle_timeout: Duration::ZERO,
        max_lifetime: Duration::ZERO,
        open_parallel,
        max_waiting: 100,
        max_running: MaxRunning::Off,
        stall_limit: 100 * MS,
        oversubscribe: 0,
        kickup: 1000 * MS,
        high_priority_tickets: u32::MAX,
        schemas: Vec::new(),
    }
}

/// Admission with a clock, taking one event at a time. All classes are one party's, unless a test says otherwise.
pub(super) struct Desk {
    pub(super) admission: Admission<&'static str>,
    pub(super) now: Instant,
    /// Whose classes these are, by name; `None` is "everybody".
    pub(super) parties: Vec<(&'static str, Party)>,
    pub(super) schema: Option<SchemaId>,
}

impl Desk {
    pub(super) fn new(max_connections: usize, open_parallel: usize) -> Self {
        Self::with(limits(max_connections, open_parallel))
    }

    pub(super) fn with(limits: Limits) -> Self {
        let now = Instant::now();
        Self { admission: Admission::new(limits, 1, now), now, parties: Vec::new(), schema: None }
    }

    /// What a request for this class is.
    fn asked<R>(
        &mut self,
        class: &'static str,
        (owner, state): (u64, u64),
        ask: impl FnOnce(&mut Admission<&'static str>, &Asked<'_, &'static str>, Instant) -> R,
    ) -> R {
        let known = self.parties.iter().find(|(of, _)| *of == class);
        let party = known.map_or_else(|| Party { name: "everybody".into(), ..Party::default() }, |it| it.1.clone());
        let asked = Asked { class: &class, party: &party, schema: self.schema, owner, state };
        ask(&mut self.admission, &asked, self.now)
    }

    pub(super) fn take(&mut self, class: &'static str, owner: u64, state: u64) -> Option<Grant> {
        self.asked(class, (owner, state), |admission, asked, now| admission.take(asked, now))
    }

    pub(super) fn join(&mut self, class: &'static str, owner: u64, state: u64, first: bool) -> Joined {
        self.asked(class, (owner, state), |admission, asked, now| admission.join(asked, first, now))
    }

    /// Takes an idle connection or a ticket.
    pub(super) fn ask(&mut self, class: &'static str, owner: u64, state: u64) -> Result<Grant, Ticket> {
        let granted = self.take(class, owner, state);
        granted.ok_or_else(|| match self.join(class, owner, state, false) {
            Joined::Waiting(ticket) => ticket,
            refused => panic!("{refused:?}"),
        })
    }

    pub(super) fn wait(&mut self, class: &'static str) -> Ticket {
        self.ask(class, 0, 0).expect_err("nothing should be idle")
    }

    pub(super) fn after(
        &mut self,
        event: impl FnOnce(&mut Admission<&'static str>, Instant),
    ) -> Vec<Decision<&'static str>> {
        event(&mut self.admission, self.now);
        self.admission.decide(self.now);
        self.admission.decisions()
    }

    pub(super) fn settle(&mut self) -> Vec<Decision<&'static str>> {
        self.after(|_, _| ())
    }

    pub(super) fn opened(&mut self, slot: usize) -> Vec<Decision<&'static str>> {
        self.after(|admission, now| admission.opened(SlotId(slot), now))
    }

    pub(super) fn failed(&mut self, slot: usize, kind: FailureKind) -> Vec<Decision<&'static str>> {
        self.after(|admission, now| admission.failed(SlotId(slot), Some(kind), now))
    }

    pub(super) fn release(&mut self, slot: usize, owner: u64, state: u64) -> Vec<Decision<&'static str>> {
        self.after(|admission, now| admission.release(SlotId(slot), owner, state, now))
    }

    pub(super) fn closed(&mut self, slot: usize) -> Vec<Decision<&'static str>> {
        self.after(|admission, _| admission.closed(SlotId(slot)))
    }

    /// Lets time pass until the wake-up that must have been asked for in `decisions`.
    pub(super) fn sleep(&mut self, decisions: &[Decision<&'static str>]) -> Vec<Decision<&'static str>> {
        let [.., Decision::Wake { at }] = decisions else { panic!("no wake-up: {decisions:?}") };
        assert!(*at > self.now);
        self.now = *at;
        self.after(|admission, now| admission.woke(now))
    }

    /// A pool with these connections of class "a", all idle: slot, owner and state (owner 0: never used).
    pub(super) fn idle(connections: &[(u64, u64)]) -> Self {
        let mut desk = Self::new(connections.len(), connections.len());
        for _ in connections {
            desk.wait("a");
        }
        desk.settle();
        for slot in 0..connections.len() {
            desk.opened(slot);
        }
        for (slot, (owner, state)) in connections.iter().enumerate() {
            desk.now += MS;
            if *owner == 0 {
                desk.after(|admission, now| admission.put_back(SlotId(slot), now));
            } else {
                desk.release(slot, *owner, *state);
            }
        }
        desk
    }
}

pub(super) const MS: Duration = Duration::from_millis(1);

pub(super) fn dial(slot: usize, class: &'static str) -> Decision<&'static str> {
    Decision::Dial { slot: SlotId(slot), class }
}

pub(super) fn close(slot: usize, reason: CloseReason) -> Decision<&'static str> {
    Decision::Close { slot: SlotId(slot), reason }
}

pub(super) fn grant(ticket: Ticket, slot: usize, kind: LeaseKind) -> Decision<&'static str> {
    Decision::Grant { ticket, grant: Grant { slot: SlotId(slot), kind } }
}

pub(super) fn refuse(ticket: Ticket, cause: Cause) -> Decision<&'static str> {
    Decision::Refuse { ticket, cause }
}

#[test]
fn one_connection_serves_a_line_in_order() {
    let mut desk = Desk::new(1, 8);
    let first = desk.wait("a");
    assert_eq!(desk.settle(), [dial(0, "a")]);
    let second = desk.wait("a");
    let third = desk.wait("a");
    assert_eq!(desk.settle(), []);
    assert_eq!(desk.opened(0), [grant(first, 0, LeaseKind::Fresh)]);
    assert_eq!(desk.release(0, 7, 1), [grant(second, 0, LeaseKind::OtherState)]);
    assert!(desk.admission.leave(third));
    assert!(!desk.admission.leave(third) && !desk.admission.leave(second));
    assert_eq!(desk.release(0, 7, 1), []);
    assert_eq!(desk.admission.counts(), Counts { idle: 1, ..Counts::default() });
}

#[test]
fn the_best_idle_connection_is_chosen() {
    let idle = [(11, 1), (12, 2), (13, 2), (0, 0), (14, 4)];
    let table = [
        // Owner, state -> slot, kind.
        ((13, 1), 2, LeaseKind::Own),
        ((99, 2), 1, LeaseKind::SameState),
        ((99, 4), 4, LeaseKind::SameState),
        ((99, 9), 3, LeaseKind::Fresh),
        ((13, 9), 2, LeaseKind::Own),
    ];
    for ((owner, state), slot, kind) in table {
        let mut desk = Desk::idle(&idle);
        assert_eq!(desk.ask("a", owner, state), Ok(Grant { slot: SlotId(slot), kind }), "{owner} {state}");
    }
    // Then by age.
    let mut desk = Desk::idle(&[(11, 1), (12, 2), (13, 3)]);
    for slot in 0..3 {
        assert_eq!(desk.ask("a", 99, 9), Ok(Grant { slot: SlotId(slot), kind: LeaseKind::OtherState }));
    }
}

#[test]
fn own_means_the_last_one_untouched() {
    // 11 cannot get its own, takes another one; what it left on the first is then not its latest.
    let mut desk = Desk::idle(&[(11, 1), (12, 2)]);
    assert_eq!(desk.ask("a", 99, 1).unwrap().slot, SlotId(0));
    assert_eq!(desk.ask("a", 11, 5), Ok(Grant { slot: SlotId(1), kind: LeaseKind::OtherState }));
    // The first one comes back unused, still marked with 11's state.
    assert_eq!(desk.after(|admission, now| admission.put_back(SlotId(0), now)), []);
    assert_eq!(desk.ask("a", 11, 1), Ok(Grant { slot: SlotId(0), kind: LeaseKind::SameState }));
    // Unused in between, and nothing else taken by the owner: still its own.
    let mut desk = Desk::idle(&[(11, 1)]);
    desk.ask("a", 99, 1).unwrap();
    desk.after(|admission, now| admission.put_back(SlotId(0), now));
    assert_eq!(desk.ask("a", 11, 7), Ok(Grant { slot: SlotId(0), kind: LeaseKind::Own }));
    // Of another class: not usable, and forgotten.
    let mut desk = Desk::idle(&[(11, 1), (12, 1)]);
    let other = desk.ask("b", 11, 1).unwrap_err();
    assert_eq!(desk.settle(), [close(0, CloseReason::Displaced)]);
    assert_eq!(desk.closed(0), [dial(0, "b")]);
    assert_eq!(desk.opened(0), [grant(other, 0, LeaseKind::Fresh)]);
}

#[test]
fn the_oldest_ticket_decides_whose_the_room_is() {
    let mut desk = Desk::new(1, 8);
    let first = desk.wait("a");
    desk.settle();
    assert_eq!(desk.opened(0), [grant(first, 0, LeaseKind::Fresh)]);
    let b = desk.wait("b");
    let a = desk.wait("a");
    assert_eq!(desk.settle(), []);
    assert_eq!(desk.release(0, 1, 1), [close(0, CloseReason::Displaced)]);
    assert_eq!(desk.closed(0), [dial(0, "b")]);
    assert_eq!(desk.opened(0), [grant(b, 0, LeaseKind::Fresh)]);
    assert_eq!(desk.release(0, 2, 1), [close(0, CloseReason::Displaced)]);
    assert_eq!(desk.closed(0), [dial(0, "a")]);
    assert_eq!(desk.opened(0), [grant(a, 0, LeaseKind::Fresh)]);
}

#[test]
fn a_dial_under_way_is_as_good_as_a_connection() {
    let mut desk = Desk::new(2, 8);
    let a1 = desk.wait("a");
    desk.settle();
    assert_eq!(desk.opened(0), [grant(a1, 0, LeaseKind::Fresh)]);
    let b1 = desk.wait("b");
    assert_eq!(desk.settle(), [dial(1, "b")]);
    // The room for b1 is there: a2 may have what b1 has no use for.
    let a2 = desk.wait("a");
    assert_eq!(desk.release(0, 1, 1), [grant(a2, 0, LeaseKind::OtherState)]);
    // The ticket that a dial was for takes a freed connection; the dial is for the next.
    assert_eq!(desk.opened(1), [grant(b1, 1, LeaseKind::Fresh)]);
    let b2 = desk.wait("b");
    assert_eq!(desk.after(|admission, _| admission.closed(SlotId(0))), [dial(0, "b")]);
    let b3 = desk.wait("b");
    assert_eq!(desk.release(1, 2, 0), [grant(b2, 1, LeaseKind::SameState)]);
    assert_eq!(desk.opened(0), [grant(b3, 0, LeaseKind::Fresh)]);
    // And a dial that nobody needs any more ends idle.
    assert_eq!(desk.release(0, 3, 0), []);
    assert_eq!(desk.admission.counts(), Counts { idle: 1, leased: 1, ..Counts::default() });
}

#[test]
fn dials_are_limited_and_connections_of_others_go_on() {
    let mut desk = Desk::new(10, 2);
    let tickets = [(); 5].map(|()| desk.wait("a"));
    assert_eq!(desk.settle(), [dial(0, "a"), dial(1, "a")]);
    assert_eq!(desk.opened(1), [grant(tickets[0], 1, LeaseKind::Fresh), dial(2, "a")]);
    // Waits for a dial to end; does not hold up those who need none.
    let b = desk.wait("b");
    assert_eq!(desk.release(1, 1, 1), [grant(tickets[1], 1, LeaseKind::OtherState)]);
    assert_eq!(desk.opened(0), [grant(tickets[2], 0, LeaseKind::Fresh), dial(3, "a")]);
    assert_eq!(desk.opened(2), [grant(tickets[3], 2, LeaseKind::Fresh), dial(4, "b")]);
    assert_eq!(desk.opened(4), [grant(b, 4, LeaseKind::Fresh)]);
}

#[test]
fn an_unreachable_server_fails_everybody_at_once_and_is_probed() {
    let mut desk = Desk::new(10, 2);
    let [a1, a2] = [(); 2].map(|()| desk.wait("a"));
    let b = desk.wait("b");
    assert_eq!(desk.settle(), [dial(0, "a"), dial(1, "a")]);
    // Another dial of class a may still succeed; nothing can serve b.
    assert_eq!(desk.failed(0, FailureKind::Refused)[0], refuse(b, Cause::ThisDial));
    assert_eq!(desk.admission.counts().waiting, 2);
    let refused = desk.failed(1, FailureKind::Timeout);
    assert_eq!(refused[..2], [refuse(a1, Cause::ThisDial), refuse(a2, Cause::ThisDial)]);
    assert_eq!(desk.join("a", 0, 0, false), Joined::Refused(Cause::Unreachable));
    assert!(desk.admission.classes.is_empty(), "forgotten");
    // After the pause: one dial, not two; its success opens the gate.
    desk.now += 20 * MS;
    let tickets = [(); 3].map(|()| desk.wait("a"));
    assert_eq!(desk.settle(), [dial(1, "a")]);
    assert_eq!(desk.opened(1), [grant(tickets[0], 1, LeaseKind::Fresh), dial(0, "a"), dial(2, "a")]);
}

#[test]
fn those_whom_an_open_connection_can_serve_wait_on() {
    let mut desk = Desk::new(10, 2);
    desk.wait("a");
    desk.settle();
    desk.opened(0);
    let [a1, a2] = [(); 2].map(|()| desk.wait("a"));
    assert_eq!(desk.settle(), [dial(1, "a"), dial(2, "a")]);
    desk.failed(1, FailureKind::Refused);
    let woken = desk.failed(2, FailureKind::Refused);
    assert_eq!(desk.admission.counts().waiting, 2);
    assert_eq!(desk.release(0, 1, 1), [grant(a1, 0, LeaseKind::OtherState)]);
    assert!(woken.is_empty(), "the wake-up was asked for at the first failure: {woken:?}");
    // The last connection goes while the gate is shut: nothing is left to wait for.
    assert_eq!(desk.closed(0), [refuse(a2, Cause::Unreachable)]);
}

#[test]
fn back_off_ends_by_itself() {
    let mut desk = Desk::new(10, 1);
    desk.wait("a");
    desk.settle();
    desk.opened(0);
    let a = desk.wait("a");
    assert_eq!(desk.settle(), [dial(1, "a")]);
    let mut after = desk.failed(1, FailureKind::Refused);
    for _ in 0..3 {
        assert_eq!(desk.sleep(&after), [dial(1, "a")]);
        after = desk.failed(1, FailureKind::Timeout);
    }
    assert_eq!(desk.sleep(&after), [dial(1, "a")]);
    assert_eq!(desk.opened(1), [grant(a, 1, LeaseKind::Fresh)]);
}

#[test]
fn a_wrong_account_fails_alone() {
    for kind in [FailureKind::Account, FailureKind::Other] {
        let mut desk = Desk::new(10, 8);
        let [a, b] = ["a", "b"].map(|class| desk.wait(class));
        assert_eq!(desk.settle(), [dial(0, "a"), dial(1, "b")]);
        assert_eq!(desk.failed(0, kind), [refuse(a, Cause::ThisDial)]);
        assert_eq!(desk.opened(1), [grant(b, 1, LeaseKind::Fresh)]);
        // With a connection that works, its tickets wait for that one; a new attempt comes after a pause.
        let b2 = desk.wait("b");
        assert_eq!(desk.settle(), [dial(0, "b")]);
        let after = desk.failed(0, kind);
        assert!(matches!(after[..], [Decision::Wake { .. }]), "{after:?}");
        assert_eq!(desk.sleep(&after), [dial(0, "b")]);
        desk.failed(0, kind);
        assert_eq!(desk.release(1, 1, 1), [grant(b2, 1, LeaseKind::OtherState)]);
    }
}

#[test]
fn a_full_server_keeps_tickets_waiting() {
    let mut desk = Desk::new(10, 8);
    let [a1, a2, a3] = [(); 3].map(|()| desk.wait("a"));
    assert_eq!(desk.settle(), [dial(0, "a"), dial(1, "a"), dial(2, "a")]);
    assert_eq!(desk.opened(0), [grant(a1, 0, LeaseKind::Fresh)]);
    let first = desk.failed(1, FailureKind::Full);
    assert_eq!(desk.failed(2, FailureKind::Full), []);
    // What is there is the cap now: room for another class is made within it, at once.
    assert_eq!(desk.release(0, 1, 1), [grant(a2, 0, LeaseKind::OtherState)]);
    assert_eq!(desk.release(0, 1, 1), [grant(a3, 0, LeaseKind::OtherState)]);
    assert_eq!(desk.release(0, 1, 1), []);
    let b = desk.wait("b");
    assert_eq!(desk.settle(), [close(0, CloseReason::Displaced)]);
    assert_eq!(desk.closed(0), [dial(0, "b")]);
    assert_eq!(desk.opened(0), [grant(b, 0, LeaseKind::Fresh)]);
    // The ceiling was lifted by that success; the pool grows again.
    let c = desk.wait("c");
    desk.sleep(&first);
    assert_eq!(desk.opened(2), [grant(c, 2, LeaseKind::Fresh)]);
}

#[test]
fn a_full_server_with_nothing_open_is_tried_again() {
    let mut desk = Desk::new(10, 8);
    let [a1, a2] = [(); 2].map(|()| desk.wait("a"));
    assert_eq!(desk.settle(), [dial(0, "a"), dial(1, "a")]);
    let mut after = desk.failed(0, FailureKind::Full);
    assert_eq!(desk.failed(1, FailureKind::Full), [], "a wake-up is on its way");
    for _ in 0..3 {
        let woken = desk.sleep(&after);
        assert_eq!(woken.len(), 1, "one attempt at a time: {woken:?}");
        let Decision::Dial { slot, .. } = woken[0] else { panic!("{woken:?}") };
        after = desk.failed(slot.0, FailureKind::Full);
    }
    let woken = desk.sleep(&after);
    let Decision::Dial { slot, .. } = woken[0] else { panic!("{woken:?}") };
    let opened = desk.opened(slot.0);
    assert_eq!(opened[0], grant(a1, slot.0, LeaseKind::Fresh));
    assert!(matches!(opened[1..], [Decision::Dial { .. }]), "one more: {opened:?}");
    assert!(desk.admission.leave(a2));
}

#[test]
fn a_full_account_does_not_hold_back_others() {
    let mut desk = Desk::new(10, 8);
    let a1 = desk.wait("a");
    assert_eq!(desk.settle(), [dial(0, "a")]);
    assert_eq!(desk.opened(0), [grant(a1, 0, LeaseKind::Fresh)]);
    let a2 = desk.wait("a");
    assert_eq!(desk.settle(), [dial(1, "a")]);
    let after = desk.failed(1, FailureKind::AccountFull);
    let b = desk.wait("b");
    assert_eq!(desk.settle(), [dial(1, "b")]);
    assert_eq!(desk.opened(1), [grant(b, 1, LeaseKind::Fresh)]);
    assert_eq!(desk.sleep(&after), [dial(2, "a")]);
    assert_eq!(desk.opened(2), [grant(a2, 2, LeaseKind::Fresh)]);
    // A success for each failure: the account has room again, and its dials are parallel as before.
    desk.wait("a");
    desk.wait("a");
    assert_eq!(desk.settle(), [dial(3, "a"), dial(4, "a")]);
}

#[test]
fn a_dial_without_a_result_is_repeated_later() {
    let mut desk = Desk::new(1, 1);
    let a = desk.wait("a");
    assert_eq!(desk.settle(), [dial(0, "a")]);
    let after = desk.after(|admission, now| admission.failed(SlotId(0), None, now));
    assert_eq!(desk.sleep(&after), [dial(0, "a")]);
    assert_eq!(desk.opened(0), [grant(a, 0, LeaseKind::Fresh)]);
}

#[test]
fn retired_connections_are_not_used_again() {
    let mut desk = Desk::new(4, 4);
    for class in ["a", "a", "b", "b"] {
        desk.wait(class);
    }
    desk.settle();
    (0..4).for_each(|slot| drop(desk.opened(slot)));
    desk.release(0, 1, 1);
    desk.release(2, 2, 1);
    let retired = desk.after(|admission, _| admission.retire_class(&"b"));
    assert_eq!(retired, [close(2, CloseReason::Stale)]);
    assert_eq!(desk.release(3, 3, 1), [close(3, CloseReason::Stale)]);
    desk.closed(2);
    desk.closed(3);
    // Dialed before, open after: too old as well. Its ticket gets the next one.
    let b = desk.wait("b");
    assert_eq!(desk.settle(), [dial(3, "b")]);
    assert_eq!(desk.after(|admission, _| admission.retire_all()), [close(0, CloseReason::Stale)]);
    assert_eq!(desk.opened(3), [close(3, CloseReason::Stale), dial(2, "b")]);
    assert_eq!(desk.opened(2), [grant(b, 2, LeaseKind::Fresh)]);
    assert_eq!(desk.release(1, 1, 1), [close(1, CloseReason::Stale)]);
}

#[test]
fn a_look_at_a_connection_is_no_use_of_it() {
    let mut desk = Desk::idle(&[(11, 1), (12, 2), (13, 2)]);
    desk.admission.limits.idle_timeout = 100 * MS;
    for _ in 0..9 {
        desk.now += 10 * MS;
        let grant = desk.admission.inspect().unwrap();
        assert_eq!(grant.slot, SlotId(0), "the one idle for longest");
        assert_eq!(desk.after(|admission, now| admission.inspected(SlotId(0), 2, now)), []);
    }
    assert_eq!(desk.ask("a", 11, 1).unwrap().kind, LeaseKind::OtherState, "it is nobody's own any more");
    desk.release(0, 11, 1);
    // The others are as they were, in their old order.
    assert_eq!(desk.ask("a", 12, 5).unwrap(), Grant { slot: SlotId(1), kind: LeaseKind::Own });
    desk.release(1, 12, 2);
    let expire = |desk: &mut Desk| desk.after(|admission, now| admission.expire(now));
    desk.now += 9 * MS;
    desk.admission.inspect().unwrap();
    assert_eq!(desk.after(|admission, now| admission.inspected(SlotId(2), 7, now)), []);
    desk.now += MS;
    assert_eq!(expire(&mut desk), [close(2, CloseReason::IdleTimeout)]);
    assert_eq!(expire(&mut desk), []);
}

#[test]
fn a_connection_is_served_or_retired_after_a_look() {
    let mut desk = Desk::idle(&[(11, 1)]);
    desk.admission.inspect().unwrap();
    assert!(desk.admission.inspect().is_none());
    let ticket = desk.wait("a");
    assert_eq!(desk.settle(), []);
    let served = desk.after(|admission, now| admission.inspected(SlotId(0), 1, now));
    assert_eq!(served, [grant(ticket, 0, LeaseKind::OtherState)]);
    desk.release(0, 11, 1);
    desk.admission.inspect().unwrap();
    desk.after(|admission, _| admission.retire_all());
    let retired = desk.after(|admission, now| admission.inspected(SlotId(0), 1, now));
    assert_eq!(retired, [close(0, CloseReason::Stale)]);
}

#[test]
fn connections_do_not_live_for_ever() {
    let limits =
        Limits { min_idle: 1, idle_timeout: 100 * MS, max_lifetime: 1000 * MS, max_waiting: 10, ..limits(3, 3) };
    let mut desk = Desk::with(limits);
    for _ in 0..3 {
        desk.wait("a");
    }
    desk.settle();
    (0..3).for_each(|slot| drop(desk.opened(slot)));
    for slot in [2, 0] {
        desk.release(slot, slot as u64, 1);
        desk.now += 10 * MS;
    }
    let expire = |desk: &mut Desk| desk.after(|admission, now| admission.expire(now));
    desk.now += 79 * MS;
    assert_eq!(expire(&mut desk), []);
    desk.now += MS;
    assert_eq!(expire(&mut desk), [close(2, CloseReason::IdleTimeout)]);
    desk.now += 100 * MS;
    assert_eq!(expire(&mut desk), [], "min_idle are kept");
    desk.now += 800 * MS;
    assert_eq!(expire(&mut desk), [close(0, CloseReason::MaxLifetime)]);
    assert_eq!(desk.release(1, 1, 1), [close(1, CloseReason::MaxLifetime)]);
    (0..3).for_each(|slot| drop(desk.closed(slot)));
    let refill = desk.after(|admission, now| admission.refill(now));
    assert_eq!(refill.len(), 1, "{refill:?}");
    assert!(matches!(refill[0], Decision::Dial { class: "a", .. }));
}

#[test]
fn a_dead_connection_costs_its_finder_no_place_in_line() {
    let mut desk = Desk::idle(&[(11, 1)]);
    assert_eq!(desk.ask("a", 11, 1).unwrap().slot, SlotId(0));
    let late = desk.wait("a");
    assert_eq!(desk.settle(), []);
    // Found dead: room is free, and the finder goes in front of the one who came later.
    desk.admission.closed(SlotId(0));
    let Joined::Waiting(first) = desk.join("a", 11, 1, true) else { panic!("refused") };
    assert_eq!(desk.settle(), [dial(0, "a")]);
    assert_eq!(desk.opened(0), [grant(first, 0, LeaseKind::Fresh)]);
    assert_eq!(desk.release(0, 11, 1), [grant(late, 0, LeaseKind::OtherState)]);
    // The keeper finds one dead.
    desk.release(0, 11, 1);
    assert_eq!(desk.after(|admission, _| assert!(admission.lost(SlotId(0)))), [close(0, CloseReason::Lost)]);
    assert!(!desk.admission.lost(SlotId(0)));
}

#[test]
fn the_line_has_a_limit() {
    let mut desk = Desk::new(1, 1);
    for _ in 0..100 {
        desk.wait("a");
    }
    assert_eq!(desk.join("a", 0, 0, false), Joined::QueueFull { limit: 100, whose: Whose::Everybody });
}

#[test]
fn a_shut_down_pool_ends_with_its_leases() {
    let mut desk = Desk::new(3, 1);
    let first = desk.wait("a");
    desk.settle();
    assert_eq!(desk.opened(0), [grant(first, 0, LeaseKind::Fresh)]);
    let a2 = desk.wait("a");
    assert_eq!(desk.settle(), [dial(1, "a")]);
    let shut = desk.after(|admission, _| admission.shut_down());
    assert_eq!(shut, [refuse(a2, Cause::Closed)]);
    assert_eq!(desk.join("a", 0, 0, false), Joined::Refused(Cause::Closed));
    assert_eq!(desk.opened(1), [close(1, CloseReason::Drain)]);
    assert_eq!(desk.release(0, 1, 1), [close(0, CloseReason::Drain)]);
    (0..2).for_each(|slot| drop(desk.closed(slot)));
    assert_eq!(desk.admission.counts(), Counts::default());
    assert!(desk.admission.classes.is_empty() && desk.admission.owners.is_empty());
}
