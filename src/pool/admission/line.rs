//! The waiting line: tickets in order of arrival, and which of them a dial under way is for.
//!
//! A class with `n` dials under way *covers* its `n` oldest tickets: each will be served by one of these dials at the
//! latest. The others are *uncovered*. The oldest uncovered ticket of each class is a candidate for the next dial, unless
//! the class is held back for the moment; the first candidate of all is the [`Line::head`]: the one whose party has the
//! smallest pass, then the oldest.
//!
//! A parked ticket (see `quota`) has its number and its wish here, but no place yet.

use std::collections::BTreeSet;
use std::time::Instant;

use super::quota::{Held, QuotaId};
use super::{ClassId, Map, Ticket};

/// Where numbering starts: in the middle, because a ticket may have to go in front of all others.
const MIDDLE: u64 = 1 << 63;

/// What a ticket asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) class: ClassId,
    pub(super) owner: u64,
    pub(super) state: u64,
    /// What its lease will count against.
    pub(super) held: Held,
    /// When it came.
    pub(super) since: Instant,
}

/// Who comes first: a party's pass, then a ticket's number.
pub(super) type Rank = (u128, Ticket);

/// One class' part of the line.
#[derive(Debug, Default)]
struct Part {
    covered: BTreeSet<Ticket>,
    uncovered: BTreeSet<Ticket>,
    dials: usize,
    held_back: bool,
    /// Tickets that have no place yet.
    parked: usize,
    /// Its party's pass.
    pass: u128,
    /// What [`Line::heads`] has for this class.
    head: Option<Rank>,
    /// What this class adds to [`Line::wanting`].
    wanting: usize,
}

/// What is known of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) wish: Wish,
    /// Where it is parked, if it is.
    pub(super) parked: Option<QuotaId>,
}

