//! Which backend connections are interchangeable.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Account;
use crate::protocol::capability::{CLASS_FLAGS, CapabilityFlags};
use crate::session::Value;

/// Same account, the same flags that change what statements mean and cannot be switched later, and the same defaults.
#[derive(Clone, Debug)]
pub struct Class {
    /// Who logs in to the server.
    pub account: Arc<Account>,
    flags: CapabilityFlags,
    /// In which era of the server's global variables they are opened: see [`Defaults`](super::Defaults).
    pub era: u64,
}

impl Class {
    /// The class that a client with these capabilities needs, whose session has the defaults of this era.
    #[must_use]
    pub fn new(account: Arc<Account>, capabilities: CapabilityFlags, era: u64) -> Self {
        Self { account, flags: capabilities & CLASS_FLAGS, era }
    }

    /// These former defaults as sessions of this class have them: an interactive client's `wait_timeout` is what
    /// `interactive_timeout` is by default.
    #[must_use]
    pub fn inherited(&self, mut defaults: Vec<(Box<str>, Value)>) -> Vec<(Box<str>, Value)> {
        if self.flags.contains(CapabilityFlags::CLIENT_INTERACTIVE) {
            defaults.retain(|(name, _)| &**name != "wait_timeout");
            let timeout = defaults.iter().find(|(name, _)| &**name == "interactive_timeout");
            let timeout = timeout.map(|(_, value)| ("wait_timeout".into(), value.clone()));
            defaults.extend(timeout);
        }
        defaults
    }

    /// The flags that all connections of the class have.
    #[must_use]
    pub fn flags(&self) -> CapabilityFlags {
        self.flags
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        self.account.id == other.account.id && self.flags == other.flags && self.era == other.era
    }
}

impl Eq for Class {}

impl Hash for Class {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.account.id.hash(state);
        self.flags.bits().hash(state);
        self.era.hash(state);
    }
}
