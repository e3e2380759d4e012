//! What a session leaves on the backend that it used last, to be fetched by whoever takes that backend over.

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Backend, QueryError};
use crate::session::{self, Ask};

/// Questions that must be asked before a backend changes hands, and their answers for the session that owes them.
///
/// The session holds one end, the backend the other. If the session comes back first, nothing needs to be asked.
#[derive(Debug)]
pub struct Loan {
    /// The session that owes the answers.
    pub owner: u64,
    questions: Vec<Ask>,
    answers: Mutex<Answers>,
    settled: Notify,
}

/// A question with its answer; none if it could not be had.
pub type Answer = (Ask, Option<session::Rows>);

#[derive(Debug)]
enum Answers {
    /// Nobody has taken the backend over yet, or somebody is asking just now.
    Open,
    /// Everything was asked that could be.
    Settled(Vec<Answer>),
}

impl Loan {
    /// A loan of these questions to a session with this number.
    #[must_use]
    pub fn new(owner: u64, questions: Vec<Ask>) -> Self {
        Self { owner, questions, answers: Mutex::new(Answers::Open), settled: Notify::new() }
    }

    /// Whether an answer may bind the session to the backend.
    #[must_use]
    pub fn may_bind(&self) -> bool {
        self.questions.iter().any(Ask::may_bind)
    }

    /// Asks everything, on the backend that the session used last. The session learns of it when the settlement is
    /// dropped.
    ///
    /// # Errors
    /// If the connection is lost; the answers that are missing are then known to be missing.
    pub async fn settle(&self, backend: &mut Backend) -> Result<Settlement<'_>, QueryError> {
        let mut settlement = Settlement { loan: self, answers: Vec::new(), binds: false };
        for question in &self.questions {
            let answer = backend.ask(question).await?;
            settlement.binds |= answer.as_ref().is_some_and(|rows| question.binds(rows));
            if let (Ask::Variables(_), Some(rows)) = (question, &answer) {
                backend.state.last_insert_id = last_insert_id(rows);
            }
            // MySQL warns of the function.
            backend.state.warned |= *question == Ask::FoundRows;
            settlement.answers.push((question.clone(), answer));
        }
        Ok(settlement)
    }

    /// The answers, once somebody has taken the backend over; none of them if it was closed without being asked.
    ///
    /// `held` tells whether the backend still exists, which is then about to be asked by whoever took it.
    pub async fn answers(&self, held: impl Fn() -> bool) -> Vec<Answer> {
        loop {
            let settled = self.settled.notified();
            if let Answers::Settled(answers) = &*self.answers.lock() {
                return answers.clone();
            }
            if !held() {
                return self.missing(0);
            }
            // Whoever asks is bounded by its own backend; should it vanish, its settlement says so.
            let _ = tokio::time::timeout(std::time::Duration::from_millis(100), settled).await;
        }
    }

    fn missing(&self, from: usize) -> Vec<Answer> {
        self.questions.iter().skip(from).map(|question| (question.clone(), None)).collect()
    }
}

/// The only variable that a loan asks for; 0 where the answer makes no sense, which no session is promised.
fn last_insert_id(rows: &session::Rows) -> u64 {
    let field = rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
    field.and_then(|text| str::from_utf8(text).ok()).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Asking in progress: however it ends, the session learns what there is.
#[derive(Debug)]
pub struct Settlement<'a> {
    loan: &'a Loan,
    answers: Vec<Answer>,
    binds: bool,
}

impl Settlement<'_> {
    /// Whether the session cannot keep what was answered: the backend must stay its own.
    #[must_use]
    pub fn binds(&self) -> bool {
        self.binds
    }
}

impl Drop for Settlement<'_> {
    fn drop(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(self.loan.missing(answers.len()));
        *self.loan.answers.lock() = Answers::Settled(answers);
        self.loan.settled.notify_waiters();
    }
}
