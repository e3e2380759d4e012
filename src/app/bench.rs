//! `myriad bench`: the load generator on the command line, in as many processes as its clients need.

use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::failure::Failure;
use super::source_list::sources;
use crate::config::Endpoint;
use crate::load::table::{Table, bytes, grouped, micros};
use crate::load::{Bar, Plan, Remote, Report, Snapshot, Work};

/// Open files that a process of the load generator needs beside its clients.
const RESERVE: u64 = 64;

/// The variable that the password is taken from.
const PASSWORD: &str = "MYRIAD_BENCH_PASSWORD";
/// How often progress is shown.
const TICK: Duration = Duration::from_millis(200);

/// Drives clients against any MySQL server or proxy, and measures what they see.
#[derive(Clone, Debug, Args)]
pub(super) struct Bench {
    /// The server or proxy; with several, clients take turns.
    #[arg(long, value_name = "HOST:PORT", required = true)]
    target: Vec<String>,
    /// The account of every client.
    #[arg(long)]
    user: String,
    /// Its password; by default what the environment has as MYRIAD_BENCH_PASSWORD, else none.
    #[arg(long)]
    password: Option<String>,
    /// The default schema.
    #[arg(long)]
    schema: Option<String>,
    /// How many clients.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,
    /// How many log in per second; 0 is as fast as they can.
    #[arg(long, value_name = "N/S", default_value_t = 0)]
    ramp: u32,
    /// For how long they work, once all are connected.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// For how long they stay connected after that, idle.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=86_400), conflicts_with = "churn")]
    hold: u64,
    /// The mean pause of a client between two pieces of work, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0, conflicts_with = "rate")]
    think: u64,
    /// Pieces of work a second of all clients together, whether earlier ones have ended or not; latency is then measured from
    /// when each should have begun.
    #[arg(long, value_name = "N/S")]
    rate: Option<f64>,
    /// A statement; several: picked at random. ?1000 is a random number from 1 to 1,000.
    #[arg(long, value_name = "SQL")]
    statement: Vec<String>,
    /// As --statement, but prepared once and executed; ?1000 is then a parameter.
    #[arg(long, value_name = "SQL", conflicts_with = "statement")]
    prepared: Vec<String>,
    /// A file of statements, each ended by a semicolon at the end of a line: all of them are one piece of work.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["statement", "prepared"])]
    transaction: Option<PathBuf>,
    /// A connection for each piece of work: connect, work, quit.
    #[arg(long)]
    churn: bool,
    /// Local addresses to connect from, in turn, as in 127.0.0.1,127.0.0.4-127.0.0.9.
    #[arg(long, value_name = "LIST", default_value = "")]
    source: String,
    /// Processes; by default as many as the limit on open files asks for.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    processes: Option<u32>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Form::Table)]
    report: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Json,
}

impl Bench {
    /// What is to be done.
    fn plan(&self) -> Result<Plan, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let targets = self.target.iter().map(|target| resolve(target)).collect::<Result<Vec<_>, _>>()?;
        let work = match &self.transaction {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::Usage(format!("--transaction {}: {error}", path.display())))?;
                Work::transaction(&text)
            }
            None if !self.prepared.is_empty() => Work::Prepared(self.prepared.clone()),
            None => Work::Statements(self.statement.clone()),
        };
        let first = targets.first().copied().ok_or_else(|| Failure::Usage("--target is missing".into()))?;
        if let Some(rate) = self.rate.filter(|rate| !rate.is_finite() || *rate <= 0.0) {
            return Err(Failure::Usage(format!("--rate {rate}: must be more than 0")));
        }
        let password = self.password.clone().or_else(|| std::env::var(PASSWORD).ok()).unwrap_or_default();
        Ok(Plan {
            targets,
            clients: self.clients as usize,
            ramp_per_second: self.ramp as usize,
            duration: Duration::from_secs(self.seconds),
            hold: Duration::from_secs(self.hold),
            think: Duration::from_millis(self.think),
            rate: self.rate.unwrap_or_default(),
            work,
            churn: self.churn,
            sources: sources(&self.source).map_err(|error| usage(&error))?,
            ..Plan::single(first, &self.user, &password, self.schema.as_deref())
        })
    }

    /// How many processes it takes, each with at most `open_files`.
    fn processes(&self, open_files: u64) -> usize {
        let room = open_files.saturating_sub(RESERVE).max(1);
        let needed = u64::from(self.clients).div_ceil(room);
        self.processes.map_or(needed, u64::from).clamp(1, 256) as usize
    }
}

