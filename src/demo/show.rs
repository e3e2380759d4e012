//! What the demo shows: the same load through the proxy and, where the server is a real one, directly.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::sleep;

use super::console::Console;
use super::server::Server;
use super::{DemoError, host};
use crate::load::table::{Table, bytes, grouped, micros};
use crate::load::{Plan, Remote, Report, Snapshot, Work, first_row};
use crate::metrics::{BackendState, Labelled, Metrics};

/// The mean pause of a client between two statements: most connections of an application idle most of the time.
const THINK: Duration = Duration::from_secs(1);
/// Logins a second. A storm is another demonstration.
const RAMP: usize = 2000;
/// How long memory may settle after the last login.
const SETTLE: Duration = Duration::from_secs(1);

/// How much is to be shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) clients: usize,
    pub(super) duration: Duration,
}

/// What one run showed.
#[derive(Debug, Default)]
struct Column {
    report: Report,
    /// Connections at the server, at most.
    connections: u64,
    /// Memory of the server, if it is ours to look at.
    server_bytes: Option<u64>,
}

/// Memory of this process before and after the clients came.
#[derive(Clone, Copy, Debug)]
struct Grown {
    before: u64,
    after: u64,
    clients: usize,
}

/// Runs the load through the proxy at `proxy`, then directly, and prints what came of it.
pub(super) async fn show(
    server: &Server,
    proxy: SocketAddr,
    metrics: &Metrics,
    size: Size,
    console: &Console,
) -> Result<(), DemoError> {
    let plan = Plan {
        clients: size.clients,
        ramp_per_second: RAMP,
        duration: size.duration,
        think: THINK,
        work: Work::Statements(vec![server.statement()]),
        targets: vec![proxy],
        ..server.plan()
    };
    console.line(format!("Connecting {} clients to the proxy ...", grouped(size.clients as u64)));
    // What is loaded on first use must not count as the clients' memory.
    first_row(&plan, "SELECT 1").await.map_err(|error| DemoError::ThroughProxy(error.text))?;
    let (through, grown) = Box::pin(through_proxy(server, metrics, plan.clone(), console)).await?;
    if through.report.clients == 0 {
        let first = through.report.errors.first().map(|error| error.first.clone()).unwrap_or_default();
        return Err(DemoError::ThroughProxy(first));
    }
    let direct = match server {
        Server::Embedded(_) => None,
        _ => Some(Box::pin(directly(server, plan, console)).await?),
    };
    console.line("");
    for line in table(&through, direct.as_ref().map(|(column, _)| column)).lines() {
        console.line(line);
    }
    console.line("");
    print_errors(&through.report, "through Myriad", console);
    if let Some((column, _)) = &direct {
        print_errors(&column.report, "directly", console);
    }
    print_memory(grown, matches!(server, Server::Embedded(_)), console);
    match direct {
        Some((_, explanation)) => console.line(explanation),
        None => console.line(
            "The server was the embedded one, in the proxy's own process: this shows that sharing works, and claims \
             nothing about performance. With mariadbd or mysqld on the PATH, or --backend HOST:PORT, the demo compares \
             with direct connections.",
        ),
    }
    Ok(())
}

async fn through_proxy(
    server: &Server,
    metrics: &Metrics,
    plan: Plan,
    console: &Console,
) -> Result<(Column, Option<Grown>), DemoError> {
    let most = Cell::new(0);
    let sample = || most.set(most.get().max(connections(metrics)));
    let before = host::resident().ok();
    let bar = console.bar(plan.clients, plan.duration);
    let progress = |snapshot: &Snapshot| {
        sample();
        bar.show(snapshot);
    };
    let statement = server.statement();
    let remote = Remote::connect(Remote::this_program().map_err(DemoError::Worker)?, plan, progress).await?;
    sleep(SETTLE).await;
    let clients = remote.connected();
    let grown = before.zip(host::resident().ok()).map(|(before, after)| Grown { before, after, clients });
    bar.above(|| {
        console.line(format!("Running: each client asks about once a second: {}", statement.replace("?1000", "N")));
    });
    let report = remote.drive(progress).await?;
    sample();
    Ok((Column { report, connections: most.get(), server_bytes: server.resident() }, grown))
}

