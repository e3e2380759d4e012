//! The pool with a dummy server, mostly on paused time.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use rand::Rng;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::config;
use crate::metrics::{BackendState, Metrics};

const MS: Duration = Duration::from_millis(1);

/// A server that counts its connections, those being opened included.
#[derive(Default)]
struct Server {
    now: AtomicUsize,
    most: AtomicUsize,
    dials: AtomicUsize,
    goodbyes: AtomicUsize,
    answer: Mutex<Option<FailureKind>>,
    panics: AtomicBool,
}

struct Conn {
    server: Arc<Server>,
    id: usize,
    class: &'static str,
    dead: Arc<AtomicBool>,
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.server.now.fetch_sub(1, SeqCst);
    }
}

struct Dummy(Arc<Server>);

impl Connector for Dummy {
    type Conn = Conn;
    type Class = &'static str;
    type Error = &'static str;

    async fn open(&self, class: &&'static str) -> Result<Conn, Failure<&'static str>> {
        self.0.most.fetch_max(self.0.now.fetch_add(1, SeqCst) + 1, SeqCst);
        let id = self.0.dials.fetch_add(1, SeqCst);
        let conn = Conn { server: Arc::clone(&self.0), id, class, dead: Arc::default() };
        sleep(MS).await;
        assert!(!self.0.panics.load(SeqCst), "this dial panics");
        match *self.0.answer.lock() {
            Some(kind) => Err(Failure { error: "no", kind }),
            None => Ok(conn),
        }
    }

    fn is_alive(&self, conn: &mut Conn) -> bool {
        !conn.dead.load(SeqCst)
    }

    fn close(&self, conn: Conn) -> impl Future<Output = ()> + Send + 'static {
        self.0.goodbyes.fetch_add(1, SeqCst);
        async move { drop(conn) }
    }
}

/// A pool and the server behind it.
struct Bench {
    server: Arc<Server>,
    metrics: Arc<Metrics>,
    pool: Arc<Pool<Dummy>>,
}

impl Bench {
    fn new(max_connections: usize) -> Self {
        Self::with(config::Pool { max_connections, ..config::Pool::default() })
    }

    fn with(settings: config::Pool) -> Self {
        let (server, metrics) = (Arc::<Server>::default(), Arc::new(Metrics::new()));
        let scheduler = config::Scheduler::default();
        let pool = Pool::new(Dummy(Arc::clone(&server)), &settings, &scheduler, &[], Arc::clone(&metrics));
        Self { server, metrics, pool }
    }

    async fn lease(&self, class: &'static str, owner: u64) -> Lease<Dummy> {
        self.pool.lease(request(&class, owner, 30_000)).await.unwrap()
    }

    fn closes(&self, reason: CloseReason) -> u64 {
        self.metrics.backend.closes.get(reason).get()
    }

    /// Everything is given back, in every count.
    fn assert_at_rest(&self) {
        let counts = self.pool.counts();
        assert_eq!(counts, Counts { idle: counts.idle, ..Counts::default() });
        assert_eq!(self.server.now.load(SeqCst), counts.idle);
        self.assert_gauges();
    }

    fn assert_gauges(&self) {
        let counts = self.pool.counts();
        let state = |state| self.metrics.backend.state.get(state).get() as usize;
        let gauges = [BackendState::Opening, BackendState::Idle, BackendState::Leased].map(state);
        assert_eq!(gauges, [counts.opening, counts.idle, counts.leased]);
        assert_eq!(self.metrics.pool.waiting.get() as usize, counts.waiting);
        assert_eq!(self.pool.waiting(), counts.waiting);
    }
}

/// All classes are one party's.
static EVERYBODY: LazyLock<Party> = LazyLock::new(Party::default);

