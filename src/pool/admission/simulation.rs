//! A day in the life of a pool, from a seed: clients of two users who ask, wait, give up, open transactions and meet locks.
//! What must hold is checked at every event, and at the end nothing may be left.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::tests::limits;
use super::*;

const MS: Duration = Duration::from_millis(1);

/// What is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A client wants its next statement.
    Ask(usize),
    /// A client's statement has ended.
    Ends(usize),
    /// A client has waited for long enough, if it still waits with this ticket.
    GivesUp(usize, Ticket),
    Opened(SlotId),
    Closed(SlotId),
    Woke,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// Has no connection, and wants none yet.
    Away,
    /// In line since then.
    Waits(Ticket, Instant),
    /// Its statement runs.
    Runs(SlotId),
    /// Keeps its connection between two statements.
    Keeps(SlotId),
    /// Waits for its next turn.
    Returns(SlotId, Ticket),
}

struct World {
    admission: Admission<&'static str>,
    limits: Limits,
    now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    next: u64,
    rng: StdRng,
    clients: Vec<Client>,
    /// How many statements its transaction still has.
    left: Vec<u32>,
    served: Vec<u64>,
    tickets: HashMap<Ticket, usize>,
    /// The ticket that each class served last.
    last: [Option<Ticket>; 2],
    /// How long each user's clients waited, in all, and how often.
    waited: [(Duration, u64); 2],
    longest: Duration,
    stopping: bool,
    happened: u64,
}

/// One client in fifty is the small user's.
fn user(client: usize) -> usize {
    usize::from(client.is_multiple_of(50))
}

impl World {
    fn new(seed: u64, clients: usize, limits: Limits) -> Self {
        let now = Instant::now();
        let mut world = Self {
            admission: Admission::new(limits.clone(), seed, now),
            limits,
            now,
            events: BinaryHeap::new(),
            next: 0,
            rng: StdRng::seed_from_u64(seed),
            clients: vec![Client::Away; clients],
            left: vec![0; clients],
            served: vec![0; clients],
            tickets: HashMap::new(),
            last: [None; 2],
            waited: [(Duration::ZERO, 0); 2],
            longest: Duration::ZERO,
            stopping: false,
            happened: 0,
        };
        (0..clients).for_each(|client| world.soon(MS, Event::Ask(client)));
        world
    }

    /// Something happens after a random time with this mean.
    fn soon(&mut self, mean: Duration, event: Event) {
        let x: f64 = self.rng.random_range(0.0..1.0);
        self.at(self.now + mean.mul_f64(-(1.0 - x).ln()), event);
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.next += 1;
        self.events.push(Reverse((at, self.next, event)));
    }

    /// Lets things happen until so many have, or nothing is left to.
    fn run(&mut self, events: u64) {
        for _ in 0..events {
            let Some(Reverse((at, _, event))) = self.events.pop() else { return };
            self.now = self.now.max(at);
            self.tell(event);
            self.admission.decide(self.now);
            for decision in self.admission.decisions() {
                self.obey(decision);
            }
            self.happened += 1;
            self.check();
        }
    }

