//! COM_STMT_EXECUTE and MariaDB's COM_STMT_BULK_EXECUTE: finding the backend's statement for the client's, and its parameters' types.

use std::sync::Arc;

use super::serve::Client;
use super::turn::{Next, Task};
use crate::backend::{QueryError, Wanted};
use crate::pool::{Lease, Server};
use crate::protocol::capability::BULK_OPERATIONS;
use crate::protocol::command::Command;
use crate::protocol::frame::HEADER;
use crate::protocol::packet::execute::{Execute, Types};
use crate::relay::{Front, Traffic};
use crate::session::{Bound, Recall, Rehearsal, Statement};
use crate::sql::{self, Effects, Flags, Kill, Whom, kill_whom};

/// A command about a prepared statement that a backend answers.
#[derive(Debug)]
pub(super) struct Serving {
    /// The client's id.
    pub(super) id: u32,
    /// The backend's.
    pub(super) there: u32,
    /// What the backend's statement is.
    pub(super) wanted: Wanted,
    /// Another one could not be made to decide as this one has.
    pub(super) decided: bool,
}

/// Errors of an execute that was not even begun: what is left of long data stays.
const NOT_BEGUN: [u16; 2] = [1210, 1835];

/// How far the front of an execute is read for the sake of its attributes' names, in bytes.
const MAX_FRONT: usize = 64 << 10;

/// What an execute needs besides a backend.
struct Plan {
    id: u32,
    statement: Statement,
    wanted: Wanted,
    task: Box<Task>,
    /// How long its front is, where the types are to be put in.
    kept: Option<usize>,
    /// What a statement that is new to its backend must go through first: see [`Bound::rehearsals`].
    rehearsals: Vec<Rehearsal>,
    /// Nothing that is new to a backend can be brought to what it has decided about its parameters.
    decided: bool,
}

/// Whether what was found, and perhaps must be prepared first, is new to its backend and must not be.
fn rehearses(plan: &Plan, found: Option<(u32, bool)>) -> bool {
    !plan.rehearsals.is_empty() && found.is_none_or(|(_, is_new)| is_new)
}

impl Client {
    /// COM_STMT_BULK_EXECUTE
    pub(super) async fn bulk_execute(&mut self) -> Next {
        if !self.guest.capabilities.contains(BULK_OPERATIONS) {
            return self.refuse_here(&self.no_bulk_execute()).await;
        }
        self.execute(Command::StmtBulkExecute).await
    }

    /// COM_STMT_EXECUTE, or its relative.
    pub(super) async fn execute(&mut self, command: Command) -> Next {
        let mut plan = match Box::pin(self.plan_execute(command)).await {
            Ok(plan) => plan,
            Err(next) => return next,
        };
        if let Some((kill, id)) = self.kill_of(&plan) {
            return Box::pin(self.kill_number(kill, id)).await;
        }
        let effects = plan.task.effects.as_ref();
        let (mut lease, mut prefix) = match self.restored(command, effects).await {
            Ok(ready) => ready,
            Err(next) => return next,
        };
        if let Err(error) = Box::pin(self.bring_names(&mut lease, &mut prefix, &plan.task)).await {
            return Box::pin(self.unprepared(lease, error)).await;
        }
        if plan.statement.held.is_some() && Self::must_be_asked_anew(&plan.statement, effects) {
            self.let_cursor_go(&mut lease, plan.id, &mut plan.statement);
        }
        let mut found = match plan.statement.held {
            Some(there) => Some((there, false)),
            None => lease.prepared.find(&plan.wanted),
        };
        let parts = found.is_none() || rehearses(&plan, found) || self.parts_by_tuning(&lease, command, effects);
        if parts && !Box::pin(self.part_from_last(&mut lease, effects)).await {
            return self.lost(lease).await;
        }
        let (again, mark) = (self.session.show_again(effects), self.session.mark(Command::StmtExecute, effects));
        let recall = effects.map(|effects| self.session.recall_execute(&plan.statement, effects));
        let mut instead = None;
        match recall {
            // The server has words of its own for a SHOW that is to run many times.
            Some(Recall::Rows(..)) if command == Command::StmtBulkExecute => {}
            Some(Recall::Rows(plain, rows)) if !plan.wanted.cursor() => instead = Some((plain, rows)),
            Some(Recall::Rows(..)) => return Box::pin(self.refuse(lease, "the list of warnings")).await,
            Some(Recall::Text(text)) => {
                let mode = plan.statement.text.mode();
                let text = self.door.texts.intern(&text, mode, sql::effects(&text, mode));
                plan.wanted = plan.wanted.reworded(text);
                found = lease.prepared.find(&plan.wanted);
            }
            Some(Recall::Lost(what)) => return Box::pin(self.refuse(lease, what)).await,
            _ => {}
        }
        let there = match found {
            Some((there, _)) => there,
            None => {
                let mut traffic = Traffic::default();
                let asked = Box::pin(self.prepare_again(&mut lease, &mut prefix, &plan.wanted, &mut traffic)).await;
                match asked {
                    Ok(there) => there,
                    Err(error) => return Box::pin(self.unprepared(lease, error)).await,
                }
            }
        };
        if rehearses(&plan, found) && !Box::pin(self.rehearse(&mut lease, there, &plan.rehearsals)).await {
            return self.lost(lease).await;
        }
        self.expect_way_back(&plan.statement, instead.is_some());
        if let Some((plain, rows)) = instead {
            self.put_statement_id(there);
            return Box::pin(self.substitute(lease, Command::StmtExecute, plain, rows)).await;
        }
        again.into_iter().chain(mark).for_each(|sql| prefix.append(sql, &lease));
        plan.task.prefix = prefix;
        let Plan { id, statement, wanted, mut task, kept, decided, .. } = *plan;
        self.name_there(&mut lease, &mut task, &statement, (Serving { id, there, wanted, decided }, kept));
        self.run(lease, &mut task).await
    }

