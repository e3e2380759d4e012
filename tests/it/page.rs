//! The page for operators, as a scraper sees it.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::support::on_both;

pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let socket = TcpSocket::new_v4().expect("a socket");
    let mut stream = socket.connect(address).await.expect("the page is served");
    let request = format!("GET {path} HTTP/1.1\r\nHost: myriad\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the request is taken");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("a page");
    page
}

on_both!(the_page_shows_what_is_going_on, |t| async move {
    let mut client = t.client().await;
    client.query("BEGIN").await.expect_ok();
    client.query("SELECT nothing FROM nowhere").await.expect_error(1146);
    let page = get(t.metrics_address, "/metrics").await;
    for line in [
        "myriad_clients{state=\"pinned\"} 1",
        "myriad_pinned_clients{reason=\"transaction\"} 1",
        "myriad_backend_connections{state=\"leased\"} 1",
        "myriad_client_logins_total{result=\"ok\"} 1",
        "myriad_errors_total{code=\"1146\"} 1",
        "myriad_pool_max_connections 2",
    ] {
        assert!(page.lines().any(|it| it == line), "{line} is not on the page:\n{page}");
    }
    for name in ["myriad_turn_seconds_bucket", "myriad_pool_wait_seconds_bucket", "process_resident_memory_bytes"] {
        assert!(page.contains(name), "{name} is not on the page");
    }
    assert!(get(t.metrics_address, "/ready").await.starts_with("HTTP/1.1 200"));
    client.query("COMMIT").await.expect_ok();
});
