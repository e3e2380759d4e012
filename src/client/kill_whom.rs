//! KILL of an expression, of a query by its number, and of a user.
//!
//! An expression is asked for on the session's own backend: from there on its number is like any other. Only the server
//! knows which queries it runs and whose its other threads are; those that work for a client mean the client. What cannot be
//! asked for goes to the server as it is, which refuses it in its own words.

use super::kill::kill_entry;
use super::killer::{self, Killer};
use super::reply::Fault;
use super::serve::Client;
use super::turn::{Next, Task};
use crate::backend::QueryError;
use crate::protocol::command::Command;
use crate::session::Recall;
use crate::sql::{self, Effects, Flags, Kill, Whom, kill_whom};

/// What a KILL may not contain. The server looks at it before it computes anything.
const REFUSED: Flags = Flags::READS_TABLE.and(Flags::RUNS_UNSEEN).and(Flags::READS_SEQUENCE);

/// ER_NO_SUCH_QUERY
const NO_SUCH_QUERY: u16 = 1957;

impl Client {
    /// KILL of anything but a number.
    pub(super) async fn kill_whom(&mut self, kill: Kill, effects: Effects) -> Next {
        match kill_whom(self.text(), self.session.mode()) {
            Whom::Thread(expression) => match self.number_of(&expression).await {
                Ok(Some(id)) => self.kill_number(kill, id).await,
                Ok(None) => self.turn_of(Task::new(Command::Query, Some(effects))).await,
                Err(next) => next,
            },
            Whom::Query(expression) => match self.number_of(&expression).await {
                Ok(Some(id)) => self.kill_query(kill, id).await,
                Ok(None) => self.turn_of(Task::new(Command::Query, Some(effects))).await,
                Err(next) => next,
            },
            Whom::User { name, host } => {
                let name = name.unwrap_or_else(|| self.guest.user.as_bytes().to_vec());
                self.kill_user(kill, &String::from_utf8_lossy(&name), host.as_deref()).await
            }
            Whom::Unclear => self.answer_fault(&Fault::Unsupported { command: "KILL of a user in this form" }).await,
        }
    }

    /// What an expression is, as a number; none if the server would refuse a KILL of it. The command stays at the buffer's
    /// front.
    async fn number_of(&mut self, expression: &[u8]) -> Result<Option<u64>, Next> {
        let text = [b"SELECT CAST((", expression, b"\n) AS SIGNED)"].concat();
        let effects = sql::effects(&text, self.session.mode());
        if effects.statements != 1 || effects.may(REFUSED) {
            return Ok(None);
        }
        let (mut lease, prefix) = self.restored(Command::Query, Some(&effects)).await?;
        if Box::pin(lease.prepare_way(&prefix)).await.is_err() {
            return Err(self.lost(lease).await);
        }
        if !Box::pin(self.part_from_last(&mut lease, Some(&effects))).await {
            return Err(self.lost(lease).await);
        }
        let text = match self.session.recall(&text, &effects, self.registered.entry.id) {
            Recall::Text(text) => text,
            Recall::Lost(what) => return Err(Box::pin(self.refuse(lease, what)).await),
            _ => text,
        };
        lease.served.begin(self.owner());
        self.registered.entry.runs_on(lease.thread_id);
        self.session.begin(Command::Query, &effects);
        // It may take as long as any query.
        let answer = {
            let mut asking = Box::pin(lease.command(Command::Query, &text));
            self.unless_away(|cx| asking.as_mut().poll(cx)).await
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(away) => {
                let _ = self.registered.entry.runs_nothing().await;
                killer::undertake(&self.door, &self.guest.class, lease);
                return Err(self.left_the_line(away).await);
            }
        };
        let number = match answer {
            Ok(rows) => {
                let field = rows.decode().into_iter().flatten().next().flatten().unwrap_or_default();
                // NULL is nobody's number, and neither is 0.
                let number: i64 = str::from_utf8(&field).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
                Some(number as u64)
            }
            Err(QueryError::Refused { code, .. }) => {
                self.session.observe_err(code);
                None
            }
            Err(_) => return Err(self.lost(lease).await),
        };
        self.moved = false;
        let next = self.after(lease).await;
        if next.is_break() { Err(next) } else { Ok(number) }
    }

