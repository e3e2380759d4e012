//! The page for operators: `/metrics` for Prometheus, `/live` and `/ready` for whoever decides whether to send clients
//! here, and an index for people.
//!
//! It must answer when the proxy is in trouble and must not become the trouble: at most [`MAX_CONNECTIONS`] at once,
//! one request each, a few seconds each.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::{Registry, TextEncoder};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Metrics, build};

/// Connections at once; more wait in the listen queue.
pub const MAX_CONNECTIONS: usize = 64;
/// A request's headers must be here within this time.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// After this time a connection is over, whatever it is doing.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(20);
/// Accepting again at once after an error (no file left, say) would only burn a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The largest request; ours have a line and a few headers.
const MAX_REQUEST: usize = 16 << 10;

/// What a request may see.
struct Page<R> {
    metrics: Arc<Metrics>,
    ready: R,
    header_timeout: Duration,
}

/// Serves the page until the future is dropped; open connections go with it. `ready` is asked at each request.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, ready: impl Fn() -> bool + Send + Sync + 'static) {
    accept(listener, Arc::new(Page { metrics, ready, header_timeout: HEADER_TIMEOUT })).await;
}

async fn accept<R: Fn() -> bool + Send + Sync + 'static>(listener: TcpListener, page: Arc<Page<R>>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(converse(stream, Arc::clone(&page)))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the metrics page");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// One connection, one request.
async fn converse<R: Fn() -> bool + Send + Sync + 'static>(stream: TcpStream, page: Arc<Page<R>>) {
    let header_timeout = page.header_timeout;
    let service = service_fn(move |request| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(answer(&request, &page).await) }
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(MAX_REQUEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(CONNECTION_TIMEOUT, conversation).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection to the metrics page ended badly"),
        Err(_) => tracing::debug!("a connection to the metrics page took too long"),
    }
}

async fn answer<R: Fn() -> bool>(request: &Request<Incoming>, page: &Page<R>) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        refusal.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match request.uri().path() {
        "/" => with_type(StatusCode::OK, "text/html; charset=utf-8", index((page.ready)())),
        "/metrics" => numbers(page.metrics.registry.clone()).await,
        "/live" => text(StatusCode::OK, "live\n"),
        "/ready" if (page.ready)() => text(StatusCode::OK, "ready\n"),
        "/ready" => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        _ => text(StatusCode::NOT_FOUND, "there are /metrics, /live and /ready\n"),
    }
}

/// Everything in the registry. Reading /proc takes its time when many files are open, so not on a worker.
async fn numbers(registry: Registry) -> Response<Full<Bytes>> {
    let gathered = tokio::task::spawn_blocking(move || TextEncoder::new().encode_to_string(&registry.gather())).await;
    match gathered {
        Ok(Ok(numbers)) => with_type(StatusCode::OK, prometheus::TEXT_FORMAT, numbers),
        Ok(Err(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write the metrics: {error}\n")),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot gather the metrics: {error}\n")),
    }
}

fn index(ready: bool) -> String {
    let state = if ready { "ready" } else { "not ready" };
    format!(
        "<!doctype html><html lang=\"en\"><title>Myriad</title><h1>Myriad {version}</h1><p>This proxy is {state}.\
         <ul><li><a href=\"/metrics\">/metrics</a>: numbers, for Prometheus\
         <li><a href=\"/live\">/live</a>: 200 while the process works\
         <li><a href=\"/ready\">/ready</a>: 200 while it takes clients, else 503</ul></html>\n",
        version = build::VERSION
    )
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    with_type(status, "text/plain; charset=utf-8", body)
}

fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;
    use tokio::task::JoinHandle;

    use super::*;

    struct Served {
        address: SocketAddr,
        ready: Arc<AtomicBool>,
        task: JoinHandle<()>,
    }

    impl Drop for Served {
        fn drop(&mut self) {
            self.task.abort();
        }
    }

    async fn served() -> Served {
        served_within(HEADER_TIMEOUT).await
    }

    async fn served_within(header_timeout: Duration) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ready = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ready);
        let ready_now = move || asked.load(Ordering::Relaxed);
        let page = Page { metrics: Arc::new(Metrics::new()), ready: ready_now, header_timeout };
        Served { address, ready, task: tokio::spawn(accept(listener, Arc::new(page))) }
    }

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpSocket::new_v4().unwrap().connect(address).await.unwrap()
    }

    /// Sends a request and reads until the server closes: the status line's number, and everything.
    async fn ask(address: SocketAddr, request: &str) -> (u16, String) {
        let mut stream = connect(address).await;
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    #[tokio::test]
    async fn every_path_answers() {
        let page = served().await;
        for (request, status, part) in [
            ("GET /", 200, "This proxy is not ready."),
            ("GET /live", 200, "live"),
            ("GET /ready", 503, "not ready"),
            ("GET /metrics?x=y", 200, "myriad_build_info{commit=\""),
            ("GET /metrics", 200, "\nprocess_resident_memory_bytes "),
            ("GET /metrics", 200, "\nmyriad_clients{state=\"idle\"} 0\n"),
            ("GET /nothing", 404, "there are /metrics"),
            ("POST /metrics", 405, "allow: GET, HEAD"),
            ("HEAD /live", 200, "content-length: 5"),
        ] {
            let (got, answer) = ask(page.address, request).await;
            assert_eq!(got, status, "{request}: {answer}");
            assert!(answer.contains(part), "{request}: {answer}");
        }
        page.ready.store(true, Ordering::Relaxed);
        assert_eq!(ask(page.address, "GET /ready").await.0, 200);
    }

    #[tokio::test]
    async fn the_numbers_are_in_prometheus_text_format() {
        let page = served().await;
        let (_, answer) = ask(page.address, "GET /metrics").await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
        for line in body.lines().filter(|line| !line.starts_with("# ")) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
        for name in ["process_cpu_seconds_total", "process_open_fds", "process_max_fds", "process_start_time_seconds"] {
            assert!(body.contains(&format!("\n{name} ")), "{name}");
        }
    }

    #[tokio::test]
    async fn the_silent_are_dropped() {
        let page = served_within(Duration::from_millis(20)).await;
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS + 10 {
            silent.push(connect(page.address).await);
        }
        // Behind all of them in the line, and answered nevertheless.
        assert_eq!(ask(page.address, "GET /live").await.0, 200);
        for mut stream in silent {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            assert!(!rest.starts_with(b"HTTP/1.1 200"));
        }
    }

    #[tokio::test]
    async fn garbage_and_endless_headers_are_refused() {
        let page = served().await;
        for bytes in [vec![0xff; 100], b"GET / HTTP/1.1\r\nX: ".iter().copied().chain([b'x'; 100_000]).collect()] {
            let mut stream = connect(page.address).await;
            // The server may close before it has read everything.
            let _ = stream.write_all(&bytes).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert!(!answer.starts_with(b"HTTP/1.1 200"));
        }
        assert_eq!(ask(page.address, "GET /live").await.0, 200);
    }
}
