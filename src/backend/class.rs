//! Which backend connections are interchangeable.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Account;
use crate::protocol::capability::{CLASS_FLAGS, CapabilityFlags};

/// Same account, and the same flags that change what statements mean and cannot be switched later.
#[derive(Clone, Debug)]
pub struct Class {
    /// Who logs in to the server.
    pub account: Arc<Account>,
    flags: CapabilityFlags,
}

impl Class {
    /// The class that a client with these capabilities needs.
    #[must_use]
    pub fn new(account: Arc<Account>, capabilities: CapabilityFlags) -> Self {
        Self { account, flags: capabilities & CLASS_FLAGS }
    }

    /// The flags that all connections of the class have.
    #[must_use]
    pub fn flags(&self) -> CapabilityFlags {
        self.flags
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        self.account.id == other.account.id && self.flags == other.flags
    }
}

impl Eq for Class {}

impl Hash for Class {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.account.id.hash(state);
        self.flags.bits().hash(state);
    }
}