    /// `KILL QUERY ID n`
    async fn kill_query(&mut self, kill: Kill, id: u64) -> Next {
        self.consume_command();
        let mut killer = match self.killer().await {
            Ok(killer) => killer,
            Err(next) => return next,
        };
        let killed = self.kill_by_query(&mut killer, kill, id).await;
        match self.killed(killer, killed.map(|()| true), id).await {
            Ok(()) => self.kill_done(0).await,
            Err(next) => next,
        }
    }

    /// While it is aimed at, a client keeps the backend that runs its query.
    async fn kill_by_query(&mut self, killer: &mut Killer, kill: Kill, id: u64) -> Result<(), QueryError> {
        let find = format!("SELECT ID FROM information_schema.PROCESSLIST WHERE QUERY_ID = {id}");
        let thread = numbers(&killer.query(&find).await?.decode()).first().copied();
        let target = thread.and_then(|thread| self.door.registry.find_by_thread(thread));
        let aim = target.and_then(|target| target.aim());
        if aim.is_none() && thread.is_some_and(|thread| self.door.connector.has_thread(thread)) {
            let message = format!("Unknown query id: {id}");
            return Err(QueryError::Refused { code: NO_SUCH_QUERY, state: *b"HY000", message });
        }
        let how = if kill.soft { "SOFT " } else { "" };
        killer.query(&format!("KILL {how}QUERY ID {id}")).await.map(|_| ())
    }

    /// `KILL USER name[@host]`: every client of that name, and the server's other threads of that user.
    async fn kill_user(&mut self, kill: Kill, name: &str, host: Option<&[u8]>) -> Next {
        self.consume_command();
        let mut killer = match self.killer().await {
            Ok(killer) => killer,
            Err(next) => return next,
        };
        let hit = self.kill_all_of(&mut killer, kill, name, host).await;
        let (hit, killed) = match hit {
            Ok(hit) => (hit, Ok(true)),
            Err(error) => (0, Err(error)),
        };
        match self.killed(killer, killed, 0).await {
            Ok(()) => self.kill_done(hit).await,
            Err(next) => next,
        }
    }

    /// How many were hit: those that this account may not kill are left alone.
    async fn kill_all_of(
        &mut self,
        killer: &mut Killer,
        kill: Kill,
        name: &str,
        host: Option<&[u8]>,
    ) -> Result<u64, QueryError> {
        // Who logs in at the server by another name is known there by that one.
        let own = *name == *self.guest.user || name == self.guest.class.account.user;
        if !own && !killer.may_kill_others().await? {
            return Ok(0);
        }
        let client = if own { &*self.guest.user } else { name };
        let mut hit = 0;
        // To the server all clients come from where the proxy is.
        let from = killer.query("SELECT SUBSTRING_INDEX(USER(), '@', -1)").await?.decode();
        let from = from.into_iter().flatten().next().flatten();
        if host.is_none() || host == from.as_deref() {
            for target in self.door.registry.of_user(client) {
                kill_entry(killer, &target, kill).await?;
                hit += 1;
            }
        }
        for thread in self.others_of(killer, name, host).await? {
            match killer.kill(thread, kill).await {
                Ok(()) => hit += 1,
                Err(QueryError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(hit)
    }

    /// The server's threads of a user that are not the proxy's.
    async fn others_of(&self, killer: &mut Killer, name: &str, host: Option<&[u8]>) -> Result<Vec<u32>, QueryError> {
        let mut find =
            format!("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = {}", literal(name.as_bytes()));
        if let Some(host) = host {
            find.push_str(&format!(" AND SUBSTRING_INDEX(HOST, ':', 1) = {}", literal(host)));
        }
        let mut threads = numbers(&killer.query(&find).await?.decode());
        threads.retain(|thread| !self.door.connector.has_thread(*thread));
        Ok(threads)
    }
}

/// A column of numbers.
fn numbers(rows: &crate::session::Rows) -> Vec<u32> {
    let number = |row: &Vec<Option<Vec<u8>>>| str::from_utf8(row.first()?.as_deref()?).ok()?.parse().ok();
    rows.iter().filter_map(number).collect()
}

/// A string that means the same whatever the session's modes and character set are.
fn literal(text: &[u8]) -> String {
    let hex: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(X'{hex}' USING utf8mb4)")
}