    /// A private connection would run it in the schema that it was prepared in, and come back from there. `here`: it is
    /// answered from memory.
    fn expect_way_back(&mut self, statement: &Statement, here: bool) {
        let there = statement.state.schema();
        if there != self.session.state().schema() && (here || there.is_none()) {
            self.session.expect_way_back();
        }
    }

    /// Whom the execute kills, if it does: a client's number is none that the server knows.
    fn kill_of(&self, plan: &Plan) -> Option<(Kill, u64)> {
        let kill = plan.task.effects.as_ref()?.kill.filter(|_| self.is_whole())?;
        let parameter = || {
            let Whom::Thread(expression) = kill_whom(plan.statement.text.bytes(), plan.statement.text.mode()) else {
                return None;
            };
            let types = plan.statement.bound.as_ref().map(|bound| bound.types());
            let is_parameter = expression.trim_ascii() == b"?" && plan.statement.params == 1;
            if !is_parameter {
                return None;
            }
            match self.speaks_attributes() {
                true => Execute::only_number(&Execute::of_one(self.argument())?, types),
                false => Execute::only_number(self.argument(), types),
            }
        };
        Some((kill, kill.id.or_else(parameter)?))
    }

    /// The backend's statement behind a cursor may be of another text, with an answer in it that is the past by now.
    fn must_be_asked_anew(statement: &Statement, effects: Option<&Effects>) -> bool {
        let asks = effects.is_some_and(|effects| effects.may(Flags::READS_DIAGNOSTICS));
        asks && statement.cursor && !statement.private && !statement.long_data
    }

    /// To execute it once more closes its cursor in any case.
    fn let_cursor_go(&mut self, lease: &mut Lease<Server>, id: u32, statement: &mut Statement) {
        if let Some(there) = statement.held.take() {
            lease.prepared.close_held(there);
        }
        statement.cursor = false;
        self.session.change_statement(id, |statement| (statement.held, statement.cursor) = (None, false));
    }

