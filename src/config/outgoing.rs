//! Where connections to servers come from: `10.0.0.11`, `10.0.0.12-10.0.0.15`, `10.0.1.0/29`; ports `10000-60999`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::settings::{PortRange, SourceAddresses};
use super::shape::{Fault, Shape, Written, quoted, text, toml_text};

/// The most addresses of `backend.source_addresses` together: with the ports of an unchanged host, 28 million connections.
pub(super) const MOST_ADDRESSES: usize = 1024;
/// Below it are the ports that only root may have.
const FIRST_PORT: u16 = 1024;

/// An address, a range of them, or a network.
pub(super) struct Addresses;

impl Shape for Addresses {
    type Value = SourceAddresses;

    fn read(&self, written: &Written<'_>) -> Result<SourceAddresses, Vec<Fault>> {
        text(written, &self.range())?.parse().map_err(|message: String| Fault::of(written, message))
    }

    fn show(&self, value: &SourceAddresses) -> String {
        toml_text(&value.to_string())
    }

    fn range(&self) -> String {
        "\"ADDRESS\", \"FIRST-LAST\" or \"NETWORK/BITS\"".into()
    }
}

/// Two ports, and all between them.
pub(super) struct Ports;

impl Shape for Ports {
    type Value = PortRange;

    fn read(&self, written: &Written<'_>) -> Result<PortRange, Vec<Fault>> {
        let text = text(written, &self.range())?;
        let port = |text: &str| text.trim().parse().ok().filter(|port| *port >= FIRST_PORT);
        let ports = text.split_once('-').and_then(|(first, last)| Some((port(first)?, port(last)?)));
        let ports = ports.filter(|(first, last)| first <= last).map(|(first, last)| PortRange { first, last });
        ports.ok_or_else(|| Fault::of(written, format!("must be {}; found {}", self.range(), quoted(text))))
    }

    fn show(&self, value: &PortRange) -> String {
        toml_text(&value.to_string())
    }

    fn range(&self) -> String {
        "\"FIRST-LAST\", from 1024 to 65535".into()
    }
}

impl SourceAddresses {
    /// From one address to another of the same family that does not come before it.
    #[must_use]
    pub fn between(first: IpAddr, last: IpAddr) -> Option<Self> {
        (first.is_ipv4() == last.is_ipv4() && number(first) <= number(last)).then_some(Self { first, last })
    }

    /// How far the last is from the first: one less than there are.
    pub(crate) fn distance(&self) -> u128 {
        number(self.last) - number(self.first)
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (first, last, v4) = (number(self.first), number(self.last), self.first.is_ipv4());
        (first..=last).map(move |number| numbered(number, v4))
    }
}

/// As it is written in the configuration; a network as the range of its addresses.
impl fmt::Display for SourceAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// `ADDRESS`, `FIRST-LAST`, `NETWORK/BITS`; the error says what to write instead.
impl FromStr for SourceAddresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = |part: &str| {
            part.trim().parse::<IpAddr>().map_err(|_| {
                format!(
                    "{} is no IP address: write as in \"10.0.0.11\", \"10.0.0.12-10.0.0.15\", \"10.0.1.0/29\"",
                    quoted(part)
                )
            })
        };
        let (first, last) = match (text.split_once('-'), text.split_once('/')) {
            (Some((first, last)), _) => (address(first)?, address(last)?),
            (None, Some((network, bits))) => hosts(address(network)?, bits)?,
            (None, None) => (address(text)?, address(text)?),
        };
        let all = Self::between(first, last).ok_or_else(|| {
            format!("{}: the last address must come after the first, in the same family", quoted(text))
        })?;
        if [first, last].iter().any(|end| end.is_unspecified() || end.is_multicast()) {
            return Err(format!("{}: nothing can be sent from there", quoted(text)));
        }
        if all.distance() >= MOST_ADDRESSES as u128 {
            return Err(format!("{}: at most {MOST_ADDRESSES} addresses", quoted(text)));
        }
        Ok(all)
    }
}

