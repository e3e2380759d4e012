//! Before the start (see `preflight`): whether this host has the addresses and ports that `backend.source_addresses` and the pool ask for.

use std::net::IpAddr;

use super::preflight::Finding;
use crate::config::{Config, SourceAddresses};
use crate::net::host::LocalPorts;
use crate::net::tcp;

/// Addresses that this host does not have (now; they may come), and fewer ports than connections. It cannot work if the host
/// has none of the addresses.
pub(super) fn findings(config: &Config) -> Vec<Finding> {
    findings_with(config, &LocalPorts::of_this_host(), |address| {
        tcp::try_source(address).map_err(|error| error.to_string())
    })
}

fn findings_with(
    config: &Config,
    ports: &LocalPorts,
    try_source: impl Fn(IpAddr) -> Result<(), String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let written = config.backend.source_addresses.as_deref().unwrap_or_default();
    let all: Vec<IpAddr> = written.iter().flat_map(SourceAddresses::iter).collect();
    let foreign: Vec<String> = all
        .iter()
        .filter_map(|address| try_source(*address).err().map(|error| format!("{address} ({error})")))
        .collect();
    let ours = all.len() - foreign.len();
    if !foreign.is_empty() {
        let message = format!(
            "backend.source_addresses: this host cannot use {}: add them to an interface (ip address add ADDRESS dev DEVICE), \
             or take them from the list",
            named(&foreign)
        );
        if ours == 0 {
            return vec![Finding::Refusal(message)];
        }
        findings.push(Finding::Warning(message));
    }
    let range = config.backend.source_ports.map_or_else(|| ports.range.clone(), |ports| ports.first..=ports.last);
    let is_reserved = |port: &u16| ports.reserved.iter().any(|reserved| reserved.contains(port));
    let each = range.filter(|port| config.backend.source_ports.is_some() || !is_reserved(port)).count();
    let (room, wanted) = (each * ours.max(1), config.pool.max_connections);
    if wanted > room {
        findings.push(Finding::Warning(format!(
            "pool.max_connections is {wanted}, but {} of this host with {each} ports each have room for {room} connections to a \
             server: name more addresses in backend.source_addresses",
            if all.is_empty() { "one address".into() } else { format!("{ours} addresses") }
        )));
    }
    findings
}

/// The first few, and how many more there are.
fn named(all: &[String]) -> String {
    const MOST: usize = 8;
    let more = if all.len() > MOST { format!(" and {} more", all.len() - MOST) } else { String::new() };
    format!("{}{more}", all.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(addresses: &[&str], max_connections: usize) -> Result<Vec<String>, String> {
        let mut config = Config::default();
        let read = addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>();
        config.backend.source_addresses = (!read.is_empty()).then_some(read);
        config.pool.max_connections = max_connections;
        let ports = LocalPorts { range: 1..=1000, reserved: vec![1..=100] };
        let ours = |address: IpAddr| if address.is_loopback() { Ok(()) } else { Err("not here".into()) };
        let findings = findings_with(&config, &ports, ours);
        if let Some(Finding::Refusal(refusal)) = findings.first() {
            return Err(refusal.clone());
        }
        Ok(findings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_the_host_has_is_enough() {
        assert_eq!(warnings(&[], 900), Ok(vec![]));
        assert_eq!(warnings(&["127.0.0.1-127.0.0.3"], 2700), Ok(vec![]));
    }

    #[test]
    fn addresses_that_are_not_there_are_named() {
        let some = warnings(&["127.0.0.1", "10.0.0.0/28"], 10).unwrap();
        assert_eq!(some.len(), 1);
        assert!(some[0].contains("10.0.0.1 (not here), 10.0.0.2") && some[0].contains("and 6 more"), "{some:?}");
        let none = warnings(&["10.0.0.1"], 10).unwrap_err();
        assert!(none.contains("10.0.0.1 (not here)"), "{none}");
    }

    #[test]
    fn more_connections_than_ports_are_warned_of() {
        for (addresses, most) in [(&[][..], 900), (&["127.0.0.1", "127.0.0.2"], 1800)] {
            let warned = warnings(addresses, most + 1).unwrap();
            assert!(warned[0].contains(&format!("room for {most}")), "{warned:?}");
        }
    }

    #[test]
    fn this_host_has_its_own_addresses() {
        let mut config = Config::default();
        config.backend.source_addresses = Some(vec!["127.0.0.2-127.0.0.9".parse().unwrap()]);
        assert_eq!(findings(&config), []);
        config.backend.source_addresses = Some(vec!["198.51.100.7".parse().unwrap()]);
        assert!(matches!(findings(&config)[..], [Finding::Refusal(_)]));
    }
}
