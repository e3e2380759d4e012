//! When to dial after failed dials: back-off for a server that cannot be reached, a ceiling for one that is full.

use std::time::{Duration, Instant};

use super::SlotId;

/// The shortest pause before the second attempt.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(1);

/// Random numbers from a seed (SplitMix64), for jitter only.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 (included) to 1 (not included).
    pub(super) fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The pause after this many failures in a row: doubling, of which up to a half is cut off at random, so that many
/// proxies do not knock at once.
fn pause(strikes: u32, dice: &mut Dice) -> Duration {
    let whole = SHORTEST.saturating_mul(1 << strikes.min(16)).min(LONGEST);
    whole.mul_f64(1.0 - dice.throw() / 2.0).max(SHORTEST)
}

/// Can the server be reached?
#[derive(Debug)]
pub(super) struct Gate {
    state: GateState,
    strikes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateState {
    /// As far as we know. Left by a dial that cannot reach the server.
    Open,
    /// No. Left by the first dial after `until`.
    Shut { until: Instant },
    /// This dial will tell. Left when it has ended, or when any other dial succeeds.
    Probing { slot: SlotId },
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { state: GateState::Open, strikes: 0 }
    }

    /// May somebody dial now?
    pub(super) fn lets_through(&self, now: Instant) -> bool {
        match self.state {
            GateState::Open => true,
            GateState::Shut { until } => now >= until,
            GateState::Probing { .. } => false,
        }
    }

    /// Is the server known to be out of reach, no attempt being due yet?
    pub(super) fn is_shut(&self, now: Instant) -> bool {
        matches!(self.state, GateState::Shut { until } if now < until)
    }

    /// Is there nothing against the server?
    pub(super) fn is_open(&self) -> bool {
        self.state == GateState::Open
    }

    /// When the next attempt is due, if nobody may dial before.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        match self.state {
            GateState::Shut { until } => Some(until),
            _ => None,
        }
    }

    /// This dial begins.
    pub(super) fn dialing(&mut self, slot: SlotId) {
        if matches!(self.state, GateState::Shut { .. }) {
            self.state = GateState::Probing { slot };
        }
    }

    /// A dial had an answer from the server, good or bad.
    pub(super) fn reached(&mut self) {
        *self = Self::new();
    }

    /// This dial could not reach the server. Dials that began before the first failure add nothing to it.
    pub(super) fn unreachable(&mut self, slot: SlotId, now: Instant, dice: &mut Dice) {
        if self.state == GateState::Open || self.state == (GateState::Probing { slot }) {
            self.strikes += 1;
            self.state = GateState::Shut { until: now + pause(self.strikes, dice) };
        }
    }

    /// This dial ended without telling anything about the server.
    pub(super) fn gave_up(&mut self, slot: SlotId, now: Instant, dice: &mut Dice) {
        if self.state == (GateState::Probing { slot }) {
            self.unreachable(slot, now, dice);
        }
    }
}

/// How many connections a server, or one account, seems to have room for.
///
/// A "full" lowers the ceiling to what there is. After a pause one more connection is tried at a time: each success
/// raises the ceiling by one, and as many successes as there were failures lift it.
#[derive(Debug)]
pub(super) struct Ceiling {
    room: usize,
    until: Instant,
    strikes: u32,
}

impl Ceiling {
    /// The server said "full"; `left` connections are there or being opened.
    pub(super) fn lower(ceiling: &mut Option<Self>, left: usize, now: Instant, dice: &mut Dice) {
        let this = ceiling.get_or_insert(Self { room: left, until: now, strikes: 0 });
        this.room = left;
        // Failures of dials that began before the first one add nothing to the pause.
        if now >= this.until {
            this.strikes += 1;
            this.until = now + pause(this.strikes, dice);
        }
    }

    /// A dial succeeded, to make `total`.
    pub(super) fn raise(ceiling: &mut Option<Self>, total: usize) {
        let Some(this) = ceiling else { return };
        this.room = this.room.max(total);
        this.strikes = this.strikes.saturating_sub(1);
        if this.strikes == 0 {
            *ceiling = None;
        }
    }

    /// Is there room for one more beside `total`?
    pub(super) fn has_room(&self, total: usize, now: Instant) -> bool {
        total < self.room || (total == self.room && now >= self.until)
    }

    /// When one more may be tried.
    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut dice = Dice::new(7);
        for (strikes, least, most) in
            [(0, 10, 10), (1, 10, 20), (2, 20, 40), (6, 320, 640), (7, 500, 1000), (60, 500, 1000)]
        {
            for _ in 0..100 {
                let pause = pause(strikes, &mut dice);
                assert!(pause >= least * MS && pause <= most * MS, "{strikes}: {pause:?}");
            }
        }
    }

    #[test]
    fn a_shut_gate_lets_one_probe_through() {
        let (now, mut dice, mut gate) = (Instant::now(), Dice::new(7), Gate::new());
        assert!(gate.lets_through(now) && gate.is_open());
        gate.dialing(SlotId(1));
        gate.dialing(SlotId(2));
        gate.unreachable(SlotId(1), now, &mut dice);
        let until = gate.opens_at().unwrap();
        assert!(!gate.lets_through(now) && gate.is_shut(now));
        // Began before: no longer pause.
        gate.unreachable(SlotId(2), now + MS, &mut dice);
        assert_eq!(gate.opens_at(), Some(until));
        assert!(gate.lets_through(until) && !gate.is_shut(until) && !gate.is_open());
        gate.dialing(SlotId(3));
        assert!(!gate.lets_through(until));
        gate.gave_up(SlotId(2), until, &mut dice);
        assert!(!gate.is_shut(until), "another dial decides nothing");
        gate.unreachable(SlotId(3), until, &mut dice);
        assert!(gate.opens_at().unwrap() >= until + 20 * MS, "longer each time");
        gate.reached();
        assert!(gate.is_open());
    }

    #[test]
    fn a_ceiling_is_tried_one_by_one() {
        let (now, mut dice, mut ceiling) = (Instant::now(), Dice::new(7), None);
        Ceiling::lower(&mut ceiling, 3, now, &mut dice);
        Ceiling::lower(&mut ceiling, 2, now, &mut dice);
        let until = {
            let c = ceiling.as_ref().unwrap();
            assert!(c.has_room(1, now) && !c.has_room(2, now));
            assert!(c.has_room(2, c.until()) && !c.has_room(3, c.until()));
            c.until()
        };
        Ceiling::lower(&mut ceiling, 2, until, &mut dice);
        Ceiling::raise(&mut ceiling, 3);
        assert!(ceiling.as_ref().unwrap().has_room(3, until + 1000 * MS));
        Ceiling::raise(&mut ceiling, 4);
        assert!(ceiling.is_none());
    }
}
