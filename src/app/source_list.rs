//! The list of `myriad bench --source`, local addresses to connect from: `127.0.0.1,127.0.0.4-127.0.0.9`.

use std::net::IpAddr;

use crate::config::SourceAddresses;

/// The most addresses that a list may have.
const MOST: u128 = 65_536;

/// A list that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SourcesError {
    /// Not an address.
    #[error("{0:?} is not an IP address: write a list of addresses and ranges, as in 127.0.0.1,127.0.0.4-127.0.0.9")]
    Address(String),
    /// A range whose ends do not fit together.
    #[error("{0:?} is not a range: its last address must come after its first, in the same family")]
    Range(String),
    /// Too many.
    #[error("a list has {MOST} addresses at most")]
    TooMany,
}

/// Every address of a list of addresses and ranges.
///
/// # Errors
/// If it cannot be understood.
pub(super) fn sources(list: &str) -> Result<Vec<IpAddr>, SourcesError> {
    let mut all = Vec::new();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let address = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| SourcesError::Address(text.trim().into()));
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (address(first)?, address(last)?),
            None => (address(part)?, address(part)?),
        };
        let range = SourceAddresses::between(first, last).ok_or_else(|| SourcesError::Range(part.into()))?;
        if range.distance() >= MOST - all.len() as u128 {
            return Err(SourcesError::TooMany);
        }
        all.extend(range.iter());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let shown = |list: &str| sources(list).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(shown("127.0.0.1, 127.0.0.254-127.0.1.1"), "127.0.0.1 127.0.0.254 127.0.0.255 127.0.1.0 127.0.1.1");
        assert_eq!(shown("fd00::1-fd00::2"), "fd00::1 fd00::2");
        assert_eq!(shown(""), "");
        for (list, error) in [
            ("localhost", SourcesError::Address("localhost".into())),
            ("127.0.0.2-127.0.0.1", SourcesError::Range("127.0.0.2-127.0.0.1".into())),
            ("127.0.0.2-::1", SourcesError::Range("127.0.0.2-::1".into())),
            ("10.0.0.0-10.9.0.0", SourcesError::TooMany),
        ] {
            assert_eq!(sources(list), Err(error), "{list}");
        }
    }
}
