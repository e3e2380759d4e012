//! The index of idle connections: of which class, in which state, idle for how long.
//!
//! Every idle connection is in three lists, oldest first: all, its class', and its class' and state's. The links lie in
//! one node per slot, so that putting in and taking out are O(1) and allocate nothing once the tables have grown.

use std::collections::hash_map::Entry;
use std::time::Instant;

use super::{ClassId, Map, SlotId};

/// The three kinds of lists, as positions in [`Node::links`].
const ALL: usize = 0;
const CLASS: usize = 1;
const STATE: usize = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    previous: Option<SlotId>,
    next: Option<SlotId>,
}

/// The ends of one list; both or neither.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    oldest: Option<SlotId>,
    newest: Option<SlotId>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    class: ClassId,
    state: Option<u64>,
    since: Instant,
    links: [Link; 3],
}

/// Which connections are idle.
#[derive(Debug, Default)]
pub(super) struct IdleIndex {
    nodes: Vec<Option<Node>>,
    all: List,
    by_class: Vec<List>,
    by_state: Map<(ClassId, Option<u64>), List>,
}

impl IdleIndex {
    /// Puts a connection in as the newest. `state` is `None` if no session has used it yet.
    pub(super) fn insert(&mut self, slot: SlotId, class: ClassId, state: Option<u64>, now: Instant) {
        if self.nodes.len() <= slot.0 {
            self.nodes.resize(slot.0 + 1, None);
        }
        if self.by_class.len() <= class.0 {
            self.by_class.resize(class.0 + 1, List::default());
        }
        debug_assert!(self.nodes[slot.0].is_none(), "{slot:?} is idle already");
        self.nodes[slot.0] = Some(Node { class, state, since: now, links: [Link::default(); 3] });
        append::<ALL>(&mut self.nodes, &mut self.all, slot);
        append::<CLASS>(&mut self.nodes, &mut self.by_class[class.0], slot);
        append::<STATE>(&mut self.nodes, self.by_state.entry((class, state)).or_default(), slot);
    }

    /// Makes a connection the oldest, idle since `since`: it was, before it was looked at.
    pub(super) fn put_first(&mut self, slot: SlotId, since: Instant) {
        let Some(Some(node)) = self.nodes.get_mut(slot.0) else { return };
        node.since = since;
        let node = *node;
        move_to_front::<ALL>(&mut self.nodes, &mut self.all, slot);
        move_to_front::<CLASS>(&mut self.nodes, &mut self.by_class[node.class.0], slot);
        move_to_front::<STATE>(&mut self.nodes, self.by_state.entry((node.class, node.state)).or_default(), slot);
    }

    /// Takes a connection out; `false` if it was not in.
    pub(super) fn remove(&mut self, slot: SlotId) -> bool {
        let Some(Some(node)) = self.nodes.get(slot.0).copied() else { return false };
        unlink::<ALL>(&mut self.nodes, &mut self.all, node);
        unlink::<CLASS>(&mut self.nodes, &mut self.by_class[node.class.0], node);
        if let Entry::Occupied(mut list) = self.by_state.entry((node.class, node.state)) {
            unlink::<STATE>(&mut self.nodes, list.get_mut(), node);
            if list.get().oldest.is_none() {
                list.remove();
            }
        }
        self.nodes[slot.0] = None;
        true
    }

    /// The one that has been idle for longest.
    pub(super) fn oldest(&self) -> Option<(SlotId, Instant)> {
        let slot = self.all.oldest?;
        Some((slot, self.nodes[slot.0]?.since))
    }

    /// The one of this class that has been idle for longest.
    pub(super) fn oldest_of(&self, class: ClassId) -> Option<SlotId> {
        self.by_class.get(class.0)?.oldest
    }

    /// The one of this class and state that has been idle for longest.
    pub(super) fn oldest_in(&self, class: ClassId, state: Option<u64>) -> Option<SlotId> {
        self.by_state.get(&(class, state))?.oldest
    }