/// Runs a bench and prints what it has measured.
///
/// # Errors
/// If the plan makes no sense, nobody could connect, or a process of the load generator ends early.
pub(super) async fn run(bench: Bench, open_files: u64) -> Result<(), Failure> {
    let plan = bench.plan()?;
    let parts = plan.split(bench.processes(open_files));
    let processes = parts.len();
    let shown = Arc::new(Shown::new(plan.clients, plan.duration, processes));
    let ticking = tokio::spawn(Arc::clone(&shown).tick());
    let remotes = all(parts.into_iter().enumerate().map(|(n, part)| {
        let shown = Arc::clone(&shown);
        let program = Remote::this_program().map_err(|error| Failure::Internal(error.to_string()));
        async move { Remote::connect(program?, part, |snapshot| shown.note(n, snapshot)).await.map_err(refused) }
    }))
    .await?;
    let reports = all(remotes.into_iter().enumerate().map(|(n, remote)| {
        let shown = Arc::clone(&shown);
        async move { remote.drive(|snapshot| shown.note(n, snapshot)).await.map_err(refused) }
    }))
    .await?;
    ticking.abort();
    shown.bar.lock().take();
    let report = Report::merge(&reports);
    let text = match bench.report {
        Form::Table => table(&report, processes),
        Form::Json => json(&report, processes)?,
    };
    // Nobody reads it: then there is nobody to tell that either.
    let _ = writeln!(io::stdout(), "{text}");
    match report.clients {
        0 => Err(Failure::Unavailable("no client could connect".into())),
        _ => Ok(()),
    }
}

