//! Plays a script in both worlds at once, step by step, and compares whatever comes back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myriad::metrics::{ClientState, Labelled, Metrics};
use myriad::protocol::command::Command;
use myriad::protocol::response::Class;

use super::normal::{Form, Normal};
use super::script::{Act, Names, Script, Step};
use super::show;
use super::tally::Tally;
use super::tolerate::{self, Case};
use super::world::{Outcome, World};
use crate::support::{Kind, Wire};

/// What has been played, also for whoever must explain a panic.
pub(super) type Trace = Arc<Mutex<Vec<Step>>>;

/// Both worlds.
pub(super) struct Play {
    pub(super) kind: Kind,
    pub(super) direct: World,
    pub(super) proxied: World,
    /// The proxy's metrics, if it is one; and how many clients it may have pinned.
    pub(super) proxy: Option<(Arc<Metrics>, usize)>,
    /// At the server itself.
    pub(super) admin: Wire,
    pub(super) trace: Trace,
    pub(super) tally: Tally,
    /// Who is pinned, as far as is known, longest first; and how many are.
    pinned: Vec<usize>,
    settled: i64,
    /// Whose connection has not found any rows yet: see [`Normal`].
    fresh: BTreeSet<usize>,
    /// Only differences with these words end the play; others are counted.
    hunt: Option<String>,
}

/// What was not the same.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    /// In words.
    pub(super) what: String,
}

impl Play {
    pub(super) fn new(
        kind: Kind,
        (direct, proxied): (World, World),
        proxy: Option<(Arc<Metrics>, usize)>,
        admin: Wire,
        trace: Trace,
    ) -> Self {
        Self {
            kind,
            direct,
            proxied,
            proxy,
            admin,
            trace,
            tally: Tally::default(),
            pinned: Vec::new(),
            settled: 0,
            fresh: BTreeSet::new(),
            hunt: std::env::var("MYRIAD_TEST_HUNT").ok(),
        }
    }

    /// Plays it all.
    pub(super) async fn run(&mut self, script: &Script) -> Result<(), Difference> {
        let mut present: Vec<usize> = script.steps.iter().map(|step| step.client).collect();
        present.sort_unstable();
        present.dedup();
        for client in present {
            let step = Step { client, act: Act::Reconnect(script.profiles[client].clone(), true) };
            if self.compare(&step).await? {
                return Err(Difference { what: format!("nobody lets this client in: {step}") });
            }
        }
        for step in &script.steps {
            self.trace.lock().expect("no panic").push(step.clone());
            if let Err(difference) = self.step(script, step).await {
                let text = format!("{step}\n{}", difference.what);
                if self.hunt.as_ref().is_none_or(|words| text.contains(words)) {
                    return Err(difference);
                }
                let about = match &step.act {
                    Act::Statement(_, slot, _) => format!(" ({})", self.prepared_text(step.client, *slot)),
                    _ => String::new(),
                };
                let key: String = step.act.to_string().chars().take(60).collect::<String>() + &about;
                let n = self.trace.lock().expect("no panic").len();
                self.tally
                    .survey
                    .entry(format!("{key}\n{}", difference.what))
                    .or_insert_with(|| (0, format!("step {n}, client {}", step.client)))
                    .0 += 1;
                let again =
                    Step { client: step.client, act: Act::Reconnect(script.profiles[step.client].clone(), true) };
                self.compare(&again).await?;
            }
            self.relieve(script, step).await?;
        }
        Ok(())
    }

    async fn step(&mut self, script: &Script, step: &Step) -> Result<(), Difference> {
        let lost = self.compare(step).await?;
        if lost {
            let again = Step { client: step.client, act: Act::Reconnect(script.profiles[step.client].clone(), true) };
            self.compare(&again).await?;
        }
        Ok(())
    }

