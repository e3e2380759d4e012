//! Before the start: whether this host can give what the settings promise.

use std::fmt;

use crate::config::{Config, Listen};

/// File descriptors for everything but clients and backends: the runtime's own, logs, listeners, the page for
/// operators with its connections, TLS files being read.
const RESERVE: u64 = 128;

/// What the host allows; nothing where it does not say.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// This process's limit, raised as far as it goes.
    pub(super) open_files: u64,
    /// The most that a process's limit can be raised to.
    pub(super) nr_open: Option<u64>,
    /// Open files of all processes.
    pub(super) file_max: Option<u64>,
    pub(super) somaxconn: Option<u64>,
    /// The most pages that all sockets together may have in their buffers.
    pub(super) tcp_pages: Option<u64>,
    /// The most connections that are tracked, if they are.
    pub(super) tracked: Option<u64>,
}

/// One thing that the operator should look at: with numbers, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// It will do less than it promises.
    Warning(String),
    /// It cannot work at all.
    Refusal(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warning(text) | Self::Refusal(text) => f.write_str(text),
        }
    }
}

/// Everything that does not fit.
pub(super) fn findings(config: &Config, host: &Host) -> Vec<Finding> {
    let all = [open_files(config, host), files_of_all(config, host), backlog(config, host)];
    all.into_iter().chain([memory(config, host), tracked(config, host)]).flatten().collect()
}

fn needed_files(config: &Config) -> u64 {
    config.server.max_clients as u64 + config.pool.max_connections as u64 + RESERVE
}

/// In session mode, too, a connection counts against its own limit.
fn open_files(config: &Config, host: &Host) -> Option<Finding> {
    let (clients, backends) = (config.server.max_clients, config.pool.max_connections as u64);
    let (needed, limit) = (needed_files(config), host.open_files);
    if needed <= limit {
        return None;
    }
    let change = match limit.saturating_sub(backends + RESERVE) {
        0 => "Lower server.max_clients and pool.max_connections".to_owned(),
        room => format!("Lower server.max_clients to {room}"),
    };
    let first = match host.nr_open {
        Some(most) if most < needed => {
            format!(" (first sysctl -w fs.nr_open={needed}, for no limit can be more than {most})")
        }
        _ => String::new(),
    };
    Some(Finding::Refusal(format!(
        "the settings need {needed} open files (server.max_clients {clients} + pool.max_connections {backends} + {RESERVE} \
         for the rest), but this process may have {limit}. {change}, or raise the hard limit to {needed}{first} (systemd: \
         LimitNOFILE={needed}; Docker: --ulimit nofile={needed}; a shell, as root: ulimit -n {needed})."
    )))
}

fn files_of_all(config: &Config, host: &Host) -> Option<Finding> {
    let needed = needed_files(config);
    let most = host.file_max.filter(|most| *most < needed)?;
    Some(Finding::Warning(format!(
        "the settings need {needed} open files, but all processes of this host together may have {most}: sysctl -w \
         fs.file-max={}, or lower server.max_clients",
        needed.saturating_mul(2)
    )))
}

fn backlog(config: &Config, host: &Host) -> Option<Finding> {
    let wanted = u64::from(config.server.backlog);
    let most = host.somaxconn.filter(|most| *most < wanted)?;
    Some(Finding::Warning(format!(
        "server.backlog is {wanted}, but this host lets no more than {most} connections wait to be accepted: sysctl -w \
         net.core.somaxconn={wanted}, or lower server.backlog to {most}"
    )))
}

/// TCP connections that there may be at once.
fn sockets(config: &Config) -> u64 {
    let by_tcp = config.server.listen.iter().any(|listen| matches!(listen, Listen::Tcp(_)));
    let clients = if by_tcp { config.server.max_clients as u64 } else { 0 };
    clients + config.pool.max_connections as u64
}

/// A connection on which something is under way has one page in its buffers at least.
fn memory(config: &Config, host: &Host) -> Option<Finding> {
    let sockets = sockets(config);
    let most = host.tcp_pages.filter(|most| *most < sockets)?;
    let (low, pressure) = (sockets / 2, sockets / 3 * 2);
    Some(Finding::Warning(format!(
        "the settings allow {sockets} connections (server.max_clients and pool.max_connections), but all TCP connections of \
         this host together may have {most} pages in their buffers, which is less than one each: if all are busy at once, \
         some stall. sysctl -w net.ipv4.tcp_mem=\"{low} {pressure} {sockets}\", or lower server.max_clients"
    )))
}

