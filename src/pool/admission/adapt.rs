//! `max_running = "auto"`: finds how many statements should run at once.
//!
//! Throughput rises with the number of running statements until the server has no more to give; beyond, only latency
//! rises. So the number is moved up and down by a little in turns, while there is work for all of it, and the throughput
//! of both is compared. Their elasticity
//!
//! ```text
//!            ln (throughput above) − ln (throughput below)
//! gradient = ─────────────────────────────────────────────      1: twice as many do twice the work
//!               ln (limit above) − ln (limit below)             0: they only take longer
//! ```
//!
//! is smoothed; above [`WANTED`] the limit grows, below it shrinks, the faster the further away. A limit that is not
//! reached teaches nothing, and stays.

use std::time::{Duration, Instant};

/// How far up and down the limit is moved for a sample, as a part of it.
const SWING: f64 = 0.15;
/// The gradient at which the limit stays: the last tenth more of running statements still does 2 % more work.
const WANTED: f64 = 0.20;
/// How fast the limit follows the gradient.
const GAIN: f64 = 0.6;
/// The most that one pair of samples changes the limit by, as a part of it.
const STEP: f64 = 0.2;
/// The weight of the newest gradient in the smoothed one.
const SMOOTHING: f64 = 0.25;
/// The shortest sample.
const SHORTEST: Duration = Duration::from_millis(100);
/// A sample that has not seen enough by then is dropped.
const LONGEST: Duration = Duration::from_secs(2);
/// A sample is of so many statements at least, and of so many times as many as run.
const FEWEST: u32 = 40;
const TIMES: u32 = 3;
/// The limit before anything is known.
const FIRST: f64 = 8.0;
/// The least limit.
const LEAST: f64 = 2.0;

/// What has been found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::pool) struct Adapted {
    /// Statements that may run, before it is moved up or down for a sample.
    pub(in crate::pool) limit: f64,
    /// The smoothed elasticity of throughput.
    pub(in crate::pool) gradient: f64,
    /// Pairs of samples that were compared.
    pub(in crate::pool) samples: u64,
}

/// The search.
#[derive(Debug)]
pub(super) struct Adapt {
    most: f64,
    state: Adapted,
    /// Is the sample under way the one above?
    above: bool,
    began: Instant,
    /// Statements that began under the other limit, and are still to end.
    settling: u32,
    ended: u32,
    /// How many ended while the limit was reached.
    full: u32,
    /// The throughput of the sample above, per second.
    above_rate: Option<f64>,
}

impl Adapt {
    /// Nothing known; at most `most` may run.
    pub(super) fn new(most: usize, now: Instant) -> Self {
        let most = (most as f64).max(LEAST);
        Self {
            most,
            state: Adapted { limit: FIRST.min(most), gradient: WANTED, samples: 0 },
            above: true,
            began: now,
            settling: 0,
            ended: 0,
            full: 0,
            above_rate: None,
        }
    }

    /// How many may run now.
    pub(super) fn limit(&self) -> usize {
        let (below, above) = self.swing();
        if self.above { above } else { below }
    }

    pub(super) fn state(&self) -> Adapted {
        self.state
    }

    /// A statement ended; `full`: the limit was reached, and somebody waited.
    pub(super) fn ended(&mut self, full: bool, now: Instant) {
        if self.settling > 0 {
            self.settling -= 1;
            self.began = now;
            return;
        }
        self.ended += 1;
        self.full += u32::from(full);
        let took = now.saturating_duration_since(self.began);
        let running = u32::try_from(self.limit()).unwrap_or(u32::MAX);
        let few = self.ended < FEWEST.max(running.saturating_mul(TIMES));
        if took < SHORTEST || (few && took < LONGEST) {
            return;
        }
        let rate = f64::from(self.ended) / took.as_secs_f64();
        let telling = !few && self.full * 10 >= self.ended * 9;
        match self.above_rate.take() {
            _ if !telling => self.above = true,
            None => {
                self.above_rate = Some(rate);
                self.above = false;
            }
            Some(above_rate) => {
                self.compare(above_rate, rate);
                self.above = true;
            }
        }
        (self.began, self.ended, self.full, self.settling) = (now, 0, 0, running);
    }

