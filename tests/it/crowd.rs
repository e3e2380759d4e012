//! Two hundred clients, each in a state of its own, on four backends: everyone sees its own, and nobody else's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use myriad::protocol::command::Command;
use myriad::protocol::frame::write_packet;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use crate::support::{Login, Packets, Setup, on_both, own_backends};

const CLIENTS: usize = 200;
const BACKENDS: usize = 4;
/// Statements of one client that are sent without waiting for answers.
const BATCH: usize = 10;
const BATCHES: usize = 13;

const SCHEMAS: usize = 5;
const MODES: [&str; 5] = ["", "PIPES_AS_CONCAT", "ANSI_QUOTES", "PIPES_AS_CONCAT,ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"];
const ZONES: [i32; 8] = [-720, -210, -60, 0, 60, 330, 525, 780];
/// A character set, a collation, and how an é is written.
const CHARSETS: [(&str, &str, &[u8]); 5] = [
    ("utf8mb4", "utf8mb4_unicode_ci", b"\xc3\xa9"),
    ("latin1", "latin1_german1_ci", b"\xe9"),
    ("utf8mb3", "utf8mb3_bin", b"\xc3\xa9"),
    ("cp1250", "cp1250_general_ci", b"\xe9"),
    ("gbk", "gbk_chinese_ci", b"\xa8\xa6"),
];

/// What a client has of its own.
#[derive(Clone, Debug)]
struct Own {
    schema: String,
    mode: &'static str,
    zone: i32,
    charset: usize,
    last_insert_id: u64,
}

#[derive(Clone, Debug)]
enum Step {
    /// Everything in one row.
    Look,
    /// An unqualified table: which schema's?
    Table,
    Clock,
    /// A literal in the client's own character set.
    Text,
    /// A text that sql_mode gives its meaning.
    Quotes,
    Pipes,
    Insert,
    LastId,
    Use(String),
    Mode(&'static str),
    Zone(i32),
    Names(usize),
}

fn zone(minutes: i32) -> String {
    format!("{}{:02}:{:02}", if minutes < 0 { '-' } else { '+' }, minutes.abs() / 60, minutes.abs() % 60)
}

impl Own {
    fn new(t: &Setup, number: usize) -> Self {
        // Every combination of schema, mode and time zone once.
        let (schema, rest) = (number % SCHEMAS, number / SCHEMAS);
        let (mode, rest) = (rest % MODES.len(), rest / MODES.len());
        Self {
            schema: t.tenant(schema),
            mode: MODES[mode],
            zone: ZONES[rest % ZONES.len()],
            charset: number % CHARSETS.len(),
            last_insert_id: 0,
        }
    }

    /// The step's statement, from somebody who is in this state.
    fn sql(&self, step: &Step) -> Vec<u8> {
        let text = match step {
            Step::Look => {
                "SELECT DATABASE(), @@sql_mode, @@time_zone, @@character_set_client, @@character_set_results, \
                           @@collation_connection"
                    .into()
            }
            Step::Table => "SELECT name FROM me".into(),
            Step::Clock => "SELECT TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), NOW())".into(),
            Step::Text => return [b"SELECT HEX('", CHARSETS[self.charset].2, b"')"].concat(),
            Step::Quotes => "SELECT \"name\" FROM me".into(),
            Step::Pipes => "SELECT 1 || 0".into(),
            Step::Insert => "INSERT INTO ids VALUES (NULL)".into(),
            Step::LastId => "SELECT LAST_INSERT_ID()".into(),
            Step::Use(schema) => format!("USE {schema}"),
            Step::Mode(mode) => format!("SET sql_mode = '{mode}'"),
            Step::Zone(minutes) => format!("SET time_zone = '{}'", zone(*minutes)),
            Step::Names(charset) => format!("SET NAMES {} COLLATE {}", CHARSETS[*charset].0, CHARSETS[*charset].1),
        };
        text.into_bytes()
    }

    /// What the step changes.
    fn take(&mut self, step: &Step) {
        match step {
            Step::Use(schema) => self.schema.clone_from(schema),
            Step::Mode(mode) => self.mode = mode,
            Step::Zone(minutes) => self.zone = *minutes,
            Step::Names(charset) => self.charset = *charset,
            _ => {}
        }
    }