/// The addresses of a network that hosts can have: without the one that names the network and, in IPv4, the one that
/// means everybody.
fn hosts(network: IpAddr, bits: &str) -> Result<(IpAddr, IpAddr), String> {
    let width = if network.is_ipv4() { 32_u32 } else { 128 };
    let bits: u32 = bits
        .trim()
        .parse()
        .ok()
        .filter(|bits| (1..=width).contains(bits))
        .ok_or_else(|| format!("{network}/{}: the number behind the slash is 1 to {width}", bits.trim()))?;
    let size = 1_u128 << (width - bits).min(127);
    let (first, v4) = (number(network), network.is_ipv4());
    if first % size != 0 {
        let start = numbered(first - first % size, v4);
        return Err(format!(
            "{network}/{bits}: the network begins at {start}; write {start}/{bits}, or the address alone"
        ));
    }
    let last = first + (size - 1);
    Ok(match (size, v4) {
        (1 | 2, _) => (network, numbered(last, v4)),
        (_, true) => (numbered(first + 1, v4), numbered(last - 1, v4)),
        (_, false) => (numbered(first + 1, v4), numbered(last, v4)),
    })
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn numbered(number: u128, v4: bool) -> IpAddr {
    match u32::try_from(number) {
        Ok(bits) if v4 => Ipv4Addr::from_bits(bits).into(),
        _ => Ipv6Addr::from_bits(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_ranges_and_networks() {
        for (text, shown, count) in [
            ("10.0.0.11", "10.0.0.11", 1),
            ("10.0.0.254-10.0.1.1", "10.0.0.254-10.0.1.1", 4),
            (" 10.0.0.1 - 10.0.0.2 ", "10.0.0.1-10.0.0.2", 2),
            ("10.0.1.0/29", "10.0.1.1-10.0.1.6", 6),
            ("10.0.1.8/31", "10.0.1.8-10.0.1.9", 2),
            ("10.0.1.8/32", "10.0.1.8", 1),
            ("10.0.0.0/22", "10.0.0.1-10.0.3.254", 1022),
            ("fd00::1-fd00::3", "fd00::1-fd00::3", 3),
            ("fd00::/120", "fd00::1-fd00::ff", 255),
            ("fd00::4/127", "fd00::4-fd00::5", 2),
            ("fd00::4/128", "fd00::4", 1),
        ] {
            let read: SourceAddresses = text.parse().unwrap();
            assert_eq!((read.to_string().as_str(), read.iter().count()), (shown, count), "{text}");
            assert_eq!(shown.parse(), Ok(read), "{shown}");
        }
        let four: SourceAddresses = "10.0.0.254-10.0.1.1".parse().unwrap();
        let all: Vec<_> = four.iter().map(|address| address.to_string()).collect();
        assert_eq!(all, ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]);
    }

    #[test]
    fn what_is_neither_says_what_to_write() {
        for (text, expected) in [
            ("localhost", "is no IP address: write as in"),
            ("", "is no IP address"),
            ("10.0.0.1:80", "is no IP address"),
            ("10.0.0.2-10.0.0.1", "must come after the first"),
            ("10.0.0.2-::1", "in the same family"),
            ("10.0.0.0/8", "at most 1024 addresses"),
            ("fd00::/64", "at most 1024 addresses"),
            ("::/1", "at most 1024 addresses"),
            ("10.0.0.1/29", "the network begins at 10.0.0.0; write 10.0.0.0/29"),
            ("10.0.0.0/33", "is 1 to 32"),
            ("10.0.0.0/0", "is 1 to 32"),
            ("fd00::/129", "is 1 to 128"),
            ("10.0.0.0/x", "10.0.0.0/x: the number"),
            ("0.0.0.0", "nothing can be sent from there"),
            ("::", "nothing can be sent from there"),
            ("224.0.0.1", "nothing can be sent from there"),
        ] {
            let error = text.parse::<SourceAddresses>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