    /// The limits of both samples: whole numbers, and different.
    fn swing(&self) -> (usize, usize) {
        let below = (self.state.limit * (1.0 - SWING)).floor().max(1.0);
        let above = (self.state.limit * (1.0 + SWING)).ceil().min(self.most).max(below + 1.0);
        (below as usize, above as usize)
    }

    fn compare(&mut self, above_rate: f64, below_rate: f64) {
        let (below, above) = self.swing();
        let gradient = (above_rate / below_rate).ln() / (above as f64 / below as f64).ln();
        // One bad sample must not count for many.
        let gradient = gradient.clamp(-1.0, 2.0);
        let state = &mut self.state;
        state.gradient += SMOOTHING * (gradient - state.gradient);
        state.samples += 1;
        let step = (GAIN * (state.gradient - WANTED)).clamp(-STEP, STEP);
        state.limit = (state.limit * step.exp()).clamp(LEAST, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::Dice;
    use super::*;

    /// A server whose throughput rises until `knee` statements run, then falls by `loss` for each twice as many.
    struct Model {
        adapt: Adapt,
        now: Instant,
        dice: Dice,
        knee: f64,
        loss: f64,
        noise: f64,
    }

    impl Model {
        fn new(knee: f64, loss: f64, noise: f64) -> Self {
            let now = Instant::now();
            Self { adapt: Adapt::new(1000, now), now, dice: Dice::new(3), knee, loss, noise }
        }

        /// Lets this many seconds pass with all in use; the mean limit over the last half.
        fn run(&mut self, seconds: f64, full: bool) -> f64 {
            let (end, mut sum, mut n) = (self.now + Duration::from_secs_f64(seconds), 0.0, 0.0);
            while self.now < end {
                let noise = 1.0 + self.noise * (self.dice.throw() - 0.5);
                // A burst shares one deviation, as on a real machine.
                for _ in 0..200 {
                    let limit = self.adapt.limit() as f64;
                    let over = (limit / self.knee).log2().max(0.0);
                    let rate = 5_000.0 * limit.min(self.knee) / self.knee * (1.0 - self.loss).powf(over);
                    self.now += Duration::from_secs_f64(noise / rate);
                    self.adapt.ended(full, self.now);
                }
                if end.saturating_duration_since(self.now).as_secs_f64() < seconds / 2.0 {
                    sum += self.adapt.state().limit;
                    n += 1.0;
                }
            }
            sum / n
        }
    }

    #[test]
    fn it_settles_near_the_knee() {
        for (knee, loss, noise) in [(4.0, 0.0, 0.0), (16.0, 0.02, 0.2), (60.0, 0.0, 0.2), (200.0, 0.1, 0.3)] {
            let found = Model::new(knee, loss, noise).run(30.0, true);
            assert!((0.7..1.6).contains(&(found / knee)), "{knee}: {found}");
        }
    }

    #[test]
    fn it_follows_a_change_within_seconds() {
        let mut model = Model::new(6.0, 0.02, 0.1);
        model.run(10.0, true);
        model.knee = 64.0;
        let found = model.run(8.0, true);
        assert!((40.0..100.0).contains(&found), "{found}");
        model.knee = 6.0;
        let found = model.run(8.0, true);
        assert!((4.0..10.0).contains(&found), "{found}");
    }

    #[test]
    fn it_learns_nothing_from_a_limit_that_is_not_reached() {
        let mut model = Model::new(50.0, 0.0, 0.1);
        let before = model.adapt.state();
        model.run(10.0, false);
        assert_eq!(model.adapt.state(), before);
    }
}