/// The same load without the proxy; also explains how the columns compare.
async fn directly(server: &Server, plan: Plan, console: &Console) -> Result<(Column, String), DemoError> {
    let clients = plan.clients;
    let (direct, why) = server.direct_clients(clients).await?;
    if direct == 0 {
        let reason = why.unwrap_or_default();
        let text = format!("No run directly: the server has no room for it ({reason}).");
        return Ok((Column::default(), text));
    }
    // Fewer clients that ask more often offer the same load.
    let think = plan.think.mul_f64(ratio(direct, clients));
    let plan = Plan { targets: vec![server.address()], clients: direct, think, ..plan };
    console.line(format!("The same directly, with {} clients ...", grouped(direct as u64)));
    let bar = console.bar(plan.clients, plan.duration);
    let progress = |snapshot: &Snapshot| bar.show(snapshot);
    let remote = Remote::connect(Remote::this_program().map_err(DemoError::Worker)?, plan, progress).await?;
    sleep(SETTLE).await;
    let server_bytes = server.resident();
    let report = remote.drive(progress).await?;
    let connections = report.clients as u64;
    let explanation = match why {
        None => {
            "Both columns: the same clients asking the same statements at the same pace on this machine, which the \
                 load generator, the proxy and the server share."
                .into()
        }
        Some(why) => format!(
            "Directly only {} clients found room ({why}); they asked {:.1} times as often, so that both columns are \
             offered the same load.",
            grouped(direct as u64),
            ratio(clients, direct)
        ),
    };
    Ok((Column { report, connections, server_bytes }, explanation))
}

/// Connections to the server now, in whatever state.
fn connections(metrics: &Metrics) -> u64 {
    let all: i64 = BackendState::ALL.iter().map(|state| metrics.backend.state.get(*state).get()).sum();
    u64::try_from(all).unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of clients are far below 2^52")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b.max(1) as f64
}

fn table(through: &Column, direct: Option<&Column>) -> Table {
    let heads: &[&str] = if direct.is_some() { &["through Myriad", "directly"] } else { &["through Myriad"] };
    let columns: Vec<&Column> = std::iter::once(through).chain(direct).collect();
    let mut table = Table::new(heads);
    let mut row =
        |name: &str, cell: &dyn Fn(&Column) -> String| table.row(name, columns.iter().map(|column| cell(column)));
    row("clients", &|it| grouped(it.report.clients as u64));
    row("connections at the server, at most", &|it| grouped(it.connections));
    row("statements a second", &|it| grouped(it.report.rate.round().max(0.0) as u64));
    row("latency, half within", &|it| micros(it.report.latency.p50));
    row("latency, 95 % within", &|it| micros(it.report.latency.p95));
    row("latency, 99 % within", &|it| micros(it.report.latency.p99));
    row("latency, the slowest", &|it| micros(it.report.latency.max));
    row("errors", &|it| grouped(it.report.error_count()));
    if columns.iter().any(|column| column.server_bytes.is_some()) {
        row("the server's memory", &|it| it.server_bytes.map_or_else(String::new, bytes));
    }
    table
}

fn print_errors(report: &Report, which: &str, console: &Console) {
    for error in &report.errors {
        console.line(format!("Error {which}: {} x {}: {}", grouped(error.count), error.kind, error.first));
    }
}

fn print_memory(grown: Option<Grown>, embedded: bool, console: &Console) {
    let Some(Grown { before, after, clients }) = grown.filter(|grown| grown.clients > 0) else { return };
    let each = after.saturating_sub(before) / clients as u64;
    let also = if embedded { " (and the embedded server)" } else { "" };
    console.line(format!(
        "Memory of the proxy: {} per idle client. Measured: the resident memory of this process, which holds the \
         proxy{also} but not the load generator, went from {} to {} while {} clients logged in. The kernel's part of a \
         socket, about 4 KiB, is not in it.",
        bytes(each),
        bytes(before),
        bytes(after),
        grouped(clients as u64)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Latency;

    #[test]
    fn the_table_has_a_column_for_each_run() {
        let latency = Latency { p50: 420, p95: 1300, p99: 2500, max: 50_000, ..Latency::default() };
        let report = Report { clients: 10_000, rate: 9876.4, latency, ..Report::default() };
        let through = Column { report: report.clone(), connections: 32, server_bytes: Some(100 << 20) };
        let direct = Column { report, connections: 10_000, server_bytes: Some(3 << 30) };
        let both = table(&through, Some(&direct)).lines();
        assert_eq!(both.len(), 2 + 9);
        assert!(both.iter().any(|line| line.ends_with("          32    10,000")), "{both:#?}");
        assert!(both.iter().any(|line| line.contains("9,876")));
        let one = table(&Column { server_bytes: None, ..through }, None).lines();
        assert_eq!(one.len(), 2 + 8);
    }

    #[test]
    fn connections_of_every_state_count() {
        let metrics = Metrics::new();
        metrics.backend.state.get(BackendState::Idle).set(3);
        metrics.backend.state.get(BackendState::Leased).set(4);
        assert_eq!(connections(&metrics), 7);
    }
}