    /// Everything that can be known before there is a backend.
    async fn plan_execute(&mut self, command: Command) -> Result<Box<Plan>, Next> {
        let id = self.known_statement(command).await?;
        let params = self.session.statement(id).map_or(0, |statement| statement.params);
        self.read_front(Execute::longest_front(params)).await?;
        let attributes = self.speaks_attributes();
        let cut_short = |types: &Types<'_>| attributes && *types == Types::Malformed;
        if Execute::parse(self.argument(), params, attributes).is_some_and(|execute| cut_short(&execute.types)) {
            // Names may be long.
            self.read_front(MAX_FRONT).await?;
        }
        let Some(statement) = self.session.statement(id) else { return Err(self.unknown_command_argument().await) };
        let execute = match command {
            Command::StmtBulkExecute => Execute::parse_bulk(self.argument(), params),
            _ => Execute::parse(self.argument(), params, attributes),
        };
        let Some(execute) = execute else {
            return Err(self.unknown_command_argument().await);
        };
        let state = self.session.state();
        let mariadb = self.session.options().mariadb;
        let nulls = Execute::nulls(self.argument(), params, attributes);
        let (mut kept, mut bound, before) = (None, None, statement.bound.as_deref());
        match execute.types {
            Types::Sent(types) if !before.is_some_and(|bound| bound.is(&types, state)) => {
                bound = Some(Bound::new(&types, nulls, before, state, mariadb));
            }
            Types::Sent(_) if !mariadb => bound = before.and_then(|bound| bound.executed(nulls)),
            Types::Kept { front } => {
                kept = Some(front);
                bound = if mariadb { None } else { before.and_then(|bound| bound.executed(nulls)) };
            }
            _ => {}
        }
        let (cursor, nulls) = (execute.cursor, nulls.to_vec());
        if let Some(bound) = bound {
            self.session.change_statement(id, |statement| statement.bound = Some(Arc::new(bound)));
        }
        let Some(statement) = self.session.statement(id).cloned() else {
            return Err(self.unknown_command_argument().await);
        };
        if statement.lost_data {
            return Err(self.refuse_here(&super::reply::Fault::LostLongData).await);
        }
        let effects = self.session.effects_of(&statement);
        let wanted = Wanted::new(&statement, cursor);
        let task = Task::new(command, Some(effects));
        let bound = statement.bound.as_ref().filter(|_| !mariadb);
        let mut rehearsals = bound.map_or_else(Vec::new, |bound| bound.rehearsals(&nulls));
        let decided = !rehearsals.is_empty() && statement.text.is_set();
        if !rehearsals.is_empty() && !sql::obeys_select_limit(statement.text.bytes(), statement.text.mode()) {
            rehearsals.clear();
        }
        Ok(Box::new(Plan { id, statement, wanted, task, kept, rehearsals, decided }))
    }

    /// Has a backend's statement that nobody has executed yet come to what it would be after what this client has bound
    /// before. With `sql_select_limit=0` nothing is read. False if the backend is lost.
    async fn rehearse(&mut self, lease: &mut Lease<Server>, there: u32, all: &[Rehearsal]) -> bool {
        // Whatever becomes of the execute itself, these are statements, too.
        if !self.moved {
            if !self.pay(lease).await {
                return false;
            }
            let _ = self.session.moved();
            self.moved = true;
        }
        let own = self.session.state().variable("sql_select_limit").map(String::from_utf8_lossy);
        let own = own.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
        let back = format!("SET sql_select_limit={}", own.as_deref().unwrap_or("DEFAULT"));
        let mut sound = lease.query("SET sql_select_limit=0").await.is_ok();
        for rehearsal in all {
            let argument = Execute::rehearsed(
                there,
                (&rehearsal.nulls, &rehearsal.types, &rehearsal.values),
                self.speaks_attributes(),
            );
            sound = sound
                && matches!(
                    lease.command(Command::StmtExecute, &argument).await,
                    Ok(_) | Err(QueryError::Refused { .. })
                );
        }
        sound && lease.query(&back).await.is_ok()
    }

    /// A statement must be prepared first: what the last one left on this backend goes with that. False if it is lost.
    pub(super) async fn part_from_last(&mut self, lease: &mut Lease<Server>, effects: Option<&Effects>) -> bool {
        let reads = effects.is_some_and(|effects| effects.may(Flags::READS_DIAGNOSTICS | Flags::EXECUTE));
        if self.moved || (self.session.owes().is_empty() && !reads) {
            return true;
        }
        if !self.pay(lease).await {
            return false;
        }
        let _ = self.session.moved();
        self.moved = true;
        true
    }