    /// Plays one step in both worlds; whether the connection is gone, in both.
    async fn compare(&mut self, step: &Step) -> Result<bool, Difference> {
        let client = step.client;
        if let Act::Reconnect(_, politely) = step.act {
            self.part(client, politely).await;
        }
        let (direct, proxied) = tokio::join!(self.direct.play(step), self.proxied.play(step));
        if !step.act.is_silent() {
            self.settle(step).await;
        } else if matches!(step.act, Act::Statement(Command::StmtSendLongData, ..)) {
            self.settle_silently(client).await;
        }
        self.tally.steps += 1;
        let capabilities = self.direct.capabilities(client);
        let arrives = matches!(step.act, Act::Reconnect(..));
        if arrives {
            self.fresh.insert(client);
        }
        let undefined = self.kind == Kind::MariaDb && self.fresh.contains(&client);
        let undefined = undefined && (arrives || self.text_of(step).to_uppercase().contains("FOUND_ROWS()"));
        let form = |names: &Names, canon: &Names, outcome| {
            let dictionary = reads_dictionary(&step.act);
            Normal { kind: self.kind, names, canon, capabilities, dictionary, undefined }.form(outcome)
        };
        let canon = &self.proxied.names;
        let wanted = form(&self.direct.names, canon, &direct);
        let got = form(canon, canon, &proxied);
        let late = matches!(direct, Outcome::Late) || matches!(proxied, Outcome::Late);
        if matches!(&direct, Outcome::Reply(reply, _) if reply.classes.contains(&Class::Row)) {
            self.fresh.remove(&client);
        }
        if wanted == got && !late {
            self.tally.packets += if let Form::Packets(packets) = &got { packets.len() } else { 0 };
            return Ok(matches!(direct, Outcome::Lost | Outcome::Refused(..)));
        }
        // What is known of the proxy excuses nobody else.
        if let Some(reason) = self.proxy.as_ref().and_then(|_| self.tolerated(step, &wanted, &got)) {
            *self.tally.tolerated.entry(reason).or_default() += 1;
            // Whatever it changed, it may have changed in one world only.
            if !matches!(step.act, Act::ChangeUser(_) | Act::Reconnect(..)) {
                let cure = Step { client, act: Act::reset() };
                Box::pin(self.compare(&cure)).await?;
            }
            return Ok(false);
        }
        let what = show::difference((&wanted, &direct), (&got, &proxied), capabilities);
        Err(Difference { what })
    }

    /// MariaDB never again lets go of the locks of an XA transaction whose connection is reset when it is prepared.
    fn may_be_prepared(&self, client: usize) -> bool {
        let trace = self.trace.lock().expect("no panic");
        let own = trace.iter().rev().filter(|step| step.client == client).take(10);
        let xa = |act: &Act| matches!(act, Act::Command(Command::Query, sql) if sql.starts_with(b"XA"));
        self.kind == Kind::MariaDb && own.map(|step| &step.act).any(xa)
    }

