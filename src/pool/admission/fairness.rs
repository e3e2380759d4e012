//! Tables of events about who comes first: users, schemas, open transactions, statements that stall.

use std::time::Duration;

use super::tests::{Desk, MS, close, dial, grant, limits};
use super::*;

fn party(name: &str) -> Party {
    Party { name: name.into(), weight: 1, ..Party::default() }
}

/// A desk at which class "a" is one party's and class "b" another's.
fn two(limits: Limits, a: Party, b: Party) -> Desk {
    let mut desk = Desk::with(limits);
    desk.parties = vec![("a", a), ("b", b)];
    desk
}

/// Leases `n` connections of class "a", each of which has just been opened: slots 0 to n - 1.
fn lease(desk: &mut Desk, n: usize) {
    for _ in 0..n {
        desk.wait("a");
    }
    desk.settle();
    (0..n).for_each(|slot| drop(desk.opened(slot)));
}

fn at(max_running: usize, oversubscribe: usize, max_connections: usize) -> Limits {
    Limits { max_running: MaxRunning::At(max_running), oversubscribe, ..limits(max_connections, max_connections) }
}

#[test]
fn a_user_with_few_tickets_is_not_behind_one_with_many() {
    let mut desk = two(limits(2, 2), party("greedy"), party("small"));
    lease(&mut desk, 2);
    let greedy = [desk.wait("a"), desk.wait("a"), desk.wait("a")];
    let small = desk.wait("b");
    assert_eq!(desk.settle(), []);
    // The first is served while the small one has only just come; then its pass is behind.
    desk.now += MS;
    assert_eq!(desk.release(0, 1, 1), [grant(greedy[0], 0, LeaseKind::OtherState)]);
    desk.now += MS;
    assert_eq!(desk.release(0, 2, 1), [close(0, CloseReason::Displaced)]);
    assert_eq!(desk.closed(0), [dial(0, "b")]);
    assert_eq!(desk.opened(0), [grant(small, 0, LeaseKind::Fresh)]);
    // What it has it keeps for a moment: no more than its share, and used just now.
    let decisions = desk.release(0, 9, 1);
    let [Decision::Wake { at }] = decisions[..] else { panic!("{decisions:?}") };
    assert_eq!(at, desk.now + 100 * MS);
    assert_eq!(desk.ask("b", 9, 1).map(|grant| grant.kind), Ok(LeaseKind::Own));
    desk.release(0, 9, 1);
    desk.now += 100 * MS;
    assert_eq!(desk.after(|admission, now| admission.woke(now))[..1], [close(0, CloseReason::Displaced)]);
    assert_eq!(desk.release(1, 1, 1), [grant(greedy[1], 1, LeaseKind::OtherState)]);
}

#[test]
fn a_user_has_so_many_connections_and_no_more() {
    let small = Party { max_connections: 1, max_waiting: 2, ..party("small") };
    let mut desk = two(limits(4, 4), party("greedy"), small);
    let [first, second] = [desk.wait("b"), desk.wait("b")];
    assert_eq!(desk.settle(), [dial(0, "b")]);
    assert_eq!(desk.join("b", 3, 0, false), Joined::QueueFull { limit: 2, whose: Whose::User });
    assert_eq!(desk.opened(0), [grant(first, 0, LeaseKind::Fresh)]);
    let third = desk.wait("b");
    assert_eq!(desk.settle(), [], "there is room for others only");
    assert_eq!(desk.release(0, 1, 1), [grant(second, 0, LeaseKind::OtherState)]);
    assert!(desk.admission.leave(third));
    assert_eq!(desk.release(0, 1, 1), []);
    assert!(desk.ask("b", 1, 1).is_ok());
    assert_eq!(desk.admission.counts().total(), 1);
}

#[test]
fn a_user_whose_connections_are_of_another_kind_has_one_replaced() {
    let small = || Party { max_connections: 1, ..party("small") };
    let mut desk = two(limits(4, 4), small(), small());
    lease(&mut desk, 1);
    desk.release(0, 1, 1);
    let other = desk.wait("b");
    assert_eq!(desk.settle(), [close(0, CloseReason::Displaced)]);
    assert_eq!(desk.closed(0), [dial(0, "b")]);
    assert_eq!(desk.opened(0), [grant(other, 0, LeaseKind::Fresh)]);
}

#[test]
fn a_schema_has_so_many_connections_and_no_more() {
    let schema = SchemaLimits { name: "s".into(), max_connections: 1, max_waiting: 2, ..SchemaLimits::default() };
    let mut desk = Desk::with(Limits { schemas: vec![schema], ..limits(3, 3) });
    lease(&mut desk, 3);
    (0..3).for_each(|slot| drop(desk.release(slot, 10 + slot as u64, 1)));
    desk.schema = Some(SchemaId(0));
    assert!(desk.ask("a", 10, 1).is_ok());
    let [second, third] = [desk.wait("a"), desk.wait("a")];
    assert_eq!(desk.join("a", 3, 0, false), Joined::QueueFull { limit: 2, whose: Whose::Schema });
    desk.schema = None;
    assert!(desk.ask("a", 11, 1).is_ok(), "others are not held up");
    assert_eq!(desk.settle(), [], "there is an idle connection, but not for this schema");
    assert_eq!(desk.release(0, 10, 1), [grant(second, 2, LeaseKind::OtherState)]);
    assert_eq!(desk.after(|admission, _| admission.closed(SlotId(2))), [grant(third, 0, LeaseKind::OtherState)]);
}

