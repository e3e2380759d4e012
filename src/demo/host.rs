//! What this machine allows, and what this process uses.

use std::fs;
use std::io;

use nix::sys::resource::{Resource, getrlimit};

/// Memory of this process that is in RAM, in bytes.
///
/// # Errors
/// If the kernel does not say.
pub(super) fn resident() -> io::Result<u64> {
    resident_of("self")
}

/// Memory of process `pid` that is in RAM, in bytes.
///
/// # Errors
/// If the kernel does not say, or the process is gone.
pub(super) fn resident_of(pid: &str) -> io::Result<u64> {
    kib_field(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmRSS:")
}

/// Memory that can be had without swapping, in bytes.
///
/// # Errors
/// If the kernel does not say.
pub(super) fn available() -> io::Result<u64> {
    kib_field(&fs::read_to_string("/proc/meminfo")?, "MemAvailable:")
}

/// How many files this process (and any it starts) may open.
pub(super) fn open_files() -> u64 {
    // Where the kernel does not say, the customary limit.
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft)
}

/// Whether this process may do everything.
pub(super) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The numbers of a user and its group, if there is one of this name.
pub(super) fn user(name: &str) -> Option<(u32, u32)> {
    user_in(&fs::read_to_string("/etc/passwd").ok()?, name)
}

fn user_in(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = passwd
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    let uid = fields.nth(1)?.parse().ok()?;
    Some((uid, fields.next()?.parse().ok()?))
}

fn kib_field(text: &str, name: &str) -> io::Result<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)).and_then(|rest| rest.split_whitespace().next());
    let kib: u64 = value
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {name} from the kernel")))?;
    Ok(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        assert_eq!(kib_field("VmPeak:\t 9 kB\nVmRSS:\t    12 kB\n", "VmRSS:").unwrap(), 12 * 1024);
        assert!(kib_field("VmPeak: 9 kB", "VmRSS:").is_err());
        assert!(resident().unwrap() > 100_000);
        assert!(available().unwrap() > 0);
        assert!(open_files() > 0);
    }

    #[test]
    fn finds_users() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nmysql:x:102:105:MySQL,,,:/nonexistent:/bin/false\nbroken\n";
        assert_eq!(user_in(passwd, "mysql"), Some((102, 105)));
        assert_eq!(user_in(passwd, "my"), None);
        assert_eq!(user_in(passwd, "broken"), None);
    }
}