    /// Makes the execute at the buffer's front one of the backend's statement `there`; `kept` is how long its front is if
    /// it comes without types.
    fn name_there(
        &mut self,
        lease: &mut Lease<Server>,
        task: &mut Task,
        statement: &Statement,
        (serving, kept): (Serving, Option<usize>),
    ) {
        let Serving { id, there, ref wanted, .. } = serving;
        if statement.held.is_some() {
            lease.prepared.use_held(there, wanted);
        } else if wanted.cursor() {
            lease.prepared.hold(there, wanted);
        }
        let known = lease.prepared.bound(there, wanted);
        match (kept, &statement.bound) {
            (Some(len), Some(bound)) if !known.is_some_and(|known| Arc::ptr_eq(known, bound) || known.means(bound)) => {
                task.front = self.front_with_types(task.command, len, there, bound);
            }
            (None, Some(bound)) => {
                // One object for all clients that bind the same.
                if let Some(known) = known.filter(|known| known.is_same(bound)).cloned() {
                    self.session.change_statement(id, |statement| statement.bound = Some(known));
                }
            }
            _ => {}
        }
        lease.prepared.bind(there, wanted, None);
        self.put_statement_id(there);
        task.statement = Some(serving);
    }

    /// The execute's front with the types in it that the client has sent before.
    fn front_with_types(&self, command: Command, len: usize, there: u32, bound: &Bound) -> Option<Front> {
        let mut bytes = vec![command.byte()];
        bytes.extend_from_slice(self.argument().get(..len)?);
        let front = bytes.get_mut(1..)?;
        front.get_mut(Execute::ID_AT)?.copy_from_slice(&there.to_le_bytes());
        Execute::announce_types(front, command == Command::StmtBulkExecute);
        bytes.extend_from_slice(&Execute::laid_out(bound.types(), self.speaks_attributes()));
        Some(Front { skip: 1 + len, bytes })
    }

    /// Names the backend's statement in the command at the buffer's front.
    pub(super) fn put_statement_id(&mut self, there: u32) {
        let argument = self.buffer.data_mut().get_mut(HEADER + 1..);
        if let Some(place) = argument.and_then(|argument| argument.get_mut(Execute::ID_AT)) {
            place.copy_from_slice(&there.to_le_bytes());
        }
    }

    /// The command was answered: what that means for the statement. True if long data may be left in it that must not
    /// meet another client's execute.
    pub(super) fn served(&mut self, lease: &mut Lease<Server>, command: Command, serving: &Serving) -> bool {
        let &Serving { id, there, ref wanted, decided } = serving;
        let Some(statement) = self.session.statement(id).cloned() else { return false };
        let begun = self.error != 0 && !NOT_BEGUN.contains(&self.error);
        let executes = matches!(command, Command::StmtExecute | Command::StmtBulkExecute);
        if executes && statement.long_data && begun {
            return true;
        }
        let saw = self.session.saw_cursor();
        let (mut long_data, mut cursor) = (statement.long_data, statement.cursor);
        match command {
            Command::StmtExecute | Command::StmtBulkExecute => {
                let bound = statement.bound.clone().filter(|_| self.error == 0);
                lease.prepared.bind(there, wanted, bound);
                cursor = self.error == 0 && saw == Some(true);
                long_data &= self.error != 0;
            }
            Command::StmtFetch => cursor &= saw != Some(false),
            Command::StmtReset if self.error == 0 => (long_data, cursor) = (false, false),
            Command::StmtSendLongData => long_data = true,
            _ => {}
        }
        if decided && statement.held.is_none() {
            lease.prepared.hold(there, wanted);
        }
        let keeps = statement.private || decided || long_data || cursor;
        self.session.change_statement(id, |statement| {
            statement.private |= decided;
            (statement.long_data, statement.cursor) = (long_data, cursor);
            statement.held = keeps.then_some(there);
        });
        if !keeps {
            lease.prepared.release(there);
        }
        false
    }

    /// Has the backend drop what is left of long data after an execute that failed. False if it is lost.
    pub(super) async fn clean(&mut self, lease: &mut Lease<Server>, task: &Task) -> bool {
        let Some(serving) = &task.statement else { return true };
        if lease.command(Command::StmtReset, &serving.there.to_le_bytes()).await.is_err() {
            return false;
        }
        self.session.observe_cleaned();
        self.session.change_statement(serving.id, |statement| statement.long_data = false);
        self.served(lease, task.command, serving);
        true
    }
}
