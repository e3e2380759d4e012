//! A process that may not open another file: clients wait in the listen queue, and are served as soon as others go.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use myriad::app::Proxy;
use myriad::config::{Config, Endpoint, Listen, User};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::support::{Login, Setup, Wire, on_both};

const SERVER: &str = "MYRIAD_TEST_CHILD_OF";

/// The files that the child may open beyond those it has.
const ROOM: u64 = 10;

/// A proxy in a process of its own.
struct Proxied {
    child: Child,
    tell: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Proxied {
    fn start(t: &Setup) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "storms::descriptors::child", "--nocapture"])
            .env(SERVER, t.server.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        let tell = child.stdin.take().expect("its input");
        let said = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { child, tell, said }
    }

    /// What it says next.
    fn hear(&mut self) -> String {
        loop {
            let line = self.said.next().expect("it goes on").expect("text");
            if let Some((_, said)) = line.split_once("CHILD ") {
                return said.to_owned();
            }
        }
    }

    fn tell(&mut self) {
        self.tell.write_all(b"\n").expect("it listens");
    }
}

on_both!(out_of_descriptors_clients_wait, |t| async move {
    let mut proxied = Proxied::start(&t);
    let address = proxied.hear().parse().expect("an address");
    let mut first = Wire::connect(address, &Login { schema: None, ..Login::app() }).await.expect("it lets us in");
    assert_eq!(first.one("SELECT 1").await, "1");
    proxied.tell();
    assert_eq!(proxied.hear(), "low");
    let mut others = Vec::new();
    for _ in 0..3 * ROOM {
        others.push(Wire::open(address).await);
    }
    let mut last = Wire::open(address).await;
    assert!(tokio::time::timeout(Duration::from_millis(300), last.frame()).await.is_err(), "it must wait");
    assert_eq!(first.one("SELECT 2").await, "2", "who is here is served");
    drop(others);
    let greeted = tokio::time::timeout(Duration::from_secs(10), last.frame()).await.expect("its turn has come");
    greeted.expect("a greeting");
    drop((first, last));
    proxied.tell();
    let refusals: u32 = proxied.hear().parse().expect("a number");
    // Tried ten times a second, and not as fast as the machine can.
    assert!((1..100).contains(&refusals), "{refusals} times");
    assert!(proxied.child.wait().expect("it ends").success());
});

/// Not a test of its own: what the child does. Without a parent it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(server) = std::env::var(SERVER) else { return };
    let server: std::net::SocketAddr = server.parse().expect("an address");
    let mut config = Config::default();
    config.server.listen = vec![Listen::Tcp(([127, 0, 0, 1], 0).into())];
    config.server.drain_timeout = Duration::from_secs(2);
    config.backend.servers = vec![Endpoint { host: server.ip().to_string(), port: server.port() }];
    config.backend.globals_interval = Duration::ZERO;
    config.auth.users = vec![User { name: "app".into(), password: "app-secret".to_owned().into(), ..User::default() }];
    let proxy = Proxy::start(config).await.expect("the proxy starts");
    println!("CHILD {}", proxy.addresses()[0]);
    wait().await;
    let open = fs::read_dir("/proc/self/fd").expect("Linux").count() as u64;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, open + ROOM, hard).expect("a lower one");
    println!("CHILD low");
    wait().await;
    let refusals = proxy.metrics().client.refusals.get(myriad::metrics::Limit::OpenFiles).get();
    proxy.drain().await;
    println!("CHILD {refusals}");
}

/// Until the parent says something.
async fn wait() {
    let read = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    read.await.expect("no panic").expect("the parent is there");
}
