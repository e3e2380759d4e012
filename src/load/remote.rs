//! A run in a child process: its memory, descriptors and threads are then its own, and what is measured is the proxy.
//!
//! Parent and child talk over the child's standard input and output. Each message is four bytes of length (big-endian)
//! and a TOML document. The child ends when its input does, so it never outlives the parent.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::fleet::Fleet;
use super::plan::Plan;
use super::report::{Report, Snapshot};

/// The hidden command of the program that runs [`worker`].
pub const WORKER: &str = "load-worker";
/// The longest message; a report is far below.
const LONGEST_MESSAGE: usize = 1 << 20;

/// A run in another process, as its parent sees it. Dropping it ends the process.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    input: pipe::Sender,
    output: pipe::Receiver,
    connected: usize,
}

/// Why a run in another process did not work.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The process could not be started.
    #[error("could not start the load generator's process: {0}")]
    Start(#[source] io::Error),
    /// The conversation broke off.
    #[error("the load generator's process ended early: {0}")]
    Ended(#[source] io::Error),
    /// A message that is none.
    #[error("the load generator's process was not understood: {0}")]
    Garbled(String),
    /// The child did not like the plan.
    #[error("{0}")]
    Refused(String),
}

/// What the parent says.
#[derive(Serialize, Deserialize)]
enum Order {
    Connect(Box<Plan>),
    Drive {},
}

/// What the child says.
#[derive(Serialize, Deserialize)]
enum Answer {
    Progress(Snapshot),
    Connected(Snapshot),
    Done(Box<Report>),
    Refused { reason: String },
}

impl Remote {
    /// This program again, as the load generator.
    ///
    /// # Errors
    /// If the system does not know where it is.
    pub fn this_program() -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORKER);
        Ok(command)
    }

    /// Starts `command`, which must end up in [`worker`], and has it connect the clients of `plan`.
    ///
    /// # Errors
    /// If the process cannot be started, or the plan makes no sense.
    pub async fn connect(mut command: Command, plan: Plan, progress: impl Fn(&Snapshot)) -> Result<Self, RemoteError> {
        // In a group of its own: Ctrl-C is for the parent, which then ends the child.
        command.process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(RemoteError::Start)?;
        let pipes = take_pipes(&mut child);
        // From here on the guard ends the process whatever happens.
        let (input, output) = match pipes {
            Ok(pipes) => pipes,
            Err(error) => {
                end(&mut child);
                return Err(RemoteError::Start(error));
            }
        };
        let mut remote = Self { child, input, output, connected: 0 };
        send(&mut remote.input, &Order::Connect(Box::new(plan))).await?;
        loop {
            match receive(&mut remote.output).await? {
                Answer::Progress(snapshot) => progress(&snapshot),
                Answer::Connected(snapshot) => {
                    progress(&snapshot);
                    remote.connected = snapshot.connected;
                    return Ok(remote);
                }
                Answer::Refused { reason } => return Err(RemoteError::Refused(reason)),
                Answer::Done(_) => return Err(RemoteError::Garbled("a report before the run".into())),
            }
        }
    }

    /// How many clients had connected when all had tried.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.connected
    }

    /// Lets the clients ask, as [`Fleet::drive`] does.
    ///
    /// # Errors
    /// If the process ends early.
    pub async fn drive(mut self, progress: impl Fn(&Snapshot)) -> Result<Report, RemoteError> {
        send(&mut self.input, &Order::Drive {}).await?;
        loop {
            match receive(&mut self.output).await? {
                Answer::Progress(snapshot) => progress(&snapshot),
                Answer::Done(report) => return Ok(*report),
                Answer::Connected(_) => return Err(RemoteError::Garbled("connected twice".into())),
                Answer::Refused { reason } => return Err(RemoteError::Refused(reason)),
            }
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself; then there is nothing to do but to collect it.
    let _ = child.kill();
    let _ = child.wait();
}

fn take_pipes(child: &mut Child) -> io::Result<(pipe::Sender, pipe::Receiver)> {
    let missing = || io::Error::other("no pipe to the process");
    let input = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
    let output = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
    Ok((pipe::Sender::from_owned_fd(input)?, pipe::Receiver::from_owned_fd(output)?))
}

/// The child's side, on standard input and output: what the hidden command [`WORKER`] runs.
///
/// # Errors
/// If the parent is gone or is not understood.
pub async fn worker() -> Result<(), RemoteError> {
    let input = io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
    let output = io::stdout().as_fd().try_clone_to_owned().and_then(pipe::Sender::from_owned_fd);
    serve(input.map_err(RemoteError::Start)?, output.map_err(RemoteError::Start)?).await
}

/// Takes orders from `input` and answers on `output` until the run is done or the input ends.
async fn serve(mut input: impl AsyncRead + Unpin, mut output: impl AsyncWrite + Unpin) -> Result<(), RemoteError> {
    let Order::Connect(plan) = receive(&mut input).await? else {
        return Err(RemoteError::Garbled("an order to drive before one to connect".into()));
    };
    let (tell, mut news) = watch::channel(Snapshot::default());
    let progress = |snapshot: &Snapshot| {
        tell.send_replace(*snapshot);
    };
    let connecting = Fleet::connect(*plan, progress);
    let fleet = match telling(connecting, &mut news, &mut output).await? {
        Ok(fleet) => fleet,
        Err(error) => return send(&mut output, &Answer::Refused { reason: error.to_string() }).await,
    };
    let all = *news.borrow_and_update();
    send(&mut output, &Answer::Connected(all)).await?;
    let Order::Drive {} = receive(&mut input).await? else {
        return Err(RemoteError::Garbled("an order to connect again".into()));
    };
    let report = telling(fleet.drive(progress), &mut news, &mut output).await?;
    send(&mut output, &Answer::Done(Box::new(report))).await
}

/// Waits for `work` and passes news on meanwhile. A parent that is gone is noticed by the failing write.
async fn telling<T>(
    work: impl Future<Output = T>,
    news: &mut watch::Receiver<Snapshot>,
    output: &mut (impl AsyncWrite + Unpin),
) -> Result<T, RemoteError> {
    let mut work = std::pin::pin!(work);
    loop {
        let snapshot = tokio::select! {
            done = &mut work => return Ok(done),
            Ok(()) = news.changed() => *news.borrow_and_update(),
        };
        send(output, &Answer::Progress(snapshot)).await?;
    }
}

async fn send(output: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> Result<(), RemoteError> {
    let body = toml::to_string(message).map_err(|error| RemoteError::Garbled(error.to_string()))?;
    let length = u32::try_from(body.len()).map_err(|error| RemoteError::Garbled(error.to_string()))?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(body.as_bytes());
    output.write_all(&bytes).await.map_err(RemoteError::Ended)?;
    output.flush().await.map_err(RemoteError::Ended)
}

async fn receive<T: DeserializeOwned>(input: &mut (impl AsyncRead + Unpin)) -> Result<T, RemoteError> {
    let length = usize::try_from(input.read_u32().await.map_err(RemoteError::Ended)?).unwrap_or(usize::MAX);
    if length > LONGEST_MESSAGE {
        return Err(RemoteError::Garbled(format!("a message of {length} bytes")));
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).await.map_err(RemoteError::Ended)?;
    let text = str::from_utf8(&body).map_err(|error| RemoteError::Garbled(error.to_string()))?;
    toml::from_str(text).map_err(|error| RemoteError::Garbled(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;
    use crate::load::{ErrorCount, FailureKind};

    /// A port that is taken, and on which nobody listens.
    fn deaf_port() -> (tokio::net::TcpSocket, SocketAddr) {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    fn plan(target: SocketAddr, clients: usize) -> Plan {
        Plan { clients, duration: Duration::from_millis(10), ..Plan::single(target, "u", "p", None) }
    }

    #[tokio::test]
    async fn a_run_is_told_to_the_parent() {
        let (mut parent, child) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(child);
        let child = tokio::spawn(serve(input, output));
        let (_taken, target) = deaf_port();
        send(&mut parent, &Order::Connect(Box::new(plan(target, 3)))).await.unwrap();
        loop {
            match receive(&mut parent).await.unwrap() {
                Answer::Progress(_) => {}
                Answer::Connected(snapshot) => {
                    assert_eq!((snapshot.connected, snapshot.errors), (0, 3));
                    break;
                }
                Answer::Done(_) | Answer::Refused { .. } => panic!("not yet"),
            }
        }
        send(&mut parent, &Order::Drive {}).await.unwrap();
        let report = loop {
            match receive(&mut parent).await.unwrap() {
                Answer::Progress(_) => {}
                Answer::Done(report) => break report,
                Answer::Connected(_) | Answer::Refused { .. } => panic!("not again"),
            }
        };
        assert_eq!((report.errors[0].kind, report.errors[0].count), (FailureKind::Connect, 3));
        child.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_bad_plan_is_refused_in_words() {
        let (mut parent, child) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(child);
        let child = tokio::spawn(serve(input, output));
        let (_taken, target) = deaf_port();
        send(&mut parent, &Order::Connect(Box::new(plan(target, 0)))).await.unwrap();
        let Answer::Refused { reason } = receive(&mut parent).await.unwrap() else { panic!("no refusal") };
        assert!(reason.contains("at least one client"), "{reason}");
        child.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_child_ends_with_its_parent() {
        let (parent, child) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(child);
        let child = tokio::spawn(serve(input, output));
        drop(parent);
        assert!(matches!(child.await.unwrap(), Err(RemoteError::Ended(_))));
    }

    #[tokio::test]
    async fn messages_survive_whatever_they_hold() {
        let first = "quotes \" ' \"\"\" and\nlines\n.\n".to_owned();
        let errors = vec![ErrorCount { kind: FailureKind::Server(1064), count: u32::MAX.into(), first }];
        let report = Report { errors, rate: 0.5, ..Report::default() };
        let mut bytes = Vec::new();
        send(&mut bytes, &Answer::Done(Box::new(report.clone()))).await.unwrap();
        let Answer::Done(back) = receive(&mut bytes.as_slice()).await.unwrap() else { panic!("another answer") };
        assert_eq!(*back, report);
        let huge = [0xFF; 8];
        assert!(matches!(receive::<Answer>(&mut huge.as_slice()).await, Err(RemoteError::Garbled(_))));
    }

    #[tokio::test]
    async fn a_program_that_is_no_load_generator_is_an_error() {
        let (_taken, target) = deaf_port();
        let error = Remote::connect(Command::new("/bin/true"), plan(target, 1), |_| ()).await.unwrap_err();
        assert!(matches!(error, RemoteError::Ended(_)), "{error}");
        let error = Remote::connect(Command::new("/nonexistent"), plan(target, 1), |_| ()).await.unwrap_err();
        assert!(matches!(error, RemoteError::Start(_)), "{error}");
    }
}