/// Who waits, in which order.
#[derive(Debug)]
pub(super) struct Line {
    tickets: Map<Ticket, Waiting>,
    parts: Vec<Part>,
    heads: BTreeSet<(Rank, ClassId)>,
    wanting: usize,
    first: u64,
    next: u64,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            tickets: Map::default(),
            parts: Vec::new(),
            heads: BTreeSet::new(),
            wanting: 0,
            first: MIDDLE,
            next: MIDDLE,
        }
    }

    /// The next number: of whoever comes last.
    pub(super) fn last_number(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next - 1)
    }

    /// A number before all others: for one who was promised a connection that turned out to be dead.
    pub(super) fn first_number(&mut self) -> Ticket {
        self.first -= 1;
        Ticket(self.first)
    }

    /// A ticket comes: to its place, or to be parked.
    pub(super) fn join(&mut self, ticket: Ticket, wish: Wish, parked: Option<QuotaId>) {
        self.tickets.insert(ticket, Waiting { wish, parked });
        match parked {
            Some(_) => self.part(wish.class).parked += 1,
            None => self.put(ticket, wish.class),
        }
    }

    /// A parked ticket goes to its place, or is parked elsewhere.
    pub(super) fn unpark(&mut self, ticket: Ticket, parked: Option<QuotaId>) {
        let Some(waiting) = self.tickets.get_mut(&ticket) else { return };
        waiting.parked = parked;
        let class = waiting.wish.class;
        if parked.is_none() {
            self.part(class).parked -= 1;
            self.put(ticket, class);
        }
    }

    /// Leaves the line; `None` if the ticket was not in it.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Waiting> {
        let waiting = self.tickets.remove(&ticket)?;
        let part = self.part(waiting.wish.class);
        match waiting.parked {
            Some(_) => part.parked -= 1,
            None => {
                let _ = part.covered.remove(&ticket) || part.uncovered.remove(&ticket);
                self.balance(waiting.wish.class);
            }
        }
        Some(waiting)
    }

    /// The pass of this class' party has changed.
    pub(super) fn set_pass(&mut self, class: ClassId, pass: u128) {
        self.part(class).pass = pass;
        self.balance(class);
    }

    /// A dial for this class began (`1`) or ended (`-1`).
    pub(super) fn dials(&mut self, class: ClassId, change: isize) {
        let part = self.part(class);
        part.dials = part.dials.checked_add_signed(change).expect("dials end once");
        self.balance(class);
    }

    /// A class that is held back has no candidate for the next dial.
    pub(super) fn hold_back(&mut self, class: ClassId, held_back: bool) {
        self.part(class).held_back = held_back;
        self.balance(class);
    }

    /// The first ticket that wants a dial, its class not being held back.
    pub(super) fn head(&self) -> Option<(Rank, ClassId)> {
        self.heads.first().copied()
    }

    /// Every class with a ticket that wants a dial and is not held back.
    pub(super) fn wanting_classes(&self) -> impl Iterator<Item = ClassId> + '_ {
        self.heads.iter().map(|(_, class)| *class)
    }

    /// How many tickets want a dial, their classes not being held back.
    pub(super) fn wanting(&self) -> usize {
        self.wanting
    }

    /// The oldest ticket of a class.
    pub(super) fn oldest_of(&self, class: ClassId) -> Option<Ticket> {
        let part = self.parts.get(class.0)?;
        part.covered.first().or(part.uncovered.first()).copied()
    }

    /// The rank of the oldest ticket of a class.
    pub(super) fn rank_of(&self, class: ClassId) -> Option<Rank> {
        Some((self.parts.get(class.0)?.pass, self.oldest_of(class)?))
    }

    /// Has this class any ticket, parked ones included?
    pub(super) fn has_any(&self, class: ClassId) -> bool {
        self.oldest_of(class).is_some() || self.parts.get(class.0).is_some_and(|part| part.parked > 0)
    }

    /// Does this class have tickets that want a dial, held back or not?
    pub(super) fn has_uncovered(&self, class: ClassId) -> bool {
        self.parts.get(class.0).is_some_and(|part| !part.uncovered.is_empty())
    }

    /// What a ticket asks for.
    pub(super) fn wish(&self, ticket: Ticket) -> Option<Wish> {
        self.tickets.get(&ticket).map(|waiting| waiting.wish)
    }

    /// What is known of a ticket.
    pub(super) fn waiting(&self, ticket: Ticket) -> Option<Waiting> {
        self.tickets.get(&ticket).copied()
    }

    /// When the oldest ticket came. (Of the parked ones, only those that have a place are looked at.)
    pub(super) fn oldest_since(&self) -> Option<Instant> {
        let oldest = self.parts.iter().filter_map(|part| part.covered.first().or(part.uncovered.first())).min()?;
        self.wish(*oldest).map(|wish| wish.since)
    }

    /// All tickets, in no order.
    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.tickets.keys().copied()
    }

    /// Tickets, parked ones included.
    pub(super) fn len(&self) -> usize {
        self.tickets.len()
    }

    fn put(&mut self, ticket: Ticket, class: ClassId) {
        let part = self.part(class);
        if part.covered.last().is_some_and(|last| ticket < *last) {
            part.covered.insert(ticket);
        } else {
            part.uncovered.insert(ticket);
        }
        self.balance(class);
    }

    fn part(&mut self, class: ClassId) -> &mut Part {
        if self.parts.len() <= class.0 {
            self.parts.resize_with(class.0 + 1, Part::default);
        }
        &mut self.parts[class.0]
    }

    /// Makes `covered` the `dials` oldest tickets of a class again, and `heads` and `wanting` what follows from it.
    fn balance(&mut self, class: ClassId) {
        let part = &mut self.parts[class.0];
        while part.covered.len() > part.dials {
            part.uncovered.extend(part.covered.pop_last());
        }
        while part.covered.len() < part.dials
            && let Some(oldest) = part.uncovered.pop_first()
        {
            part.covered.insert(oldest);
        }
        let head = part.uncovered.first().filter(|_| !part.held_back).map(|ticket| (part.pass, *ticket));
        let wanting = if part.held_back { 0 } else { part.uncovered.len() };
        self.wanting = self.wanting - part.wanting + wanting;
        part.wanting = wanting;
        if part.head != head {
            let old = std::mem::replace(&mut part.head, head);
            if let Some(old) = old {
                self.heads.remove(&(old, class));
            }
            if let Some(head) = head {
                self.heads.insert((head, class));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::quota::Allowance;
    use super::*;

    const A: ClassId = ClassId(0);
    const B: ClassId = ClassId(3);

    fn wish(class: ClassId) -> Wish {
        Wish { class, owner: 1, state: 2, held: [None, None], since: Instant::now() }
    }

    fn join(line: &mut Line, class: ClassId) -> Ticket {
        let ticket = line.last_number();
        line.join(ticket, wish(class), None);
        ticket
    }

    /// The head, without its party's pass.
    fn head(line: &Line) -> Option<(Ticket, ClassId)> {
        line.head().map(|((_, ticket), class)| (ticket, class))
    }

    #[test]
    fn dials_cover_the_oldest_tickets_of_their_class() {
        let mut line = Line::new();
        let [a1, b1, a2, a3] = [A, B, A, A].map(|class| join(&mut line, class));
        assert_eq!((head(&line), line.wanting(), line.len()), (Some((a1, A)), 4, 4));
        line.dials(A, 1);
        assert_eq!((head(&line), line.wanting()), (Some((b1, B)), 3));
        line.dials(A, 1);
        line.dials(B, 1);
        assert_eq!((head(&line), line.wanting()), (Some((a3, A)), 1));
        // A ticket that leaves passes its dial on.
        assert_eq!(line.leave(a1).map(|it| it.wish.class), Some(A));
        assert_eq!(line.leave(a1), None);
        assert_eq!((head(&line), line.wanting(), line.oldest_of(A)), (None, 0, Some(a2)));
        // A failed dial leaves the newest of its tickets without.
        line.dials(A, -1);
        assert_eq!((head(&line), line.wanting()), (Some((a3, A)), 1));
        assert!(line.has_uncovered(A) && !line.has_uncovered(B));
        assert_eq!(line.wish(b1).map(|wish| wish.class), Some(B));
    }

    #[test]
    fn held_back_classes_are_passed_over() {
        let mut line = Line::new();
        let [a1, b1] = [A, B].map(|class| join(&mut line, class));
        line.hold_back(A, true);
        assert_eq!((head(&line), line.wanting(), line.len()), (Some((b1, B)), 1, 2));
        assert_eq!(line.wanting_classes().collect::<Vec<_>>(), [B]);
        line.hold_back(A, false);
        assert_eq!((head(&line), line.wanting()), (Some((a1, A)), 2));
    }

    #[test]
    fn the_front_is_before_everybody() {
        let mut line = Line::new();
        let old = join(&mut line, A);
        line.dials(A, 1);
        let front = line.first_number();
        line.join(front, wish(A), None);
        assert!(front < old);
        assert_eq!(line.oldest_of(A), Some(front));
        assert_eq!(head(&line), Some((old, A)), "the dial is now for the one in front");
    }

    #[test]
    fn the_smallest_pass_comes_first() {
        let mut line = Line::new();
        let [a1, b1] = [A, B].map(|class| join(&mut line, class));
        assert_eq!(head(&line), Some((a1, A)));
        line.set_pass(A, 7);
        assert_eq!((head(&line), line.rank_of(A)), (Some((b1, B)), Some((7, a1))));
        line.set_pass(B, 8);
        assert_eq!(head(&line), Some((a1, A)));
    }

    #[test]
    fn a_parked_ticket_keeps_its_number() {
        let mut line = Line::new();
        let (parked, quota) = (line.last_number(), super::super::quota::Quotas::default().add(Allowance::ALL));
        line.join(parked, wish(A), Some(quota));
        assert_eq!((head(&line), line.len(), line.wanting()), (None, 1, 0));
        assert!(line.has_any(A) && line.oldest_of(A).is_none());
        let late = join(&mut line, A);
        line.dials(A, 1);
        assert_eq!(line.oldest_of(A), Some(late));
        line.unpark(parked, None);
        assert_eq!((line.oldest_of(A), head(&line)), (Some(parked), Some((late, A))));
        assert_eq!(line.leave(parked).map(|it| it.parked), Some(None));
        assert!(!line.has_any(B));
    }
}