/// Waits for all of these; their results in order. The first error ends the others.
async fn all<T: Send + 'static>(
    futures: impl Iterator<Item = impl Future<Output = Result<T, Failure>> + Send + 'static>,
) -> Result<Vec<T>, Failure> {
    let mut tasks = JoinSet::new();
    for (n, future) in futures.enumerate() {
        tasks.spawn(async move { Ok::<_, Failure>((n, future.await?)) });
    }
    let mut results = Vec::new();
    while let Some(done) = tasks.join_next().await {
        results.push(done.map_err(|error| Failure::Internal(error.to_string()))??);
    }
    results.sort_by_key(|(n, _)| *n);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn refused(error: crate::load::RemoteError) -> Failure {
    match error {
        crate::load::RemoteError::Refused(reason) => Failure::Usage(reason),
        error => Failure::Internal(error.to_string()),
    }
}

/// The progress of all processes together.
struct Shown {
    bar: Mutex<Option<Bar>>,
    latest: Mutex<Vec<Snapshot>>,
}

impl Shown {
    fn new(clients: usize, duration: Duration, processes: usize) -> Self {
        let bar = Bar::new(clients, duration, io::stderr().is_terminal());
        Self { bar: Mutex::new(Some(bar)), latest: Mutex::new(vec![Snapshot::default(); processes]) }
    }

    fn note(&self, process: usize, snapshot: &Snapshot) {
        if let Some(latest) = self.latest.lock().get_mut(process) {
            *latest = *snapshot;
        }
    }

    async fn tick(self: Arc<Self>) {
        loop {
            tokio::time::sleep(TICK).await;
            let all = Snapshot::sum(&self.latest.lock());
            if let Some(bar) = &*self.bar.lock() {
                bar.show(&all);
            }
        }
    }
}

fn resolve(target: &str) -> Result<SocketAddr, Failure> {
    let endpoint: Endpoint = target.parse().map_err(|error| Failure::Usage(format!("--target: {error}")))?;
    let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
    let found = found.map_err(|error| Failure::Unavailable(format!("--target {target}: {error}")))?;
    found.into_iter().next().ok_or_else(|| Failure::Unavailable(format!("--target {target}: it has no address")))
}

fn table(report: &Report, processes: usize) -> String {
    let mut table = Table::new(&[""]);
    let mut row = |name: &str, cell: String| table.row(name, [cell]);
    row("clients", grouped(report.clients as u64));
    row("processes of the load generator", grouped(processes as u64));
    row("time to connect all", format!("{:.1} s", report.connecting.as_secs_f64()));
    row("login, half within", micros(report.logins.p50));
    row("login, 99 % within", micros(report.logins.p99));
    row("statements a second", grouped(report.rate.round().max(0.0) as u64));
    row("pieces of work a second", grouped(report.pace.round().max(0.0) as u64));
    row("pieces of work", grouped(report.work));
    row("pieces of work of the client with the fewest", grouped(report.least));
    row("latency, mean", micros(report.latency.mean.round().max(0.0) as u64));
    row("latency, half within", micros(report.latency.p50));
    row("latency, 95 % within", micros(report.latency.p95));
    row("latency, 99 % within", micros(report.latency.p99));
    row("latency, the slowest", micros(report.latency.max));
    if let Some(ideal) = report.ideal() {
        row("ideal latency (clients / pace)", micros(ideal.round().max(0.0) as u64));
        row("95 % over the ideal", format!("{:.2}", over(report.latency.p95, ideal)));
        row("99 % over the ideal", format!("{:.2}", over(report.latency.p99, ideal)));
    }
    row("errors", grouped(report.error_count()));
    row("load generator: CPU a statement", format!("{:.1} us", cpu_a_statement(report)));
    row("load generator: memory a client", bytes(report.memory / report.clients.max(1) as u64));
    let mut lines = table.lines();
    for error in &report.errors {
        lines.push(format!("  {} x {}: {}", grouped(error.count), error.kind, error.first));
    }
    lines.join("\n")
}

#[expect(clippy::cast_precision_loss, reason = "microseconds are far below 2^52")]
fn over(latency: u64, ideal: f64) -> f64 {
    latency as f64 / ideal
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn cpu_a_statement(report: &Report) -> f64 {
    report.cpu.as_secs_f64() * 1e6 / report.statements.max(1) as f64
}

fn json(report: &Report, processes: usize) -> Result<String, Failure> {
    let latency = |latency: &crate::load::Latency| {
        serde_json::json!({
            "mean_us": latency.mean, "p50_us": latency.p50, "p95_us": latency.p95, "p99_us": latency.p99,
            "max_us": latency.max,
        })
    };
    let errors = report
        .errors
        .iter()
        .map(|error| serde_json::json!({ "kind": error.kind.to_string(), "count": error.count, "first": error.first }));
    let all = serde_json::json!({
        "clients": report.clients,
        "processes": processes,
        "connecting_seconds": report.connecting.as_secs_f64(),
        "seconds": report.elapsed.as_secs_f64(),
        "work": report.work,
        "least_work_of_a_client": report.least,
        "statements": report.statements,
        "statements_per_second": report.rate,
        "work_per_second": report.pace,
        "latency": latency(&report.latency),
        "login": latency(&report.logins),
        "ideal_us": report.ideal(),
        "p95_over_ideal": report.ideal().map(|ideal| over(report.latency.p95, ideal)),
        "p99_over_ideal": report.ideal().map(|ideal| over(report.latency.p99, ideal)),
        "errors": errors.collect::<Vec<_>>(),
        "generator": {
            "cpu_us_per_statement": cpu_a_statement(report),
            "memory_bytes_per_client": report.memory / report.clients.max(1) as u64,
        },
    });
    serde_json::to_string_pretty(&all).map_err(|error| Failure::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: Bench,
    }

    fn bench(line: &str) -> Bench {
        Line::try_parse_from(format!("bench --target 127.0.0.1:1 --user u {line}").split_whitespace()).unwrap().bench
    }

    #[test]
    fn options_become_a_plan() {
        let plan = bench("--clients 10 --seconds 3 --statement SELECT_?9 --source 127.0.0.1-127.0.0.3 --churn").plan();
        let plan = plan.unwrap();
        assert_eq!((plan.clients, plan.duration, plan.churn), (10, Duration::from_secs(3), true));
        assert_eq!(plan.work, Work::Statements(vec!["SELECT_?9".into()]));
        assert_eq!((plan.sources.len(), plan.targets.len()), (3, 1));
        assert_eq!(
            bench("--prepared a --prepared b").plan().unwrap().work,
            Work::Prepared(vec!["a".into(), "b".into()])
        );
        for wrong in ["--rate 0", "--source here", "--transaction /none", "--target nowhere:x"] {
            assert!(matches!(bench(wrong).plan(), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn as_many_processes_as_the_open_files_ask_for() {
        let needed = |clients, open_files| bench(&format!("--clients {clients}")).processes(open_files);
        assert_eq!([needed(64, 1024), needed(960, 1024), needed(961, 1024), needed(100_000, 20_000)], [1, 1, 2, 6]);
        assert_eq!(bench("--clients 64 --processes 3").processes(1024), 3);
    }

    #[test]
    fn both_forms_say_the_same() {
        let latency =
            crate::load::Latency { mean: 900.0, p50: 800, p95: 1_900, p99: 2_500, max: 7_000, counts: vec![] };
        let report =
            Report { clients: 10, work: 10_000, statements: 20_000, rate: 2_000.0, latency, ..Report::default() };
        let report = Report { elapsed: Duration::from_secs(10), pace: 1_000.0, ..report };
        assert!(report.ideal().is_some_and(|ideal| (ideal - 10_000.0).abs() < 1.0), "{:?}", report.ideal());
        let (table, json) = (table(&report, 2), json(&report, 2).unwrap());
        assert!(table.contains("2,000") && table.contains("0.25"), "{table}");
        assert!(json.contains("\"p99_over_ideal\": 0.25") && json.contains("\"processes\": 2"), "{json}");
        assert_eq!(Report { pauses: true, ..report }.ideal(), None);
    }
}
