//! What the clients of a run put together: counters, errors, latencies.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::report::{ErrorCount, FailureKind, Latency};

/// Latencies are told apart up to this; slower ones count as this.
const SLOWEST: Duration = Duration::from_secs(3600);
/// An error's text is cut after this many characters: one peer's essay must not fill a report.
const LONGEST_TEXT: usize = 300;

/// Collects from every client of a run.
///
/// Clients share a few shards, each under its own lock, so that the threads hardly ever meet; reading adds them up.
#[derive(Debug)]
pub(super) struct Recorder {
    shards: Box<[Mutex<Shard>]>,
    connected: AtomicUsize,
    settled: AtomicUsize,
    /// Of the client that did the least.
    least: AtomicU64,
}

#[derive(Debug)]
struct Shard {
    latency: Histogram<u64>,
    logins: Histogram<u64>,
    statements: u64,
    errors: BTreeMap<FailureKind, (u64, String)>,
}

/// Counts a client as settled when dropped: it is either logged in or has given up, even by a panic.
#[derive(Debug)]
pub(super) struct Settling<'a>(&'a AtomicUsize);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts one client as connected, until dropped.
#[derive(Debug)]
pub(super) struct Connected<'a>(&'a AtomicUsize);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many pieces of work one client has done; told when dropped.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) count: u64,
    least: &'a AtomicU64,
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.least.fetch_min(self.count, Ordering::Relaxed);
    }
}

impl Recorder {
    /// An empty one.
    pub(super) fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = (0..threads.saturating_mul(4)).map(|_| Mutex::new(Shard::new())).collect();
        Self { shards, connected: AtomicUsize::new(0), settled: AtomicUsize::new(0), least: AtomicU64::new(u64::MAX) }
    }

    /// Client `index` has done a piece of work, of so many statements.
    pub(super) fn done(&self, index: usize, statements: u64, took: Duration) {
        let Some(shard) = self.shard(index) else { return };
        let mut shard = shard.lock();
        shard.statements += statements;
        shard.latency.saturating_record(micros(took));
    }

    /// Client `index` has logged in.
    pub(super) fn logged_in(&self, index: usize, took: Duration) {
        let Some(shard) = self.shard(index) else { return };
        shard.lock().logins.saturating_record(micros(took));
    }

    /// Something went wrong for client `index`.
    pub(super) fn failed(&self, index: usize, kind: FailureKind, text: &str) {
        let Some(shard) = self.shard(index) else { return };
        let mut shard = shard.lock();
        shard.errors.entry(kind).or_insert_with(|| (0, printable(text))).0 += 1;
    }

    /// A client is logged in until the guard is dropped.
    pub(super) fn connected(&self) -> Connected<'_> {
        self.connected.fetch_add(1, Ordering::Relaxed);
        Connected(&self.connected)
    }

    /// A client is about to log in or give up.
    pub(super) fn settling(&self) -> Settling<'_> {
        Settling(&self.settled)
    }

    /// Counts the work of one client.
    pub(super) fn tally(&self) -> Tally<'_> {
        Tally { count: 0, least: &self.least }
    }

    /// How much the client has done that did the least, of those that could log in.
    pub(super) fn least(&self) -> u64 {
        match self.least.load(Ordering::Relaxed) {
            u64::MAX => 0,
            least => least,
        }
    }

    /// Clients logged in now.
    pub(super) fn connected_count(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// Clients that have logged in or given up so far.
    pub(super) fn settled_count(&self) -> usize {
        self.settled.load(Ordering::Relaxed)
    }

    /// Pieces of work, statements and errors so far.
    pub(super) fn totals(&self) -> (u64, u64, u64) {
        self.shards.iter().fold((0, 0, 0), |(work, statements, errors), shard| {
            let shard = shard.lock();
            let failed = shard.errors.values().map(|(count, _)| count).sum::<u64>();
            (work + shard.latency.len(), statements + shard.statements, errors + failed)
        })
    }

    /// The latencies of all shards.
    pub(super) fn latency(&self) -> Latency {
        self.all(|shard| &shard.latency)
    }

    /// How long logins took, in all shards.
    pub(super) fn logins(&self) -> Latency {
        self.all(|shard| &shard.logins)
    }

    fn all(&self, of: fn(&Shard) -> &Histogram<u64>) -> Latency {
        let mut all = empty_histogram();
        for shard in &self.shards {
            // Same bounds everywhere, so adding cannot fail.
            let added = all.add(of(&shard.lock()));
            debug_assert!(added.is_ok(), "histograms of one run have the same bounds");
        }
        Latency::of(&all)
    }

    /// The errors of all shards, most frequent first.
    pub(super) fn errors(&self) -> Vec<ErrorCount> {
        let mut all = BTreeMap::new();
        for shard in &self.shards {
            for (kind, (count, first)) in &shard.lock().errors {
                all.entry(*kind).or_insert_with(|| (0, first.clone())).0 += count;
            }
        }
        let mut all: Vec<_> = all.into_iter().map(|(kind, (count, first))| ErrorCount { kind, count, first }).collect();
        all.sort_by_key(|error| std::cmp::Reverse(error.count));
        all
    }

    fn shard(&self, index: usize) -> Option<&Mutex<Shard>> {
        self.shards.get(index % self.shards.len().max(1))
    }
}

