//! How far a run is, on a terminal.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::report::{Phase, Snapshot};
use super::table::grouped;

/// The rate shown is an average over about this time.
const RATE_WINDOW: Duration = Duration::from_secs(1);

/// A progress bar.
pub struct Bar {
    bar: ProgressBar,
    clients: usize,
    duration: Duration,
    before: Cell<Before>,
}

/// What the rate is measured from.
#[derive(Clone, Copy, Default)]
struct Before {
    elapsed: Duration,
    statements: u64,
    rate: u64,
}

impl Bar {
    /// A bar for a run with this many clients and this long, on standard error if `shown`; it goes away when dropped.
    #[must_use]
    pub fn new(clients: usize, duration: Duration, shown: bool) -> Self {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        // The template is constant, so the fallback is never seen.
        let style = ProgressStyle::with_template("  {wide_bar} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Self { bar, clients, duration, before: Cell::new(Before::default()) }
    }

    /// Shows how far the run is.
    pub fn show(&self, snapshot: &Snapshot) {
        let (length, position) = match snapshot.phase {
            Phase::Connecting | Phase::Idle => (self.clients as u64, snapshot.connected as u64),
            Phase::Running => (millis(self.duration), millis(snapshot.elapsed)),
            Phase::Stopping => (1, 1),
        };
        self.bar.set_length(length);
        self.bar.set_position(position.min(length));
        self.bar.set_message(self.message(snapshot));
    }

    /// Has something printed above the bar.
    pub fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    fn message(&self, snapshot: &Snapshot) -> String {
        let connected = grouped(snapshot.connected as u64);
        match snapshot.phase {
            Phase::Connecting | Phase::Idle => format!("{connected} clients connected"),
            Phase::Running => format!("{connected} clients, {} statements/s", grouped(self.rate(snapshot))),
            Phase::Stopping => format!("{connected} clients saying good-bye"),
        }
    }

    fn rate(&self, snapshot: &Snapshot) -> u64 {
        let before = self.before.get();
        let passed = snapshot.elapsed.saturating_sub(before.elapsed);
        if passed < RATE_WINDOW {
            return before.rate;
        }
        let new = snapshot.statements.saturating_sub(before.statements);
        let rate = new.saturating_mul(1000) / millis(passed).max(1);
        self.before.set(Before { elapsed: snapshot.elapsed, statements: snapshot.statements, rate });
        rate
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_the_snapshots() {
        let bar = Bar::new(10, Duration::from_secs(4), false);
        let at = |millis, statements| Snapshot {
            phase: Phase::Running,
            elapsed: Duration::from_millis(millis),
            connected: 1234,
            statements,
            errors: 0,
        };
        assert_eq!(bar.message(&at(500, 900)), "1,234 clients, 0 statements/s");
        assert_eq!(bar.message(&at(2000, 4000)), "1,234 clients, 2,000 statements/s");
        assert_eq!(bar.message(&at(2100, 9000)), "1,234 clients, 2,000 statements/s");
        bar.show(&at(2100, 9000));
    }
}