fn request<'a>(class: &'a &'static str, owner: u64, milliseconds: u64) -> Request<'a, &'static str> {
    let wait = Duration::from_millis(milliseconds);
    Request { class, party: &EVERYBODY, schema: None, owner, state: 0, wait }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn a_thousand_clients_share_twenty_connections_in_order() {
    let bench = Arc::new(Bench::new(20));
    let order = Arc::new(Mutex::new(Vec::new()));
    let clients = (0..1000).map(|client| {
        let (bench, order) = (Arc::clone(&bench), Arc::clone(&order));
        tokio::spawn(async move {
            let lease = bench.lease("a", client).await;
            order.lock().push(client);
            sleep(MS * 3).await;
            lease.release(client, 0);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert!(order.lock().iter().copied().eq(0..1000));
    assert_eq!(bench.server.most.load(SeqCst), 20);
    bench.assert_at_rest();
    assert_eq!(bench.metrics.pool.wait_seconds.get_sample_count(), 1000);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_too_long_get_one_error_and_the_rest_is_served_in_order() {
    let bench = Arc::new(Bench::new(1));
    let slow = bench.lease("a", 1000).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let clients = (0..100).map(|client| {
        let (bench, order) = (Arc::clone(&bench), Arc::clone(&order));
        tokio::spawn(async move {
            // The first half comes at once, the other half after 700 ms.
            sleep(MS * (client / 50) as u32 * 700).await;
            let lease = bench.pool.lease(request(&"a", client, 1000)).await?;
            order.lock().push(client);
            sleep(MS).await;
            lease.release(client, 0);
            Ok(())
        })
    });
    let clients = clients.collect::<Vec<_>>();
    sleep(MS * 1500).await;
    slow.release(1000, 0);
    for (client, served) in clients.into_iter().enumerate() {
        let served: Result<(), LeaseError<&str>> = served.await.unwrap();
        let expired = LeaseError::QueueTimeout { waited: MS * 1000, limit: MS * 1000 };
        assert_eq!(served, if client < 50 { Err(expired) } else { Ok(()) }, "{client}");
    }
    assert!(order.lock().iter().copied().eq(50..100));
    bench.assert_at_rest();
    assert_eq!(bench.server.dials.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_vanished_waiter_loses_nothing() {
    let bench = Bench::new(1);
    let lease = bench.lease("a", 1).await;
    let id = lease.id;
    {
        let mut gone = Box::pin(bench.pool.lease(request(&"a", 2, 1000)));
        let mut granted = Box::pin(bench.pool.lease(request(&"a", 3, 1000)));
        let mut last = pin!(bench.pool.lease(request(&"a", 1, 1000)));
        assert!(poll(gone.as_mut()).is_pending());
        assert!(poll(granted.as_mut()).is_pending());
        assert!(poll(last.as_mut()).is_pending());
        assert_eq!(bench.pool.waiting(), 3);
        drop(gone);
        assert_eq!(bench.pool.waiting(), 2);
        // The lease is on its way to one who vanishes before looking.
        lease.release(1, 0);
        assert_eq!((bench.pool.waiting(), bench.pool.counts().leased), (1, 1));
        drop(granted);
        let Poll::Ready(Ok(lease)) = poll(last) else { panic!("should be served") };
        assert_eq!((lease.id, lease.kind()), (id, LeaseKind::Own), "nobody has used it meanwhile");
        lease.release(1, 0);
    }
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_is_not_lost_to_the_timeout() {
    let bench = Bench::new(1);
    let lease = bench.lease("a", 1).await;
    let mut waiter = pin!(bench.pool.lease(request(&"a", 2, 100)));
    assert!(poll(waiter.as_mut()).is_pending());
    lease.release(1, 0);
    tokio::time::advance(MS * 200).await;
    waiter.await.unwrap().release(2, 0);
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn a_server_down_means_fast_errors_few_dials_and_recovery() {
    let bench = Arc::new(Bench::new(20));
    *bench.server.answer.lock() = Some(FailureKind::Refused);
    let start = Instant::now();
    let clients = (0..200).map(|client| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            loop {
                let asked = Instant::now();
                match bench.pool.lease(request(&"a", client, 30_000)).await {
                    Ok(lease) => {
                        sleep(MS).await;
                        return lease.release(client, 0);
                    }
                    Err(error) => assert_eq!(error, LeaseError::Open("no")),
                }
                assert!(asked.elapsed() <= MS * 5, "a fast error");
                sleep(MS * 10).await;
            }
        })
    });
    let clients = clients.collect::<Vec<_>>();
    sleep(MS * 10_000).await;
    let dials = bench.server.dials.load(SeqCst);
    assert!((15..50).contains(&dials), "{dials} dials in 10 s");
    *bench.server.answer.lock() = None;
    for client in clients {
        client.await.unwrap();
    }
    assert!(start.elapsed() < MS * 11_200, "recovered within the longest pause: {:?}", start.elapsed());
    assert!(bench.server.most.load(SeqCst) <= 20);
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn a_full_server_is_waited_for() {
    let bench = Bench::new(4);
    *bench.server.answer.lock() = Some(FailureKind::Full);
    let error = bench.pool.lease(request(&"a", 1, 500)).await.unwrap_err();
    assert!(matches!(error, LeaseError::QueueTimeout { .. }), "{error:?}");
    let waiter = bench.lease("a", 1);
    let room = async {
        sleep(MS * 3000).await;
        *bench.server.answer.lock() = None;
    };
    let (lease, ()) = tokio::join!(waiter, room);
    lease.release(1, 0);
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn classes_share_one_budget() {
    let bench = Arc::new(Bench::new(2));
    let clients = (0..60u64).map(|client| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            let class = ["a", "b", "c"][client as usize % 3];
            let lease = bench.lease(class, client).await;
            assert_eq!(lease.class, class);
            sleep(MS).await;
            lease.release(client, 0);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert_eq!(bench.server.most.load(SeqCst), 2);
    assert!(bench.closes(CloseReason::Displaced) > 10);
    assert_eq!(bench.closes(CloseReason::Displaced), bench.server.goodbyes.load(SeqCst) as u64);
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn dead_connections_are_replaced_unnoticed() {
    let bench = Bench::new(2);
    let (one, two) = (bench.lease("a", 1).await, bench.lease("a", 2).await);
    one.dead.store(true, SeqCst);
    one.release(1, 0);
    two.release(2, 0);
    // Its own is dead: another one, at once.
    let lease = bench.pool.try_lease(&request(&"a", 1, 0)).unwrap();
    assert_eq!((lease.id, lease.kind()), (1, LeaseKind::SameState));
    lease.dead.store(true, SeqCst);
    lease.release(1, 0);
    assert!(bench.pool.try_lease(&request(&"a", 1, 0)).is_none());
    assert_eq!(bench.closes(CloseReason::Lost), 2);
    assert_eq!(bench.lease("a", 1).await.id, 2);
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_released_is_closed() {
    let bench = Arc::new(Bench::new(1));
    let lease = bench.lease("a", 1).await;
    let mut waiter = pin!(bench.lease("a", 2));
    assert!(poll(waiter.as_mut()).is_pending());
    let panicking = tokio::spawn(async move {
        let _lease = lease;
        panic!("in the middle of a turn");
    });
    assert!(panicking.await.is_err());
    let lease = waiter.await;
    assert_eq!((lease.id, lease.kind()), (1, LeaseKind::Fresh));
    lease.discard(CloseReason::Stale);
    assert_eq!(bench.pool.counts().closing, 1, "its room is not free before the server has let go");
    sleep(MS).await;
    assert_eq!((bench.closes(CloseReason::Dirty), bench.closes(CloseReason::Stale)), (1, 1));
    assert_eq!(bench.server.goodbyes.load(SeqCst), 1, "no goodbye in the middle of a turn");
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_dialing_frees_the_room() {
    let bench = Bench::new(1);
    bench.server.panics.store(true, SeqCst);
    let mut waiter = pin!(bench.lease("a", 1));
    assert!(poll(waiter.as_mut()).is_pending());
    sleep(MS * 200).await;
    bench.server.panics.store(false, SeqCst);
    waiter.await.release(1, 0);
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn the_keeper_looks_after_idle_connections() {
    let seconds = Duration::from_secs;
    let bench = Bench::with(config::Pool {
        max_connections: 5,
        min_idle: 2,
        idle_timeout: seconds(60),
        max_lifetime: seconds(600),
        ..config::Pool::default()
    });
    let stop = CancellationToken::new();
    let keeper = tokio::spawn(Arc::clone(&bench.pool).keeper(stop.clone()));
    let leases = [(); 5].map(|()| bench.pool.lease(request(&"a", 0, 1000)));
    let mut held = Vec::new();
    for lease in leases {
        held.push(lease.await.unwrap());
    }
    let dead = Arc::clone(&held[0].dead);
    for (owner, lease) in held.into_iter().enumerate() {
        lease.release(owner as u64, 0);
    }
    dead.store(true, SeqCst);
    sleep(seconds(2)).await;
    assert_eq!((bench.closes(CloseReason::Lost), bench.pool.counts().idle), (1, 4));
    sleep(seconds(60)).await;
    assert_eq!((bench.closes(CloseReason::IdleTimeout), bench.pool.counts().idle), (2, 2));
    sleep(seconds(600)).await;
    assert_eq!((bench.closes(CloseReason::MaxLifetime), bench.pool.counts().idle), (2, 2));
    bench.pool.retire_all();
    assert_eq!((bench.closes(CloseReason::Stale), bench.pool.counts().idle), (2, 0));
    sleep(seconds(2)).await;
    assert_eq!(bench.pool.counts().idle, 2);
    bench.pool.retire_class(&"a");
    sleep(seconds(2)).await;
    assert_eq!(bench.pool.counts().idle, 0, "a forgotten class is not kept");
    bench.assert_at_rest();
    stop.cancel();
    keeper.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_waits_for_its_leases() {
    let bench = Arc::new(Bench::with(config::Pool { max_connections: 2, open_parallel: 1, ..config::Pool::default() }));
    let (lease, other) = (bench.lease("a", 1).await, bench.lease("b", 2).await);
    other.release(2, 0);
    let mut waiter = pin!(bench.pool.lease(request(&"c", 3, 1000)));
    assert!(poll(waiter.as_mut()).is_pending());
    let start = Instant::now();
    let closing = Arc::clone(&bench);
    let close = tokio::spawn(async move { closing.pool.close(MS * 5000).await });
    sleep(MS * 100).await;
    assert_eq!(waiter.await.unwrap_err(), LeaseError::Closed);
    assert_eq!(bench.pool.lease(request(&"a", 1, 1000)).await.unwrap_err(), LeaseError::Closed);
    assert!(!close.is_finished());
    lease.release(1, 0);
    close.await.unwrap();
    assert_eq!(start.elapsed(), MS * 100);
    assert_eq!((bench.server.now.load(SeqCst), bench.closes(CloseReason::Drain)), (0, 1));
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_does_not_wait_for_ever() {
    let bench = Bench::new(2);
    let lease = bench.lease("a", 1).await;
    let start = Instant::now();
    bench.pool.close(MS * 300).await;
    assert_eq!(start.elapsed(), MS * 300);
    drop(lease);
    bench.assert_at_rest();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_pool_leaves_nothing() {
    let Bench { server, metrics, pool } = Bench::new(2);
    pool.lease(request(&"a", 1, 1000)).await.unwrap().release(1, 0);
    assert_eq!(metrics.pool.max_connections.get(), 2);
    drop(pool);
    // The dial's task held the pool until its end.
    sleep(MS).await;
    assert_eq!((server.now.load(SeqCst), server.goodbyes.load(SeqCst)), (0, 1));
    assert_eq!((metrics.backend.state.get(BackendState::Idle).get(), metrics.pool.max_connections.get()), (0, 0));
}

/// Real threads and real time: every way a lease or a waiter can end, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_cap_holds_whatever_happens() {
    let bench = Arc::new(Bench::with(config::Pool { max_connections: 6, open_parallel: 3, ..config::Pool::default() }));
    let clients = (0..48u64).map(|client| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            for _ in 0..150 {
                let dice = rand::rng().random_range(0..20u32);
                let class = ["a", "b", "c"][if dice < 14 { 0 } else { dice as usize % 3 }];
                let wait = if dice == 1 { 1 } else { 30_000 };
                let lease = bench.pool.lease(request(&class, client, wait));
                let lease = if dice == 2 {
                    let Ok(lease) = tokio::time::timeout(MS, lease).await else { continue };
                    lease
                } else {
                    lease.await
                };
                let Ok(lease) = lease else { continue };
                assert_eq!(lease.class, class);
                match dice {
                    3 => drop(lease),
                    4 => bench.pool.retire_class(&class),
                    5 => lease.dead.store(true, SeqCst),
                    _ => {
                        tokio::task::yield_now().await;
                        lease.release(client, u64::from(dice % 2));
                    }
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    // Dials that nobody waits for any more end as idle connections.
    while bench.pool.counts().opening > 0 {
        sleep(MS).await;
    }
    assert_eq!(bench.server.most.load(SeqCst), 6);
    bench.assert_at_rest();
    bench.pool.close(MS * 1000).await;
    assert_eq!(bench.server.now.load(SeqCst), 0);
    bench.assert_at_rest();
}
