//! What the process needs from the system: threads, open files, signals.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;

/// Runs `future` to its end on `threads` worker threads; 0 is one per core.
pub fn block_on<F: Future>(threads: usize, future: F) -> Result<F::Output, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if threads > 0 {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_all().thread_name("myriad-worker").build();
    let runtime = runtime.map_err(|error| Failure::Internal(format!("cannot start worker threads: {error}")))?;
    // A worker's stack would be too small a place for a large future.
    Ok(runtime.block_on(Box::pin(future)))
}

/// Raises the soft limit on open files to the hard one, and returns the limit that is now in force.
pub fn raise_open_files() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        // Without an answer, no limit is known; what is really missing will show as a refusal, counted as such.
        return u64::MAX;
    };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        tracing::debug!(from = soft, to = hard, "raised the limit on open files");
        return hard;
    }
    soft
}

/// The signals that end the process: SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on these signals no longer kill the process; they wait here.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next signal, by name. The first one means: finish, take nothing new; the second one: now.
    pub async fn next(&mut self) -> &'static str {
        // A signal stream ends only with the runtime that drives it.
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let limit = raise_open_files();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!((soft, limit), (hard, hard));
    }

    #[test]
    fn the_future_runs_on_as_many_threads_as_asked() {
        let workers = block_on(3, async { tokio::runtime::Handle::current().metrics().num_workers() });
        assert_eq!(workers.unwrap(), 3);
    }

    #[tokio::test]
    async fn signals_are_told_by_name() {
        let mut signals = Signals::install().unwrap();
        for (raised, name) in [("TERM", "SIGTERM"), ("INT", "SIGINT")] {
            raise(raised);
            assert_eq!(signals.next().await, name);
        }
    }

    /// Sends this process a signal, by the one program that every system has for it.
    fn raise(name: &str) {
        let kill = format!("kill -{name} {}", std::process::id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}
