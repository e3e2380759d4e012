//! What the load generator itself takes of the machine that it measures on.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// CPU time of this process so far.
pub(super) fn cpu() -> Duration {
    let time = |time: TimeVal| {
        let micros = u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or_default();
        Duration::from_micros(micros)
    };
    getrusage(UsageWho::RUSAGE_SELF).map_or(Duration::ZERO, |usage| time(usage.user_time()) + time(usage.system_time()))
}

/// Memory of this process that is in RAM, in bytes; zero if the kernel does not say.
pub(super) fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = field.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_used_something() {
        assert!(resident() > 1 << 20);
        let before = cpu();
        while cpu() <= before {
            std::hint::spin_loop();
        }
    }
}
