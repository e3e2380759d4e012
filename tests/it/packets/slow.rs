//! C2: a client that does not read its 100 MB costs the proxy two buffers, and nobody else anything.
//!
//! The proxy is a process of its own here, so that its memory can be told from that of the other tests.

use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use myriad::config::Endpoint;
use myriad::protocol::command::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

use crate::prepared::execution;
use crate::support::{Login, Setup, Wire, on_both};

/// What the proxy's memory may grow by, in KiB. The buffers of two connections are a hundredth of that.
const GROWTH: u64 = 4096;

/// What may be on its way in the kernel, in bytes: the sockets' own buffers.
const ON_THE_WAY: u64 = 40_000_000;

const ROWS: &str = "WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 100) \
                    SELECT REPEAT('x', 1000000) FROM s";

on_both!(a_slow_reader_of_many_rows, |t| async move { slow_reader(&t, ROWS, false).await });

on_both!(a_slow_reader_of_a_prepared_statement, |t| async move { slow_reader(&t, ROWS, true).await });

on_both!(a_slow_reader_of_one_value, |t| async move {
    slow_reader(&t, "SELECT REPEAT('x', 100000000)", false).await;
});

async fn slow_reader(t: &Setup, sql: &str, prepared: bool) {
    let tap = Tap::new(t).await;
    let proxy = Proxy::start(&tap).await;
    let (mut slow, mut other) = (proxy.client(&t.app()).await, proxy.client(&t.app()).await);
    for client in [&mut slow, &mut other] {
        client.query("SELECT REPEAT('warm-up', 100000)").await.expect_ok();
    }
    let id = if prepared { Some(slow.prepare(sql).await) } else { None };
    let (memory, passed) = (proxy.memory(), tap.passed());
    match id {
        Some(id) => slow.send(Command::StmtExecute, &execution(id, false, &[], true)).await,
        None => slow.send(Command::Query, sql.as_bytes()).await,
    }
    let on_the_way = tap.settled(passed).await - passed;
    let growth = proxy.memory().saturating_sub(memory);
    println!("{:?}: {on_the_way} bytes on their way, {growth} KiB more memory", t.kind);
    assert!(on_the_way < ON_THE_WAY, "{on_the_way} bytes were read for a client that does not read");
    assert!(growth < GROWTH, "the proxy's memory has grown by {growth} KiB");

    let started = Instant::now();
    assert_eq!(other.one("SELECT 'served'").await, "served");
    assert!(started.elapsed() < Duration::from_secs(5), "another client had to wait for {:?}", started.elapsed());

    let mut received = 0;
    while received < 100_000_000 {
        received += slow.frame().await.expect("the rest of the result").1.len();
    }
    let growth = proxy.memory().saturating_sub(memory);
    assert!(growth < GROWTH, "the proxy's memory has grown by {growth} KiB in the end");
}

/// Passes bytes on between the proxy and the server, and counts what the server sends.
struct Tap {
    endpoint: Endpoint,
    passed: Arc<AtomicU64>,
    keeper: JoinHandle<()>,
}

impl Tap {
    async fn new(t: &Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let passed = Arc::new(AtomicU64::new(0));
        let (counter, server) = (Arc::clone(&passed), t.server);
        let keeper = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpSocket::new_v4().expect("a socket").connect(server).await.expect("the server is there");
                let ((mut from_proxy, mut to_proxy), (mut from_server, mut to_server)) =
                    (near.into_split(), far.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut from_proxy, &mut to_server).await });
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(n @ 1..) = from_server.read(&mut buffer).await {
                        counter.fetch_add(n as u64, Ordering::Relaxed);
                        if to_proxy.write_all(&buffer[..n]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        let endpoint = Endpoint { host: address.ip().to_string(), port: address.port() };
        Self { endpoint, passed, keeper }
    }

    fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// How much has passed when something has and nothing does for a while.
    async fn settled(&self, already: u64) -> u64 {
        let limit = Instant::now() + Duration::from_secs(20);
        let (mut before, mut since) = (self.passed(), Instant::now());
        while since.elapsed() < Duration::from_millis(500) || before < already + 100_000 {
            assert!(Instant::now() < limit, "{before} bytes have passed, and it goes on");
            tokio::time::sleep(Duration::from_millis(10)).await;
            let now = self.passed();
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
        before
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// The proxy as a process of its own, on a Unix socket.
struct Proxy {
    process: Child,
    socket: PathBuf,
}

impl Proxy {
    async fn start(tap: &Tap) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("myriad-slow-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let socket = std::env::temp_dir().join(format!("{name}.sock"));
        let backend = format!("{}:{}", tap.endpoint.host, tap.endpoint.port);
        let process = Process::new(env!("CARGO_BIN_EXE_myriad"))
            .args(["--listen", &format!("unix:{}", socket.display()), "--backend", &backend])
            .args(["--set", "auth.mode=passthrough", "--set", "server.max_clients=100", "--set", "log.level=warn"])
            .stdin(Stdio::null())
            .spawn()
            .expect("the proxy starts");
        let proxy = Self { process, socket };
        let limit = Instant::now() + Duration::from_secs(10);
        while tokio::net::UnixStream::connect(&proxy.socket).await.is_err() {
            assert!(Instant::now() < limit, "the proxy does not listen");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        proxy
    }

    async fn client(&self, login: &Login) -> Wire {
        let mut client = Wire::open_unix(&self.socket).await;
        client.log_in(login).await.expect("the proxy lets us in");
        client
    }

    /// Its resident memory in KiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // If it has ended by itself, so much the better.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}