    /// All, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = SlotId> + '_ {
        std::iter::successors(self.all.oldest, |slot| self.nodes[slot.0]?.links[ALL].next)
    }

    /// All of one class, oldest first.
    pub(super) fn iter_of(&self, class: ClassId) -> impl Iterator<Item = SlotId> + '_ {
        std::iter::successors(self.oldest_of(class), |slot| self.nodes[slot.0]?.links[CLASS].next)
    }
}

/// The link of `slot` in the lists of kind `KIND`.
fn link<const KIND: usize>(nodes: &mut [Option<Node>], slot: SlotId) -> &mut Link {
    let node = nodes[slot.0].as_mut().expect("only idle connections are in lists");
    &mut node.links[KIND]
}

fn append<const KIND: usize>(nodes: &mut [Option<Node>], list: &mut List, slot: SlotId) {
    let previous = list.newest.replace(slot);
    match previous {
        Some(previous) => link::<KIND>(nodes, previous).next = Some(slot),
        None => list.oldest = Some(slot),
    }
    link::<KIND>(nodes, slot).previous = previous;
}

fn move_to_front<const KIND: usize>(nodes: &mut [Option<Node>], list: &mut List, slot: SlotId) {
    let node = nodes[slot.0].expect("only idle connections are in lists");
    unlink::<KIND>(nodes, list, node);
    let next = list.oldest.replace(slot);
    match next {
        Some(next) => link::<KIND>(nodes, next).previous = Some(slot),
        None => list.newest = Some(slot),
    }
    *link::<KIND>(nodes, slot) = Link { previous: None, next };
}

fn unlink<const KIND: usize>(nodes: &mut [Option<Node>], list: &mut List, node: Node) {
    let Link { previous, next } = node.links[KIND];
    match previous {
        Some(previous) => link::<KIND>(nodes, previous).next = next,
        None => list.oldest = next,
    }
    match next {
        Some(next) => link::<KIND>(nodes, next).previous = previous,
        None => list.newest = previous,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same index, as a plain list that is searched from its old end.
    #[derive(Default)]
    struct Plain(Vec<(SlotId, ClassId, Option<u64>)>);

    impl Plain {
        fn oldest(&self, wanted: impl Fn(ClassId, Option<u64>) -> bool) -> Option<SlotId> {
            self.0.iter().find(|(_, class, state)| wanted(*class, *state)).map(|(slot, ..)| *slot)
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_list(
            steps in proptest::collection::vec((0..12usize, 0..3usize, 0..3u64, any::<bool>()), 1..200),
        ) {
            let now = Instant::now();
            let (mut index, mut plain) = (IdleIndex::default(), Plain::default());
            for (slot, class, state, front) in steps {
                let (slot, class, state) = (SlotId(slot), ClassId(class), state.checked_sub(1));
                let was_in = plain.0.iter().any(|(s, ..)| *s == slot);
                prop_assert_eq!(index.remove(slot), was_in);
                plain.0.retain(|(s, ..)| *s != slot);
                if !was_in {
                    index.insert(slot, class, state, now);
                    plain.0.push((slot, class, state));
                    if front {
                        index.put_first(slot, now);
                        plain.0.rotate_right(1);
                    }
                }
                prop_assert_eq!(index.oldest().map(|(slot, _)| slot), plain.oldest(|_, _| true));
                prop_assert_eq!(index.oldest_of(class), plain.oldest(|c, _| c == class));
                prop_assert_eq!(index.oldest_in(class, state), plain.oldest(|c, s| (c, s) == (class, state)));
                prop_assert_eq!(index.iter().collect::<Vec<_>>(), plain.0.iter().map(|(s, ..)| *s).collect::<Vec<_>>());
                let of_class = plain.0.iter().filter(|(_, c, _)| *c == class).map(|(s, ..)| *s).collect::<Vec<_>>();
                prop_assert_eq!(index.iter_of(class).collect::<Vec<_>>(), of_class);
            }
        }
    }
}