    /// Checks the answer to a step from somebody who is in this state.
    fn check(&mut self, step: &Step, reply: &Packets) {
        assert_eq!(reply.error(), None, "{step:?} of {self:?}");
        let (charset, collation, letter) = CHARSETS[self.charset];
        let wanted = match step {
            Step::Look => {
                vec![
                    self.schema.clone(),
                    self.mode.into(),
                    zone(self.zone),
                    charset.into(),
                    charset.into(),
                    collation.into(),
                ]
            }
            Step::Table => vec![self.schema.clone()],
            Step::Clock => vec![self.zone.to_string()],
            Step::Text => vec![letter.iter().map(|byte| format!("{byte:02X}")).collect()],
            Step::Quotes if self.mode.contains("ANSI_QUOTES") => vec![self.schema.clone()],
            Step::Quotes => vec!["name".into()],
            Step::Pipes if self.mode.contains("PIPES_AS_CONCAT") => vec!["10".into()],
            Step::Pipes => vec!["1".into()],
            Step::Insert => {
                self.last_insert_id = reply.ok().insert_id;
                return;
            }
            Step::LastId => vec![self.last_insert_id.to_string()],
            Step::Use(_) | Step::Mode(_) | Step::Zone(_) | Step::Names(_) => return,
        };
        let row: Vec<_> = reply.rows()[0].iter().map(|field| field.clone().unwrap_or_default()).collect();
        assert_eq!(row, wanted, "{step:?} of {self:?}");
    }
}

fn step(t: &Setup, random: &mut StdRng) -> Step {
    match random.random_range(0..100) {
        0..30 => Step::Look,
        30..50 => Step::Table,
        50..65 => Step::Clock,
        65..75 => Step::Text,
        75..80 => Step::Quotes,
        80..85 => Step::Pipes,
        85..89 => Step::Insert,
        89..95 => Step::LastId,
        95 => Step::Use(t.tenant(random.random_range(0..SCHEMAS))),
        96 => Step::Mode(MODES.choose(random).expect("a mode")),
        97 => Step::Zone(*ZONES.choose(random).expect("a zone")),
        _ => Step::Names(random.random_range(0..CHARSETS.len())),
    }
}

async fn live(t: Arc<Setup>, number: usize, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed ^ (number as u64) << 32);
    let mut own = Own::new(&t, number);
    let mut client = t.client_as(&Login { schema: Some(own.schema.clone()), ..t.app() }).await;
    for first in [Step::Mode(own.mode), Step::Zone(own.zone), Step::Names(own.charset)] {
        client.command(Command::Query, &own.sql(&first)).await.expect_ok();
    }
    for _ in 0..BATCHES {
        let steps: Vec<Step> = (0..BATCH).map(|_| step(&t, &mut random)).collect();
        let mut sent = own.clone();
        let mut out = BytesMut::new();
        for step in &steps {
            write_packet(&mut out, 0, &[&[Command::Query.byte()], &*sent.sql(step)].concat());
            sent.take(step);
        }
        client.write(&out).await;
        for step in &steps {
            let reply = client.reply(Command::Query).await.expect("a reply");
            own.check(step, &reply);
            own.take(step);
        }
    }
}

on_both!(
    everybody_sees_its_own,
    |config| {
        config.pool.max_connections = BACKENDS;
        config.scheduler.queue_timeout = Duration::from_secs(60);
        own_backends(config);
    },
    |t| async move {
        let mut first = t.client().await;
        for schema in (0..SCHEMAS).map(|number| t.tenant(number)) {
            for sql in [
                format!("CREATE DATABASE {schema}"),
                format!("CREATE TABLE {schema}.ids (id INT AUTO_INCREMENT PRIMARY KEY)"),
                format!("CREATE TABLE {schema}.me (name VARCHAR(64))"),
                format!("INSERT INTO {schema}.me VALUES ('{schema}')"),
            ] {
                first.query(&sql).await.expect_ok();
            }
        }
        drop(first);
        let seed: u64 = rand::random();
        println!("{:?}: seed {seed}", t.kind);
        let started = Instant::now();
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(live(Arc::clone(&t), number, seed));
        }
        let mut admin = t.admin().await;
        let mut most = 0;
        while !clients.is_empty() {
            most = most.max(t.threads(&mut admin).await.len());
            let moment = tokio::time::timeout(Duration::from_millis(50), clients.join_next());
            if let Ok(Some(done)) = moment.await {
                done.expect("a client that saw its own");
            }
        }
        report(&t, started.elapsed());
        assert_eq!(most, BACKENDS);
        assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), BACKENDS as f64);
        // The account has room for as many connections as the pool may have, and never had to refuse one.
        assert_eq!(t.metric("myriad_backend_opens_total", None), BACKENDS as f64);
        assert_eq!(t.metric("myriad_restore_failures_total", None), 0.0);
        assert_eq!(t.metric("myriad_pins_total", None), 0.0);
        let handed_over = t.metric("myriad_pool_leases_total", Some("other_state"));
        assert!(handed_over > (CLIENTS * BATCH * BATCHES / 2) as f64, "too few to prove anything: {handed_over}");
    }
);

fn report(t: &Setup, elapsed: Duration) {
    let leases = |kind| t.metric("myriad_pool_leases_total", Some(kind));
    println!(
        "{:?}: {} statements in {:.1} s; backends were one's own {} times, another's in the same state {}, in another \
         state {}; {} restores, {} saves, {} asks",
        t.kind,
        t.metric("myriad_turns_total", None),
        elapsed.as_secs_f64(),
        leases("own"),
        leases("same_state"),
        leases("other_state"),
        t.metric("myriad_restores_total", None),
        t.metric("myriad_saves_total", None),
        t.metric("myriad_asks_total", None),
    );
}
