//! The one place of the demo that prints: sentences to a writer, a progress bar to a terminal.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use crate::load::Bar;

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
        Bar::new(clients, duration, self.bars)
    }
}
