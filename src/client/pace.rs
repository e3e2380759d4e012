//! How fast clients may come: so many per second from everywhere, and so many from one address. Pure: times in, waits out.
//!
//! Each limit is one moment, the one up to which the clients so far have used it up. A client moves it by one interval; who
//! would move it further ahead of now than a burst is too early.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How much of a second's worth may come at once.
const BURST: Duration = Duration::from_millis(100);

/// With more addresses than this, those that are not limited at the moment are forgotten.
const MANY: usize = 1024;

/// How fast clients may come.
#[derive(Debug)]
pub struct Pace {
    interval: Option<Duration>,
    interval_per_address: Option<Duration>,
    used_up_to: Mutex<Option<Instant>>,
    by_address: Mutex<Addresses>,
}

#[derive(Debug, Default)]
struct Addresses {
    used_up_to: HashMap<IpAddr, Instant>,
    /// When there are this many, they are looked through.
    sweep_at: usize,
}

impl Pace {
    /// Clients per second, from everywhere and from one address; 0 is no limit.
    #[must_use]
    pub fn new(rate: u32, rate_per_address: u32) -> Self {
        let interval = |rate: u32| (rate > 0).then(|| Duration::from_secs(1) / rate);
        Self {
            interval: interval(rate),
            interval_per_address: interval(rate_per_address),
            used_up_to: Mutex::default(),
            by_address: Mutex::default(),
        }
    }

    /// How long the next client is to wait before it is accepted; if not at all, it counts from now on.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let interval = self.interval?;
        let mut used_up_to = self.used_up_to.lock();
        match next(*used_up_to, interval, now) {
            Ok(moment) => {
                *used_up_to = Some(moment);
                None
            }
            Err(wait) => Some(wait),
        }
    }

    /// May one more client come from this address?
    pub(super) fn admits(&self, address: IpAddr, now: Instant) -> bool {
        let Some(interval) = self.interval_per_address else { return true };
        let mut all = self.by_address.lock();
        if all.used_up_to.len() >= all.sweep_at.max(MANY) {
            all.used_up_to.retain(|_, moment| *moment > now);
            all.sweep_at = 2 * all.used_up_to.len();
        }
        match next(all.used_up_to.get(&address).copied(), interval, now) {
            Ok(moment) => {
                all.used_up_to.insert(address, moment);
                true
            }
            Err(_) => false,
        }
    }
}

/// The moment up to which one more client uses a limit up, or how much too early it is.
fn next(used_up_to: Option<Instant>, interval: Duration, now: Instant) -> Result<Instant, Duration> {
    let from = used_up_to.map_or(now, |moment| moment.max(now));
    let ahead = from.duration_since(now);
    match ahead.checked_sub(BURST.max(interval) - interval) {
        Some(wait) if !wait.is_zero() => Err(wait),
        _ => Ok(from + interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// How many of `clients`, who come every `every`, are let in by `admits`.
    fn let_in(clients: u32, every: Duration, admits: impl Fn(Instant) -> bool) -> u32 {
        let start = Instant::now();
        (0..clients).map(|n| u32::from(admits(start + every * n))).sum()
    }

    #[test]
    fn so_many_a_second_and_a_tenth_of_it_at_once() {
        let pace = Pace::new(1000, 0);
        let now = Instant::now();
        let at_once = (0..5000).take_while(|_| pace.wait(now).is_none()).count();
        assert_eq!(at_once, 100);
        let wait = pace.wait(now).unwrap();
        assert!(wait <= MS && !wait.is_zero(), "{wait:?}");
        assert!(pace.wait(now + wait).is_none(), "who waits is served");
        assert_eq!(let_in(10_000, MS / 10, |at| Pace::new(0, 0).wait(at).is_none()), 10_000, "no limit");
        let pace = Pace::new(1000, 0);
        let served = let_in(50_000, MS / 10, |at| pace.wait(at).is_none());
        assert!((5_000..=5_101).contains(&served), "{served} in five seconds");
    }

    #[test]
    fn one_a_second_is_one_a_second() {
        let pace = Pace::new(1, 0);
        let now = Instant::now();
        assert!(pace.wait(now).is_none());
        assert_eq!(pace.wait(now), Some(Duration::from_secs(1)));
        assert!(pace.wait(now + Duration::from_secs(1)).is_none());
    }

    #[test]
    fn each_address_has_its_own() {
        let pace = Pace::new(0, 100);
        let [one, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let now = Instant::now();
        assert_eq!((0..1000).filter(|_| pace.admits(one, now)).count(), 10);
        assert!(pace.admits(other, now));
        assert!(pace.admits(one, now + 10 * MS), "a hundredth of a second later one more");
        assert!(!pace.admits(one, now + 10 * MS));
        assert!(pace.wait(now).is_none());
    }

    #[test]
    fn addresses_that_are_not_limited_now_are_forgotten() {
        let pace = Pace::new(0, 1000);
        let start = Instant::now();
        for n in 0..200_000_u32 {
            assert!(pace.admits(IpAddr::from(n.to_be_bytes()), start + MS * n));
        }
        assert!(pace.by_address.lock().used_up_to.len() <= 2 * MANY);
    }
}
