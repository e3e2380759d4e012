//! `server.instance`: proxies that share a port never take another's client for one of their own.

use myriad::protocol::command::Command;

use crate::kills::{sleep, was_interrupted};
use crate::page::get;
use crate::prepared::execute;
use crate::support::{Login, Setup, Wire, on_both};

/// Clients of both proxies, so many of each at least: the kernel picks.
async fn clients(t: &Setup, each: usize) -> [Vec<Wire>; 2] {
    let mut clients = [Vec::new(), Vec::new()];
    for _ in 0..300 {
        if clients.iter().all(|clients| clients.len() >= each) {
            return clients;
        }
        let client = t.client().await;
        match (client.id - (1 << 30)) >> 22 {
            instance @ (1 | 2) => clients[instance as usize - 1].push(client),
            other => panic!("a client of instance {other}"),
        }
    }
    panic!("one of the proxies gets no clients");
}

on_both!(
    a_kill_that_arrives_at_another_proxy_hits_nobody,
    |config| {
        config.server.reuse_port = true;
        config.server.instance = 1;
    },
    |t| async move {
        let beside = t.beside(2).await;
        let [mut here, mut there] = clients(&t, 2).await;
        for client in here.iter_mut().chain(&mut there) {
            let id = client.id;
            assert_eq!(client.one("SELECT CONNECTION_ID()").await, id.to_string());
        }
        let (mut killer, mut victim) = (here.pop().expect("a client"), there.pop().expect("a client"));
        let id = victim.id;
        // As the server says it of nobody's id.
        let mut direct = t.direct(&Login::app()).await;
        victim.send(Command::Query, sleep(&t).as_bytes()).await;
        t.until_runs(&sleep(&t), true).await;
        for kill in ["KILL", "KILL QUERY", "KILL CONNECTION"] {
            let kill = format!("{kill} {id}");
            let expected = direct.query(&kill).await.error();
            assert_eq!(expected.as_ref().map(|(code, _)| *code), Some(1094));
            assert_eq!(killer.query(&kill).await.error(), expected);
            let prepared = killer.prepare(&kill).await;
            assert_eq!(execute(&mut killer, prepared, &[]).await.error(), expected);
        }
        killer.query(&format!("KILL {id} + 0")).await.expect_error(1094);
        killer.command(Command::ProcessKill, &id.to_le_bytes()).await.expect_error(1094);
        for client in here.iter_mut().chain(&mut there) {
            assert_eq!(client.one("SELECT 'mine'").await, "mine");
        }
        // Only its own proxy knows the victim, and it still runs what it ran.
        let own = there.last_mut().expect("another client");
        own.query(&format!("KILL QUERY {id}")).await.expect_ok();
        assert!(was_interrupted(&victim.reply(Command::Query).await.expect("a reply"), "mine"));
        assert_eq!(victim.one("SELECT 'mine'").await, "mine");
        drop((victim, there));
        beside.drain().await;
    }
);

on_both!(
    the_metrics_say_whose_they_are,
    |config| {
        config.server.reuse_port = true;
        config.server.instance = 1;
    },
    |t| async move {
        let beside = t.beside(2).await;
        let other = beside.metrics_address().expect("a page");
        for (page, instance) in [(t.metrics_address, 1), (other, 2)] {
            let page = get(page, "/metrics").await;
            let label = format!("instance=\"{instance}\"}} ");
            let lines = page.lines().filter(|line| line.starts_with("myriad_") || line.starts_with("process_"));
            assert!(lines.clone().count() > 50, "{page}");
            for line in lines.filter(|line| !line.contains("_bucket{")) {
                assert!(line.contains(&label), "{line}");
            }
            let idle = format!("myriad_clients{{state=\"idle\",instance=\"{instance}\"}} 0");
            assert!(page.lines().any(|line| line == idle), "{page}");
        }
        beside.drain().await;
    }
);
