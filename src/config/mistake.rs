//! What is wrong with the settings, where, and what to change. All of it at once, never only the first.

use std::fmt;
use std::path::PathBuf;

/// Where a value was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it is the default.
    #[default]
    Default,
    /// The file as a whole (it cannot be read).
    File(PathBuf),
    /// In the file, counted from one; the column counts characters.
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// An environment variable.
    Variable(String),
    /// The `number`th use (from one) of a flag on the command line.
    Flag {
        /// `--set`, `--listen` or `--backend`.
        name: &'static str,
        /// Which of them.
        number: usize,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Line { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => write!(f, "{name}"),
            Self::Flag { name, number } => write!(f, "{name} {number}"),
        }
    }
}

/// One mistake: `config/myriad.toml:12:5: pool.min_idle: must be at most ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is.
    pub place: Place,
    /// Which option, as in `pool.min_idle`; empty when it concerns none in particular.
    pub option: String,
    /// What is wrong and what to change. Never contains a password.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.option.is_empty() {
            write!(f, "{}: ", self.option)?;
        }
        write!(f, "{}", self.message)
    }
}

/// Every mistake in the settings, in the order they were written; never empty as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Adds one.
    pub(super) fn push(&mut self, place: &Place, option: impl Into<String>, message: impl Into<String>) {
        self.0.push(Mistake { place: place.clone(), option: option.into(), message: message.into() });
    }

    /// Keeps those for which `keep` says so.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Mistake) -> bool) {
        self.0.retain(keep);
    }

    /// Puts them into the order in which somebody would look for them: the file from top to bottom, then the rest.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|mistake| match &mistake.place {
            Place::File(_) => (0, 0, 0),
            Place::Line { line, column, .. } => (1, *line, *column),
            Place::Variable(_) => (2, 0, 0),
            Place::Flag { number, .. } => (3, *number, 0),
            Place::Default => (4, 0, 0),
        });
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Mistakes {
    type Item = &'a Mistake;
    type IntoIter = std::slice::Iter<'a, Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line each.
impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.iter().enumerate() {
            let end_of_previous = if i == 0 { "" } else { "\n" };
            write!(f, "{end_of_previous}{mistake}")?;
        }
        Ok(())
    }
}
