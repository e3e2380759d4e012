//! Questions: what a session must ask the server about itself.

/// The rows of an answer: values as text, `None` for NULL.
pub type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// One question, to be put as a COM_QUERY to the session's own backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The values of these session variables.
    Variables(Vec<Box<str>>),
    /// The list of warnings, which whatever comes next would clear.
    Warnings,
}

impl Ask {
    /// The statement to send.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Warnings => "SHOW WARNINGS".into(),
            Self::Variables(names) => {
                format!("SELECT {}", names.iter().map(|n| format!("@@{n}")).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// What the end of a turn calls for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followup {
    /// Nothing: let go of the backend, if nothing pins.
    None,
    /// Put this question, hand the answer to `Session::answer`, then call `Session::end` again.
    Ask(Ask),
}