    fn tell(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Ask(client) => self.ask(client),
            Event::Ends(client) => self.ends(client),
            Event::GivesUp(client, ticket) => {
                if self.clients[client] == Client::Waits(ticket, self.since(client)) {
                    assert!(self.admission.leave(ticket));
                    self.tickets.remove(&ticket);
                    self.clients[client] = Client::Away;
                    self.again(client);
                }
            }
            Event::Opened(slot) => self.admission.opened(slot, now),
            Event::Closed(slot) => self.admission.closed(slot),
            Event::Woke => self.admission.woke(now),
        }
    }

    fn since(&self, client: usize) -> Instant {
        match self.clients[client] {
            Client::Waits(_, since) => since,
            _ => self.now,
        }
    }

    fn ask(&mut self, client: usize) {
        if let Client::Keeps(slot) = self.clients[client] {
            match self.admission.resume(slot, self.now) {
                Resumed::Now => self.begins(client, slot),
                Resumed::Waiting(ticket) => {
                    self.tickets.insert(ticket, client);
                    self.clients[client] = Client::Returns(slot, ticket);
                }
            }
            return;
        }
        let class = ["greedy", "small"][user(client)];
        let party = Party { name: class.into(), weight: 1, ..Party::default() };
        let state = self.rng.random_range(0..3);
        let asked = Asked { class: &class, party: &party, schema: None, owner: client as u64, state };
        if let Some(grant) = self.admission.take(&asked, self.now) {
            self.waited[user(client)].1 += 1;
            self.begins(client, grant.slot);
            return;
        }
        let Joined::Waiting(ticket) = self.admission.join(&asked, false, self.now) else { panic!("refused") };
        self.tickets.insert(ticket, client);
        self.clients[client] = Client::Waits(ticket, self.now);
        if self.rng.random_bool(0.05) {
            self.soon(50 * MS, Event::GivesUp(client, ticket));
        }
    }

    /// Its statement runs now; one in a hundred waits for a lock.
    fn begins(&mut self, client: usize, slot: SlotId) {
        self.clients[client] = Client::Runs(slot);
        self.served[client] += 1;
        let mean = if self.rng.random_bool(0.01) { 300 * MS } else { MS };
        self.soon(mean, Event::Ends(client));
    }

    fn ends(&mut self, client: usize) {
        let Client::Runs(slot) = self.clients[client] else { panic!("it runs") };
        if self.left[client] == 0 && self.rng.random_bool(0.3) && !self.stopping {
            self.left[client] = self.rng.random_range(1..5);
        }
        if self.left[client] > 0 {
            self.left[client] -= 1;
            self.clients[client] = Client::Keeps(slot);
            if self.limits.max_running != MaxRunning::Off {
                self.admission.pause(slot, self.now);
            }
            self.soon(MS, Event::Ask(client));
            return;
        }
        if self.rng.random_bool(0.01) {
            self.admission.closing(slot);
            self.soon(MS, Event::Closed(slot));
        } else {
            self.admission.release(slot, client as u64, 1, self.now);
        }
        self.clients[client] = Client::Away;
        self.again(client);
    }

    fn again(&mut self, client: usize) {
        if !self.stopping {
            self.soon(2 * MS, Event::Ask(client));
        }
    }

    fn obey(&mut self, decision: Decision<&'static str>) {
        match decision {
            Decision::Grant { ticket, grant } => {
                let client = self.tickets.remove(&ticket).expect("a ticket is called once");
                let since = self.since(client);
                assert_eq!(self.clients[client], Client::Waits(ticket, since));
                let user = user(client);
                assert!(self.last[user].replace(ticket).is_none_or(|last| last < ticket), "overtaken");
                let waited = self.now - since;
                self.waited[user] = (self.waited[user].0 + waited, self.waited[user].1 + 1);
                self.longest = self.longest.max(waited);
                self.begins(client, grant.slot);
            }
            Decision::Resume { ticket } => {
                let client = self.tickets.remove(&ticket).expect("a ticket is called once");
                let Client::Returns(slot, _) = self.clients[client] else { panic!("it waits for its turn") };
                self.begins(client, slot);
            }
            Decision::Refuse { ticket, cause } => panic!("{ticket:?}: {cause:?}"),
            Decision::Close { slot, .. } => self.soon(MS, Event::Closed(slot)),
            Decision::Dial { slot, .. } => self.soon(2 * MS, Event::Opened(slot)),
            Decision::Wake { at } => self.at(at, Event::Woke),
        }
    }

    fn check(&self) {
        let counts = self.admission.counts();
        assert!(counts.total() <= self.limits.max_connections);
        let returning = self.tickets.len() - counts.waiting;
        assert_eq!(counts.returning, returning);
        if self.limits.max_running == MaxRunning::Off {
            return;
        }
        if let MaxRunning::At(limit) = self.limits.max_running {
            assert!(counts.running <= limit);
        }
        assert!(counts.stalled <= self.limits.oversubscribe);
        if counts.running < self.admission.running.limit() {
            assert_eq!(counts.returning, 0, "room to run, and somebody waits for its turn");
        }
    }

    /// Nobody asks anew: everybody is served or has given up, and everything is at rest.
    fn run_dry(&mut self) {
        self.stopping = true;
        self.run(u64::MAX);
        assert!(
            self.tickets.is_empty() && self.clients.iter().all(|client| *client == Client::Away),
            "{:?}",
            self.tickets
        );
        let counts = self.admission.counts();
        assert_eq!(counts, Counts { idle: counts.idle, ..Counts::default() });
    }
}

/// What must come out whatever the limits are.
fn simulate(seed: u64, clients: usize, limits: Limits) -> World {
    println!("seed {seed}");
    let mut world = World::new(seed, clients, Limits { max_waiting: clients, ..limits });
    world.run(400_000);
    world.run_dry();
    let fewest = world.served.iter().min().copied().unwrap_or_default();
    assert!(fewest > 0, "somebody was never served");
    world
}

#[test]
fn a_small_user_is_not_kept_waiting_by_a_large_one() {
    for seed in 0..2 {
        let world = simulate(seed, 1000, limits(16, 4));
        let [greedy, small] = world.waited.map(|(time, times)| time.as_secs_f64() / times.max(1) as f64);
        assert!(small < greedy / 2.0, "greedy {greedy:.4} s, small {small:.4} s a statement");
    }
}

#[test]
fn a_limit_of_running_statements_holds_and_nobody_starves() {
    for (seed, oversubscribe) in [(10, 0), (11, 8), (12, 100)] {
        let kickup = 50 * MS;
        let world = simulate(
            seed,
            1000,
            Limits { max_running: MaxRunning::At(8), oversubscribe, stall_limit: 20 * MS, kickup, ..limits(40, 8) },
        );
        let mean = world.waited[0].0.as_secs_f64() / world.waited[0].1 as f64;
        assert!(world.longest.as_secs_f64() < 20.0 * mean + 1.0, "{:?}, mean {mean:.3} s", world.longest);
        assert_eq!(oversubscribe == 0, world.admission.survey(world.now).stalls == 0);
    }
}

#[test]
fn an_adaptive_limit_loses_nobody() {
    let world = simulate(20, 500, Limits { max_running: MaxRunning::Auto, oversubscribe: 20, ..limits(64, 8) });
    assert!(world.admission.survey(world.now).gradient.is_some_and(|(_, samples)| samples > 0));
}
