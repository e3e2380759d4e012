//! A session that depends on its connection to the server, and that connection ends: the client sees what it would see
//! on a connection of its own.

use bytes::Bytes;
use myriad::protocol::command::Command;

use crate::support::{Setup, Wire, on_both, one_backend, own_backends};

fn own_backend(config: &mut myriad::config::Config) {
    one_backend(config);
    own_backends(config);
}

/// Everything that comes until the connection ends.
async fn last_words(client: &mut Wire) -> Vec<(u8, Bytes)> {
    let mut words = Vec::new();
    while let Ok((header, payload)) = client.frame().await {
        words.push((header.seq, payload));
    }
    words
}

/// A client of the proxy that keeps its backend, and one of the server.
async fn both(t: &Setup) -> [Wire; 2] {
    let mut both = [t.client().await, t.direct(&t.app()).await];
    for client in &mut both {
        client.query("BEGIN").await.expect_ok();
    }
    both
}

/// The administrator ends both connections at the server.
async fn kill(t: &Setup, direct: &Wire) {
    t.admin().await.query(&format!("KILL {}", direct.id)).await.expect_ok();
    t.kill_backends().await;
}

on_both!(by_an_administrator_while_it_idles, own_backend, |t| async move {
    let [mut proxied, mut direct] = both(&t).await;
    kill(&t, &direct).await;
    assert_eq!(last_words(&mut proxied).await, last_words(&mut direct).await);
});

on_both!(by_an_administrator_in_a_statement, own_backend, |t| async move {
    let [mut proxied, mut direct] = both(&t).await;
    let text = format!("SELECT SLEEP(100), '{}'", t.schema);
    proxied.send(Command::Query, text.as_bytes()).await;
    t.until_runs(&text, true).await;
    let text = format!("SELECT SLEEP(99), '{}'", t.schema);
    direct.send(Command::Query, text.as_bytes()).await;
    t.until_runs(&text, true).await;
    kill(&t, &direct).await;
    assert_eq!(last_words(&mut proxied).await, last_words(&mut direct).await);
});

on_both!(by_its_own_time_limit, own_backend, |t| async move {
    let [mut proxied, mut direct] = both(&t).await;
    for client in [&mut proxied, &mut direct] {
        client.query("SET wait_timeout = 1").await.expect_ok();
    }
    let (proxied, direct) = tokio::join!(last_words(&mut proxied), last_words(&mut direct));
    assert_eq!(proxied, direct);
});