impl Shard {
    fn new() -> Self {
        Self { latency: empty_histogram(), logins: empty_histogram(), statements: 0, errors: BTreeMap::new() }
    }
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        Self {
            mean: histogram.mean(),
            p50: histogram.value_at_quantile(0.50),
            p95: histogram.value_at_quantile(0.95),
            p99: histogram.value_at_quantile(0.99),
            max: histogram.max(),
            counts: histogram.iter_recorded().map(|it| (it.value_iterated_to(), it.count_at_value())).collect(),
        }
    }

    /// The latencies of several processes.
    pub(super) fn merge<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut merged = empty_histogram();
        for (value, count) in all.flat_map(|latency| &latency.counts) {
            merged.saturating_record_n(*value, *count);
        }
        Self::of(&merged)
    }
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, micros(SLOWEST), 3).expect("constant bounds are valid")
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// What a peer sent, fit for a terminal.
fn printable(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_over_shards() {
        let recorder = Recorder::new();
        for index in 0..1000 {
            recorder.done(index, 1, Duration::from_micros(index as u64 + 1));
        }
        for index in 0..3 {
            recorder.failed(index, FailureKind::Server(1064), "syntax");
        }
        recorder.failed(0, FailureKind::Lost, "gone\x1b[2J\n");
        assert_eq!(recorder.totals(), (1000, 1000, 4));
        let latency = recorder.latency();
        assert_eq!((latency.p50, latency.p95, latency.max), (500, 950, 1000));
        assert!((latency.mean - 500.5).abs() < 1.0, "{}", latency.mean);
        assert_eq!(Latency::merge([&latency, &latency].into_iter()).counts.len(), latency.counts.len());
        assert_eq!(Latency::merge([&latency].into_iter()), latency);
        let errors = recorder.errors();
        assert_eq!((errors[0].kind, errors[0].count), (FailureKind::Server(1064), 3));
        assert_eq!(errors[1].first, "gone [2J ");
    }

    #[test]
    fn an_empty_run_has_no_latency() {
        assert_eq!(Recorder::new().latency(), Latency::default());
    }

    #[test]
    fn whoever_did_the_least_is_known() {
        let recorder = Recorder::new();
        assert_eq!(recorder.least(), 0);
        for count in [7, 3, 5] {
            recorder.tally().count = count;
        }
        assert_eq!(recorder.least(), 3);
    }

    #[test]
    fn connected_follows_the_guards() {
        let recorder = Recorder::new();
        let one = recorder.connected();
        let two = recorder.connected();
        assert_eq!(recorder.connected_count(), 2);
        drop((one, two));
        assert_eq!(recorder.connected_count(), 0);
    }
}
