//! What this host says about its limits. What it does not say counts as no limit.

use super::preflight::Host;

impl Host {
    /// As it is now; `open_files` is what this process may have.
    pub(super) fn this(open_files: u64) -> Self {
        let number = |name: &str| numbers(&read(name)).first().copied();
        Self {
            open_files,
            nr_open: number("fs/nr_open"),
            file_max: number("fs/file-max"),
            somaxconn: number("net/core/somaxconn"),
            tcp_pages: numbers(&read("net/ipv4/tcp_mem")).get(2).copied(),
            // Without a rule that needs them nothing is tracked, whether the module is there or not.
            tracked: number("net/netfilter/nf_conntrack_max")
                .filter(|_| number("net/netfilter/nf_conntrack_count").is_some_and(|count| count > 0)),
        }
    }
}

/// A sysctl; empty if it is not there.
fn read(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default()
}

/// `287901\t383868\t575802`
fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_system_writes_them() {
        for (text, expected) in [("4096\n", &[4096][..]), ("1\t2\t3\n", &[1, 2, 3]), ("", &[]), ("none\n", &[])] {
            assert_eq!(numbers(text), expected, "{text:?}");
        }
        // The largest is more than fits a signed number.
        assert_eq!(numbers("9223372036854775807\n"), [i64::MAX as u64]);
    }

    #[test]
    fn what_is_not_there_is_no_limit() {
        assert!(numbers(&read("net/core/no_such_limit")).is_empty());
        assert_eq!(Host::this(7).open_files, 7);
        assert!(Host::this(7).nr_open.is_some());
    }
}
