//! The one place of the demo that prints: sentences to a writer, a progress bar to a terminal.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::table::grouped;
use crate::load::{Phase, Snapshot};

/// The rate shown is an average over about this time.
const RATE_WINDOW: Duration = Duration::from_secs(1);

/// Where the demo prints to.
pub(super) struct Console {
    out: RefCell<Box<dyn Write>>,
    /// Whether there is anybody to move a bar for.
    bars: bool,
}

impl Console {
    /// Standard output, and bars on standard error if that is a terminal.
    pub(super) fn standard() -> Self {
        Self { out: RefCell::new(Box::new(std::io::stdout())), bars: std::io::stderr().is_terminal() }
    }

    /// Prints nothing.
    #[cfg(test)]
    pub(super) fn silent() -> Self {
        Self { out: RefCell::new(Box::new(std::io::sink())), bars: false }
    }

    /// Prints a line.
    pub(super) fn line(&self, text: impl AsRef<str>) {
        let mut out = self.out.borrow_mut();
        // Nobody reads any more: then there is nobody to tell that either.
        let _ = writeln!(out, "{}", text.as_ref());
        let _ = out.flush();
    }

    /// A bar for a run with this many clients and this long; it goes away when dropped.
    pub(super) fn bar(&self, clients: usize, duration: Duration) -> Bar {
        let target = if self.bars { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        // The template is constant, so the fallback is never seen.
        let style = ProgressStyle::with_template("  {wide_bar} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Bar { bar, clients, duration, before: Cell::new(Before::default()) }
    }
}

/// A progress bar.
pub(super) struct Bar {
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
    /// Shows how far the run is.
    pub(super) fn show(&self, snapshot: &Snapshot) {
        let (length, position) = match snapshot.phase {
            Phase::Connecting | Phase::Idle => (self.clients as u64, snapshot.connected as u64),
            Phase::Running => (millis(self.duration), millis(snapshot.elapsed)),
            Phase::Stopping => (1, 1),
        };
        self.bar.set_length(length);
        self.bar.set_position(position.min(length));
        self.bar.set_message(self.message(snapshot));
    }

    /// Prints a line above the bar.
    pub(super) fn above(&self, console: &Console, text: impl AsRef<str>) {
        self.bar.suspend(|| console.line(text));
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
        let bar = Console::silent().bar(10, Duration::from_secs(4));
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
