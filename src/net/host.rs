//! What this host says about its ports.

use std::ops::RangeInclusive;

/// The ports that the system gives to those who do not ask for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPorts {
    /// net.ipv4.ip_local_port_range, which counts for IPv6 as well.
    pub range: RangeInclusive<u16>,
    /// net.ipv4.ip_local_reserved_ports
    pub reserved: Vec<RangeInclusive<u16>>,
}

impl LocalPorts {
    /// As they are now; Linux's own defaults if it does not say.
    #[must_use]
    pub fn of_this_host() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        Self::parse(&read("ip_local_port_range"), &read("ip_local_reserved_ports"))
    }

    /// From `32768\t60999` and `8080,9000-9099`.
    fn parse(range: &str, reserved: &str) -> Self {
        let mut ends = range.split_whitespace().filter_map(|port| port.parse().ok());
        let range = ends.next().zip(ends.next()).map_or(32_768..=60_999, |(first, last)| first..=last);
        let reserved = reserved.trim().split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        });
        Self { range, reserved: reserved.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_as_the_system_writes_them() {
        let ports = LocalPorts::parse("1024\t65535\n", "8080,9000-9099\n");
        assert_eq!(ports, LocalPorts { range: 1024..=65_535, reserved: vec![8080..=8080, 9000..=9099] });
        assert_eq!(LocalPorts::parse("", "\n"), LocalPorts { range: 32_768..=60_999, reserved: vec![] });
        assert!(!LocalPorts::of_this_host().range.is_empty());
    }
}
