//! The waiting line: tickets in order of arrival, and which of them a dial under way is for.
//!
//! A class with `n` dials under way *covers* its `n` oldest tickets: each will be served by one of these dials at the
//! latest. The others are *uncovered*. The oldest uncovered ticket of each class is a candidate for the next dial, unless
//! the class is held back for the moment; the oldest candidate of all is the [`Line::head`].

use std::collections::{BTreeMap, BTreeSet};

use super::{ClassId, Map, Ticket};

/// Where numbering starts: in the middle, because a ticket may have to go in front of all others.
const MIDDLE: u64 = 1 << 63;

/// What a ticket asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) class: ClassId,
    pub(super) owner: u64,
    pub(super) state: u64,
}

/// One class' part of the line.
#[derive(Debug, Default)]
struct Part {
    covered: BTreeSet<Ticket>,
    uncovered: BTreeSet<Ticket>,
    dials: usize,
    held_back: bool,
    /// What [`Line::heads`] has for this class.
    head: Option<Ticket>,
    /// What this class adds to [`Line::wanting`].
    wanting: usize,
}

/// Who waits, in which order.
#[derive(Debug)]
pub(super) struct Line {
    tickets: Map<Ticket, Wish>,
    parts: Vec<Part>,
    heads: BTreeMap<Ticket, ClassId>,
    wanting: usize,
    first: u64,
    next: u64,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            tickets: Map::default(),
            parts: Vec::new(),
            heads: BTreeMap::new(),
            wanting: 0,
            first: MIDDLE,
            next: MIDDLE,
        }
    }

    /// Goes to the end of the line.
    pub(super) fn join(&mut self, wish: Wish) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.put(ticket, wish)
    }

    /// Goes to the front: for one who was promised a connection that turned out to be dead.
    pub(super) fn join_first(&mut self, wish: Wish) -> Ticket {
        self.first -= 1;
        self.put(Ticket(self.first), wish)
    }

    /// Leaves the line; `None` if the ticket was not in it.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Wish> {
        let wish = self.tickets.remove(&ticket)?;
        let part = self.part(wish.class);
        let _ = part.covered.remove(&ticket) || part.uncovered.remove(&ticket);
        self.balance(wish.class);
        Some(wish)
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

    /// The oldest ticket that wants a dial, its class not being held back.
    pub(super) fn head(&self) -> Option<(Ticket, ClassId)> {
        self.heads.first_key_value().map(|(ticket, class)| (*ticket, *class))
    }

    /// Every class with a ticket that wants a dial and is not held back.
    pub(super) fn wanting_classes(&self) -> impl Iterator<Item = ClassId> + '_ {
        self.heads.values().copied()
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

    /// Does this class have tickets that want a dial, held back or not?
    pub(super) fn has_uncovered(&self, class: ClassId) -> bool {
        self.parts.get(class.0).is_some_and(|part| !part.uncovered.is_empty())
    }

    /// What a ticket asks for.
    pub(super) fn wish(&self, ticket: Ticket) -> Option<Wish> {
        self.tickets.get(&ticket).copied()
    }

    /// All tickets, in no order.
    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.tickets.keys().copied()
    }

    /// Tickets in line.
    pub(super) fn len(&self) -> usize {
        self.tickets.len()
    }

    fn put(&mut self, ticket: Ticket, wish: Wish) -> Ticket {
        self.tickets.insert(ticket, wish);
        let part = self.part(wish.class);
        if part.covered.last().is_some_and(|last| ticket < *last) {
            part.covered.insert(ticket);
        } else {
            part.uncovered.insert(ticket);
        }
        self.balance(wish.class);
        ticket
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
        let head = if part.held_back { None } else { part.uncovered.first().copied() };
        let wanting = if part.held_back { 0 } else { part.uncovered.len() };
        self.wanting = self.wanting - part.wanting + wanting;
        part.wanting = wanting;
        if part.head != head {
            let old = std::mem::replace(&mut part.head, head);
            if let Some(old) = old {
                self.heads.remove(&old);
            }
            if let Some(head) = head {
                self.heads.insert(head, class);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClassId = ClassId(0);
    const B: ClassId = ClassId(3);

    fn wish(class: ClassId) -> Wish {
        Wish { class, owner: 1, state: 2 }
    }

    #[test]
    fn dials_cover_the_oldest_tickets_of_their_class() {
        let mut line = Line::new();
        let [a1, b1, a2, a3] = [A, B, A, A].map(|class| line.join(wish(class)));
        assert_eq!((line.head(), line.wanting(), line.len()), (Some((a1, A)), 4, 4));
        line.dials(A, 1);
        assert_eq!((line.head(), line.wanting()), (Some((b1, B)), 3));
        line.dials(A, 1);
        line.dials(B, 1);
        assert_eq!((line.head(), line.wanting()), (Some((a3, A)), 1));
        // A ticket that leaves passes its dial on.
        assert_eq!(line.leave(a1), Some(wish(A)));
        assert_eq!(line.leave(a1), None);
        assert_eq!((line.head(), line.wanting(), line.oldest_of(A)), (None, 0, Some(a2)));
        // A failed dial leaves the newest of its tickets without.
        line.dials(A, -1);
        assert_eq!((line.head(), line.wanting()), (Some((a3, A)), 1));
        assert!(line.has_uncovered(A) && !line.has_uncovered(B));
        assert_eq!(line.wish(b1), Some(wish(B)));
    }

    #[test]
    fn held_back_classes_are_passed_over() {
        let mut line = Line::new();
        let [a1, b1] = [A, B].map(|class| line.join(wish(class)));
        line.hold_back(A, true);
        assert_eq!((line.head(), line.wanting(), line.len()), (Some((b1, B)), 1, 2));
        assert_eq!(line.wanting_classes().collect::<Vec<_>>(), [B]);
        line.hold_back(A, false);
        assert_eq!((line.head(), line.wanting()), (Some((a1, A)), 2));
    }

    #[test]
    fn the_front_is_before_everybody() {
        let mut line = Line::new();
        let old = line.join(wish(A));
        line.dials(A, 1);
        let front = line.join_first(wish(A));
        assert!(front < old);
        assert_eq!(line.oldest_of(A), Some(front));
        assert_eq!(line.head(), Some((old, A)), "the dial is now for the one in front");
    }
}
