//! How many statements run at once: `scheduler.max_running`.
//!
//! A leased connection *runs* from its grant until its turn ends; a session that keeps it *pauses* between turns and asks
//! again. With a limit, no more than so many run. One that has run for `stall_limit` is *stalled*: it waits for a lock, or
//! is a long report, and no longer counts, so that it does not stop the others; at most `oversubscribe` may be stalled.
//!
//! Stalls that follow each other closely mean that many such statements are in line, and each would cost the rest another
//! `stall_limit`. So patience halves with each, down to a sixteenth, and is whole again when none has come for a while.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::SlotId;
use super::adapt::{Adapt, Adapted};
use crate::config::MaxRunning;

/// The least part of `stall_limit` that patience shrinks to.
const LEAST_PATIENCE: u32 = 16;

/// The numbers that limit what runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLimits {
    pub(super) max_running: MaxRunning,
    pub(super) stall_limit: Duration,
    pub(super) oversubscribe: usize,
    /// What `auto` may go up to.
    pub(super) most: usize,
}

/// Whether what a connection is leased for runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Run {
    /// Not leased, or between two turns.
    #[default]
    Paused,
    /// Since then.
    Running(Instant),
    /// Since then, and too long.
    Stalled(Instant),
}

/// What runs.
#[derive(Debug)]
pub(super) struct Running {
    limits: RunLimits,
    adapt: Option<Adapt>,
    /// Those that run and are not stalled, the oldest first.
    in_order: BTreeSet<(Instant, SlotId)>,
    stalled: usize,
    patience: Duration,
    last_stall: Option<Instant>,
    /// How many have stalled, ever.
    stalls: u64,
}

impl Running {
    pub(super) fn new(limits: RunLimits, now: Instant) -> Self {
        let auto = limits.max_running == MaxRunning::Auto;
        Self {
            adapt: auto.then(|| Adapt::new(limits.most, now)),
            in_order: BTreeSet::new(),
            stalled: 0,
            patience: limits.stall_limit,
            last_stall: None,
            stalls: 0,
            limits,
        }
    }

    /// Is nothing limited?
    pub(super) fn is_off(&self) -> bool {
        self.limits.max_running == MaxRunning::Off
    }

    /// How many may run now.
    pub(super) fn limit(&self) -> usize {
        match (&self.adapt, self.limits.max_running) {
            (Some(adapt), _) => adapt.limit(),
            (None, MaxRunning::At(limit)) => limit,
            (None, _) => usize::MAX,
        }
    }

    /// What `auto` has found, and from how much.
    pub(super) fn adapted(&self) -> Option<Adapted> {
        self.adapt.as_ref().map(Adapt::state)
    }

    /// Those that count, those that are stalled, and how many have ever been.
    pub(super) fn counts(&self) -> (usize, usize, u64) {
        (self.in_order.len(), self.stalled, self.stalls)
    }

    /// May one more run?
    pub(super) fn has_room(&self) -> bool {
        self.is_off() || self.in_order.len() < self.limit()
    }

    /// A turn begins on this connection.
    pub(super) fn start(&mut self, slot: SlotId, now: Instant) -> Run {
        if self.is_off() {
            return Run::Paused;
        }
        self.in_order.insert((now, slot));
        Run::Running(now)
    }

    /// A turn ends. `waits` says whether anybody would have run instead.
    pub(super) fn stop(&mut self, slot: SlotId, run: Run, waits: bool, now: Instant) {
        match run {
            Run::Paused => {}
            Run::Running(since) => {
                let full = self.in_order.len() >= self.limit();
                self.in_order.remove(&(since, slot));
                if let Some(adapt) = &mut self.adapt {
                    adapt.ended(full && waits, now);
                }
            }
            Run::Stalled(_) => self.stalled -= 1,
        }
    }

    /// The oldest statement that has run for longer than patience lasts, if it may be counted as stalled now.
    pub(super) fn stall(&mut self, now: Instant) -> Option<(SlotId, Run)> {
        let (since, slot) = self.in_order.first().copied()?;
        if self.stalled >= self.limits.oversubscribe || since + self.patience > now {
            return None;
        }
        self.in_order.pop_first();
        self.stalled += 1;
        self.stalls += 1;
        Some((slot, Run::Stalled(since)))
    }

    /// Somebody waits, and stalled statements had to make room: patience from now on.
    pub(super) fn lose_patience(&mut self, now: Instant) {
        let soon = self.last_stall.is_some_and(|last| now < last + 2 * self.limits.stall_limit);
        let least = self.limits.stall_limit / LEAST_PATIENCE;
        self.patience = if soon { (self.patience / 2).max(least) } else { self.limits.stall_limit };
        self.last_stall = Some(now);
    }

    /// When the next statement will be stalled, if none ends before.
    pub(super) fn next_stall(&self) -> Option<Instant> {
        let (since, _) = self.in_order.first().filter(|_| self.stalled < self.limits.oversubscribe)?;
        Some(*since + self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(max_running: usize, oversubscribe: usize, now: Instant) -> Running {
        let max_running = MaxRunning::At(max_running);
        Running::new(RunLimits { max_running, stall_limit: 160 * MS, oversubscribe, most: 100 }, now)
    }

    #[test]
    fn what_stalls_makes_room_for_so_many() {
        let now = Instant::now();
        let mut running = at(2, 3, now);
        let one = running.start(SlotId(1), now);
        assert!(running.has_room());
        running.start(SlotId(2), now + MS);
        assert!(!running.has_room());
        assert_eq!(running.next_stall(), Some(now + 160 * MS));
        assert_eq!(running.stall(now + 159 * MS), None);
        let later = now + 160 * MS;
        assert_eq!(running.stall(later), Some((SlotId(1), Run::Stalled(now))));
        assert_eq!(running.stall(later), None, "the other has not run for so long");
        assert!(running.has_room());
        assert_eq!(running.counts(), (1, 1, 1));
        running.stop(SlotId(1), Run::Stalled(now), true, later);
        running.stop(SlotId(1), one, true, later);
        assert_eq!(running.counts(), (1, 0, 1));
        for slot in 3..9 {
            running.start(SlotId(slot), later);
        }
        let much_later = now + 1000 * MS;
        assert_eq!((0..9).filter(|_| running.stall(much_later).is_some()).count(), 3, "oversubscribe");
        assert_eq!((running.counts(), running.next_stall()), ((4, 3, 4), None));
    }

    #[test]
    fn patience_halves_while_stalls_follow_each_other() {
        let mut now = Instant::now();
        let mut running = at(1, 100, now);
        let mut waited = Vec::new();
        for slot in 0..8 {
            running.start(SlotId(slot), now);
            let next = running.next_stall().unwrap();
            waited.push((next - now).as_millis());
            now = next;
            assert!(running.stall(now).is_some());
            running.lose_patience(now);
        }
        assert_eq!(waited, [160, 160, 80, 40, 20, 10, 10, 10]);
        now += 320 * MS;
        running.lose_patience(now);
        running.start(SlotId(9), now);
        assert_eq!(running.next_stall(), Some(now + 160 * MS), "whole again");
    }

    #[test]
    fn off_costs_nothing_and_limits_nothing() {
        let now = Instant::now();
        let limits = RunLimits { max_running: MaxRunning::Off, stall_limit: MS, oversubscribe: 1, most: 1 };
        let mut running = Running::new(limits, now);
        for slot in 0..9 {
            assert_eq!(running.start(SlotId(slot), now), Run::Paused);
            assert!(running.has_room());
        }
        assert_eq!((running.counts(), running.next_stall()), ((0, 0, 0), None));
    }
}