#[test]
fn only_so_many_run_and_open_transactions_go_first() {
    let mut desk = Desk::with(at(1, 0, 3));
    lease(&mut desk, 1);
    // A transaction: its turn is over, its connection is its own.
    desk.after(|admission, now| admission.pause(SlotId(0), now));
    let new = desk.wait("a");
    assert_eq!(desk.settle(), [dial(1, "a")]);
    assert_eq!(desk.opened(1), [grant(new, 1, LeaseKind::Fresh)]);
    let late = desk.wait("a");
    assert_eq!(desk.settle(), [], "one runs: no dial");
    let Resumed::Waiting(turn) = desk.admission.resume(SlotId(0), desk.now) else { panic!("one runs already") };
    assert_eq!(desk.settle(), []);
    assert_eq!(desk.admission.counts().running, 1);
    assert_eq!(desk.release(1, 5, 1), [Decision::Resume { ticket: turn }], "before the one that came earlier");
    assert_eq!(desk.after(|admission, now| admission.pause(SlotId(0), now)), [grant(late, 1, LeaseKind::OtherState)]);
    // A turn that is not wanted any more.
    let Resumed::Waiting(turn) = desk.admission.resume(SlotId(0), desk.now) else { panic!("one runs already") };
    assert!(desk.admission.stay(turn) && !desk.admission.stay(turn));
    assert_eq!(desk.release(1, 5, 1), []);
    assert_eq!(desk.admission.resume(SlotId(0), desk.now), Resumed::Now);
}

#[test]
fn new_work_that_has_waited_goes_with_open_transactions() {
    let mut desk = Desk::with(Limits { kickup: 50 * MS, ..at(1, 0, 2) });
    lease(&mut desk, 1);
    desk.after(|admission, now| admission.pause(SlotId(0), now));
    let new = desk.wait("a");
    desk.settle();
    desk.opened(1);
    let old = desk.wait("a");
    desk.now += 51 * MS;
    let Resumed::Waiting(turn) = desk.admission.resume(SlotId(0), desk.now) else { panic!("one runs already") };
    assert!(new < old && old < turn);
    assert_eq!(desk.release(1, 5, 1), [grant(old, 1, LeaseKind::OtherState)]);
    assert_eq!(desk.release(1, 6, 1), [Decision::Resume { ticket: turn }]);
}

#[test]
fn a_transaction_goes_first_as_often_as_its_tickets_last() {
    let mut desk = Desk::with(Limits { high_priority_tickets: 1, ..at(1, 0, 2) });
    lease(&mut desk, 1);
    desk.after(|admission, now| admission.pause(SlotId(0), now));
    desk.wait("a");
    desk.settle();
    desk.opened(1);
    let Resumed::Waiting(turn) = desk.admission.resume(SlotId(0), desk.now) else { panic!("one runs already") };
    let new = desk.wait("a");
    assert_eq!(desk.release(1, 5, 1), [Decision::Resume { ticket: turn }]);
    assert_eq!(desk.after(|admission, now| admission.pause(SlotId(0), now)), [grant(new, 1, LeaseKind::OtherState)]);
    let newer = desk.wait("a");
    let Resumed::Waiting(turn) = desk.admission.resume(SlotId(0), desk.now) else { panic!("one runs already") };
    assert_eq!(desk.release(1, 5, 1), [grant(newer, 1, LeaseKind::OtherState)], "its ticket is used up");
    assert_eq!(desk.release(1, 5, 1), [Decision::Resume { ticket: turn }]);
}

#[test]
fn a_statement_that_stalls_does_not_stop_the_rest() {
    let mut desk = Desk::with(at(2, 2, 4));
    lease(&mut desk, 2);
    let waiting = [desk.wait("a"), desk.wait("a"), desk.wait("a")];
    let decisions = desk.settle();
    assert_eq!(decisions, [Decision::Wake { at: desk.now + 100 * MS }]);
    let decisions = desk.sleep(&decisions);
    assert_eq!(decisions[..2], [dial(2, "a"), dial(3, "a")]);
    assert_eq!((desk.admission.counts().running, desk.admission.counts().stalled), (0, 2));
    assert_eq!(desk.opened(2), [grant(waiting[0], 2, LeaseKind::Fresh)]);
    assert_eq!(desk.opened(3)[..1], [grant(waiting[1], 3, LeaseKind::Fresh)]);
    desk.now += 1000 * MS;
    assert_eq!(desk.settle(), [], "as many are stalled as may be");
    // One of them ends: now another may be counted as stalled, which makes room.
    assert_eq!(desk.release(0, 1, 1), [grant(waiting[2], 0, LeaseKind::OtherState)]);
    assert_eq!((desk.admission.counts().running, desk.admission.counts().stalled), (2, 2));
    assert_eq!(desk.admission.survey(desk.now + Duration::from_secs(1)).stalls, 3);
}