fn tracked(config: &Config, host: &Host) -> Option<Finding> {
    let sockets = sockets(config);
    let most = host.tracked.filter(|most| *most < sockets)?;
    Some(Finding::Warning(format!(
        "the settings allow {sockets} connections (server.max_clients and pool.max_connections), but this host's firewall tracks \
         {most} at most and drops packets of further ones: sysctl -w net.netfilter.nf_conntrack_max={}, or exempt the \
         proxy's ports from tracking (NOTRACK)",
        sockets.saturating_mul(2)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(max_clients: usize, max_connections: usize) -> Config {
        let mut config = Config::default();
        config.server.max_clients = max_clients;
        config.pool.max_connections = max_connections;
        config
    }

    /// Without limits but this one.
    fn with(limit: impl FnOnce(&mut Host)) -> Host {
        let mut host = Host {
            open_files: u64::MAX,
            nr_open: None,
            file_max: None,
            somaxconn: None,
            tcp_pages: None,
            tracked: None,
        };
        limit(&mut host);
        host
    }

    #[test]
    fn what_fits_to_the_last_is_no_finding() {
        let config = config(100_000, 1_000);
        let files = 101_128;
        for (limit, most) in [
            ((|host, most| host.open_files = most) as fn(&mut Host, u64), files),
            (|host, most| (host.open_files, host.nr_open) = (101_128, Some(most)), 1),
            (|host, most| host.file_max = Some(most), files),
            (|host, most| host.somaxconn = Some(most), 4096),
            (|host, most| host.tcp_pages = Some(most), 101_000),
            (|host, most| host.tracked = Some(most), 101_000),
        ] {
            assert_eq!(findings(&config, &with(|host| limit(host, most))), []);
        }
    }

    #[test]
    fn what_does_not_fit_is_told_with_numbers_and_what_to_change() {
        let config = config(100_000, 1_000);
        for (host, refused, parts) in [
            (
                with(|host| host.open_files = 2128),
                true,
                &[
                    "need 101128",
                    "max_clients 100000",
                    "max_connections 1000",
                    "may have 2128",
                    "max_clients to 1000,",
                    "hard limit to 101128 (systemd: LimitNOFILE=101128",
                ][..],
            ),
            (with(|host| host.open_files = 1024), true, &["Lower server.max_clients and pool.max_connections,"]),
            (
                with(|host| (host.open_files, host.nr_open) = (1024, Some(65_536))),
                true,
                &["first sysctl -w fs.nr_open=101128, for no limit can be more than 65536"],
            ),
            (with(|host| host.file_max = Some(101_127)), false, &["together may have 101127", "fs.file-max=202256"]),
            (
                with(|host| host.somaxconn = Some(128)),
                false,
                &["server.backlog is 4096", "net.core.somaxconn=4096", "lower server.backlog to 128"],
            ),
            (
                with(|host| host.tcp_pages = Some(100_999)),
                false,
                &["allow 101000 connections", "have 100999 pages", "net.ipv4.tcp_mem=\"50500 67332 101000\""],
            ),
            (
                with(|host| host.tracked = Some(65_536)),
                false,
                &["allow 101000 connections", "tracks 65536 at most", "nf_conntrack_max=202000"],
            ),
        ] {
            let found = findings(&config, &host);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(matches!(found[0], Finding::Refusal(_)), refused, "{found:?}");
            let text = found[0].to_string();
            for part in parts {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }

    #[test]
    fn clients_of_unix_sockets_need_no_tcp() {
        let mut config = config(100_000, 1_000);
        config.server.listen = vec![Listen::Unix("/run/myriad.sock".into())];
        let host = with(|host| (host.tcp_pages, host.tracked) = (Some(1_000), Some(1_000)));
        assert_eq!(findings(&config, &host), []);
    }

    #[test]
    fn everything_is_told_at_once() {
        let host = with(|host| {
            *host = Host {
                open_files: 1024,
                nr_open: Some(1024),
                file_max: Some(1024),
                somaxconn: Some(128),
                tcp_pages: Some(1024),
                tracked: Some(1024),
            };
        });
        assert_eq!(findings(&config(100_000, 32), &host).len(), 5);
    }
}
