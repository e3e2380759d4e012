//! Where a client comes from, in the servers' words.

use std::fmt;
use std::net::IpAddr;

/// A client's address, or this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host(Option<IpAddr>);

impl Host {
    /// The host of a client with this address; one on a Unix socket has none.
    pub(super) fn of(address: Option<IpAddr>) -> Self {
        Self(address.map(|address| address.to_canonical()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("localhost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_worded_as_servers_word_them() {
        let word = |address: &str| Host::of(Some(address.parse().unwrap())).to_string();
        assert_eq!(word("10.0.0.7"), "10.0.0.7");
        assert_eq!(word("::ffff:10.0.0.7"), "10.0.0.7");
        assert_eq!(word("fd00::7"), "fd00::7");
        assert_eq!(Host::of(None).to_string(), "localhost");
    }
}
