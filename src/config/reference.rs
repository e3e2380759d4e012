//! Options for people: name, value, range.

use super::options::{OPTIONS, Opt};
use super::settings::Config;

/// One option and its value in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// As in `server.tls.mode`.
    pub name: &'static str,
    /// The value as TOML; `None` if the option is not given and has no default.
    pub value: Option<String>,
    /// Which values are allowed.
    pub range: String,
}

/// Every option of a configuration but its users, in the order of `config/myriad.toml`.
#[must_use]
pub fn describe(config: &Config) -> Vec<Described> {
    OPTIONS.iter().map(|option| one(option, config)).collect()
}

pub(super) fn one<T>(option: &Opt<T>, target: &T) -> Described {
    let value = Some((option.show)(target)).filter(|value| !value.is_empty());
    Described { name: option.name, value, range: (option.range)() }
}