    fn tolerated(&self, step: &Step, direct: &Form, proxied: &Form) -> Option<&'static str> {
        let text = self.text_of(step);
        tolerate::reason(&Case { kind: self.kind, direct, proxied, text: &text })
    }

    /// The text of a statement, also of a prepared one.
    fn text_of(&self, step: &Step) -> String {
        match &step.act {
            Act::Command(Command::Query, sql) => String::from_utf8_lossy(sql).into_owned(),
            Act::Statement(_, slot, _) => self.prepared_text(step.client, *slot),
            _ => String::new(),
        }
    }

    /// What a client has prepared last under this number.
    fn prepared_text(&self, client: usize, slot: usize) -> String {
        let trace = self.trace.lock().expect("no panic");
        let prepares = trace.iter().rev().filter(|step| step.client == client);
        let text = prepares.filter_map(|step| match &step.act {
            Act::Prepare(prepared, text) if *prepared == slot => Some(text.clone()),
            _ => None,
        });
        text.take(1).collect()
    }

    /// A client leaves both worlds, and everything it had there is cleaned up.
    async fn part(&mut self, client: usize, politely: bool) {
        let ids = [self.direct.id(client), self.proxied.id(client).filter(|_| self.proxy.is_none())];
        let present = |play: &Self| {
            let (metrics, _) = play.proxy.as_ref()?;
            Some(ClientState::ALL.iter().map(|state| metrics.client.state.get(*state).get()).sum::<i64>())
        };
        let before = present(self);
        let was_here = self.proxied.id(client).is_some();
        tokio::join!(self.direct.leave(client, politely), self.proxied.leave(client, politely));
        let limit = Instant::now() + Duration::from_secs(10);
        if let Some(before) = before.filter(|_| was_here) {
            while present(self) == Some(before) && Instant::now() < limit {
                pause().await;
            }
        }
        for id in ids.into_iter().flatten() {
            // The list is left last.
            let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id}");
            while self.admin.one(&sql).await != "0" && Instant::now() < limit {
                pause().await;
            }
        }
        self.pinned.retain(|pinned| *pinned != client);
        if let Some((metrics, _)) = &self.proxy {
            self.settled = metrics.client.state.get(ClientState::Pinned).get();
        }
    }

    /// Waits until the proxy is done with a step; notes whether it left its client pinned.
    async fn settle(&mut self, step: &Step) {
        let Some((metrics, _)) = &self.proxy else { return };
        let count = |state| metrics.client.state.get(state).get();
        let mut limit = Instant::now() + Duration::from_secs(10);
        while count(ClientState::Running) + count(ClientState::Waiting) + count(ClientState::Handshake) > 0
            && Instant::now() < limit
        {
            pause().await;
        }
        // The answer to a reset comes a moment before the client counts as idle.
        let is_reset = matches!(step.act, Act::Command(Command::ResetConnection, _) | Act::ChangeUser(_));
        limit = Instant::now() + Duration::from_millis(100);
        while is_reset
            && self.pinned.contains(&step.client)
            && count(ClientState::Pinned) >= self.settled
            && Instant::now() < limit
        {
            pause().await;
        }
        let pinned = count(ClientState::Pinned);
        if pinned > self.settled && !self.pinned.contains(&step.client) {
            self.pinned.push(step.client);
        } else if pinned < self.settled {
            self.pinned.retain(|client| *client != step.client);
        }
        self.settled = pinned;
        self.tally.most_pinned = self.tally.most_pinned.max(usize::try_from(pinned).unwrap_or_default());
    }

    /// The same after long data, which is not answered: mostly it pins.
    async fn settle_silently(&mut self, client: usize) {
        let Some((metrics, _)) = self.proxy.clone().filter(|_| !self.pinned.contains(&client)) else { return };
        let limit = Instant::now() + Duration::from_millis(50);
        while metrics.client.state.get(ClientState::Pinned).get() <= self.settled && Instant::now() < limit {
            pause().await;
        }
        let pinned = metrics.client.state.get(ClientState::Pinned).get();
        if pinned > self.settled {
            self.pinned.push(client);
            self.settled = pinned;
        }
    }

    /// Resets clients until somebody else finds a backend as well: those first who are pinned for longest.
    async fn relieve(&mut self, script: &Script, step: &Step) -> Result<(), Difference> {
        let Some((_, most)) = self.proxy.clone() else { return Ok(()) };
        let most = i64::try_from(most).expect("a small number");
        let mut others = script.profiles.iter().enumerate();
        while self.settled > most {
            let oldest = self.pinned.iter().copied().find(|client| *client != step.client);
            let cure = match oldest.or_else(|| self.pinned.first().copied()) {
                Some(client) if self.may_be_prepared(client) => {
                    Step { client, act: Act::Reconnect(script.profiles[client].clone(), true) }
                }
                Some(client) => Step { client, act: Act::reset() },
                // Nobody is known to be: to go and come again never waits.
                None => match others.next() {
                    Some((client, profile)) => Step { client, act: Act::Reconnect(profile.clone(), true) },
                    None => break,
                },
            };
            self.trace.lock().expect("no panic").push(cure.clone());
            self.tally.cures += 1;
            self.compare(&cure).await?;
            self.pinned.retain(|pinned| *pinned != cure.client);
        }
        Ok(())
    }
}

/// Whether the server reads its dictionary for it, by an index or not as it sees fit just now.
fn reads_dictionary(act: &Act) -> bool {
    let Act::Command(Command::Query, sql) = act else { return matches!(act, Act::Statement(..)) };
    ["SHOW", "EXPLAIN", "HELP", "DESC"].iter().any(|word| sql.starts_with(word.as_bytes()))
}

/// Somebody else's turn. What is waited for is a condition that is looked at again; this only gives it the time.
async fn pause() {
    tokio::time::sleep(Duration::from_micros(50)).await;
}
