//! Writes a script from a seed: clients that take turns, each with a section of some kind under way.
//!
//! A section is a few acts that belong together (a transaction; an INSERT and the questions about it); what other clients
//! do falls in between. The author knows little of what the acts do: failing is as good as succeeding, as long as it
//! happens in both worlds. It only sees to it that nothing waits: each client writes rows of its own tables, and what
//! changes shared ones ends whatever the others may have open first.

use std::collections::VecDeque;

use myriad::protocol::capability::CapabilityFlags;

use super::dice::Dice;
use super::kinds::{self, Section};
use super::script::{Act, Profile, SLOTS, Script, Step};
use crate::support::Kind;

/// How many clients may be in a section that surely pins, all the others needing a backend as well.
const PINNING: usize = 2;

/// One client, as its author sees it.
#[derive(Debug, Default)]
pub(super) struct Part {
    agenda: VecDeque<Act>,
    pinning: bool,
    /// May hold locks since the last reset.
    pub(super) open: bool,
    /// What is prepared in each slot.
    pub(super) slots: [Option<Slot>; SLOTS],
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) params: usize,
    /// The types that were sent last.
    pub(super) types: Option<Vec<u16>>,
}

/// The author at work on one client's section.
pub(super) struct Author {
    pub(super) dice: Dice,
    pub(super) kind: Kind,
    pub(super) client: usize,
    /// Clients log in so that not all can share backends.
    pub(super) mixed: bool,
    parts: Vec<Part>,
    script: Script,
}

/// The script of this seed.
pub(super) fn write(kind: Kind, seed: u64, clients: usize, steps: usize) -> Script {
    let mut dice = Dice::new(seed);
    let mixed = dice.chance(30);
    let profiles = (0..clients).map(|_| profile(&mut dice, mixed)).collect();
    let parts = (0..clients).map(|_| Part::default()).collect();
    let mut author =
        Author { dice, kind, client: 0, mixed, parts, script: Script { profiles, steps: Vec::with_capacity(steps) } };
    while author.script.steps.len() < steps {
        author.turn();
    }
    author.script
}

impl Author {
    /// One client's turn: one step, or several if nobody may come in between.
    fn turn(&mut self) {
        self.client = self.whose();
        if self.part().agenda.is_empty() {
            self.begin();
        }
        while let Some(act) = self.part().agenda.pop_front() {
            let silent = act.is_silent();
            self.script.steps.push(Step { client: self.client, act });
            if !silent {
                break;
            }
        }
        if self.part().agenda.is_empty() {
            self.part().pinning = false;
        }
    }

    /// Mostly somebody else than before; those in the middle of a section are in more of a hurry.
    fn whose(&mut self) -> usize {
        let busy: Vec<usize> = (0..self.parts.len()).filter(|at| !self.parts[*at].agenda.is_empty()).collect();
        match self.dice.below(10) {
            0 | 1 => self.client,
            2..=6 if !busy.is_empty() => self.dice.pick(&busy),
            _ => self.dice.below(self.parts.len()),
        }
    }

    fn begin(&mut self) {
        let pinning = self.parts.iter().filter(|part| part.pinning).count();
        loop {
            let Section { pins, write, .. } = kinds::choose(self);
            if !pins || pinning < PINNING {
                self.part().pinning = pins;
                write(self);
                break;
            }
        }
    }

    pub(super) fn part(&mut self) -> &mut Part {
        &mut self.parts[self.client]
    }

    /// One more act of this section.
    pub(super) fn act(&mut self, act: Act) {
        self.part().agenda.push_back(act);
    }

    /// One more statement; `{c}` is the client's number.
    pub(super) fn query(&mut self, sql: &str) {
        let sql = self.text(sql);
        self.act(Act::query(sql));
    }

    pub(super) fn text(&self, sql: &str) -> String {
        sql.replace("{c}", &self.client.to_string())
    }

    /// One of these statements.
    pub(super) fn any(&mut self, all: &[&str]) {
        let sql = self.dice.pick(all);
        self.query(sql);
    }

    /// Some of these statements, at most `most`.
    pub(super) fn some(&mut self, all: &[&str], most: usize) {
        for _ in 0..=self.dice.below(most) {
            self.any(all);
        }
    }

    /// Ends whatever anybody may have open, now: then shared tables may be changed.
    pub(super) fn quiet(&mut self) {
        for client in 0..self.parts.len() {
            let part = &mut self.parts[client];
            if std::mem::take(&mut part.open) {
                part.slots = Default::default();
                let rest = std::mem::take(&mut part.agenda);
                let steps = rest.into_iter().chain([Act::reset()]).map(|act| Step { client, act });
                self.script.steps.extend(steps);
            }
        }
    }

    /// Nobody comes in between what is still to be done: it happens now.
    pub(super) fn at_once(&mut self) {
        while let Some(act) = self.part().agenda.pop_front() {
            self.script.steps.push(Step { client: self.client, act });
        }
    }
}

/// How most log in.
pub(super) fn usual() -> Profile {
    Profile {
        user: "app",
        password: "app-secret",
        schema: Some("{s}"),
        collation: 45,
        more: CapabilityFlags::empty(),
        less: CapabilityFlags::empty(),
    }
}

/// How a client logs in: in what may share backends, in every way; in what may not (`mixed`), some.
pub(super) fn profile(dice: &mut Dice, mixed: bool) -> Profile {
    use CapabilityFlags as Flags;
    let dialect = [
        Flags::empty(),
        Flags::empty(),
        Flags::CLIENT_SESSION_TRACK,
        Flags::CLIENT_DEPRECATE_EOF | Flags::CLIENT_SESSION_TRACK,
    ];
    let extra = if !mixed || dice.chance(60) {
        Flags::empty()
    } else {
        dice.pick(&[Flags::CLIENT_FOUND_ROWS, Flags::CLIENT_IGNORE_SPACE, Flags::CLIENT_INTERACTIVE])
    };
    let multi = if dice.chance(40) { Flags::CLIENT_MULTI_STATEMENTS } else { Flags::empty() };
    Profile {
        schema: dice.pick(&[
            Some("{s}"),
            Some("{s}"),
            Some("{s}"),
            Some("{s}"),
            Some("{o}"),
            if mixed { None } else { Some("{o}") },
        ]),
        collation: dice.pick(&[45, 45, 45, 33, 8, 83]),
        more: extra | multi,
        less: dice.pick(&dialect),
        ..usual()
    }
}
