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
    /// A loan of these questions.
    #[must_use]
    pub fn new(questions: Vec<Ask>) -> Self {
        Self { questions, answers: Mutex::new(Answers::Open), settled: Notify::new() }
    }

    /// Asks everything, on the backend that the session used last.
    ///
    /// # Errors
    /// If the connection is lost; the answers that are missing are then known to be missing.
    pub async fn settle(&self, backend: &mut Backend) -> Result<(), QueryError> {
        let mut settlement = Settlement { loan: self, answers: Vec::new() };
        for question in &self.questions {
            let answer = match backend.ask(question).await {
                Ok(rows) => Some(rows.decode()),
                Err(QueryError::Refused { .. }) => None,
                Err(error) => return Err(error),
            };
            if let (Ask::Variables(_), Some(rows)) = (question, &answer) {
                backend.state.last_insert_id = last_insert_id(rows);
            }
            // MySQL warns of the function.
            backend.state.warned |= *question == Ask::FoundRows;
            settlement.answers.push((question.clone(), answer));
        }
        Ok(())
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
struct Settlement<'a> {
    loan: &'a Loan,
    answers: Vec<Answer>,
}

impl Drop for Settlement<'_> {
    fn drop(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(self.loan.missing(answers.len()));
        *self.loan.answers.lock() = Answers::Settled(answers);
        self.loan.settled.notify_waiters();
    }
}
