//! Logging in: who may, who may not, in which words, and how it is counted.

mod change_user;
mod greeting;
mod passthrough;
mod strangers;
mod tls;
mod users;

use myriad::protocol::handshake::LoginError;

use crate::support::{Login, Setup, Wire};

/// What became of a login, with the error packet's content if it was refused.
async fn outcome(address: std::net::SocketAddr, login: &Login) -> Result<(), LoginError> {
    Wire::connect(address, login).await.map(drop)
}

/// A login ends at the proxy as it ends at the server.
async fn ends_as_directly(t: &Setup, login: &Login) -> Result<(), LoginError> {
    let proxied = outcome(t.address, login).await;
    assert_eq!(proxied, outcome(t.server, login).await, "{} with {:?}", login.user, login.password);
    proxied
}

/// The code and the words of a refusal.
fn refusal(outcome: Result<(), LoginError>) -> (u16, String) {
    match outcome {
        Err(LoginError::Server { code, message, .. }) => (code, message),
        other => panic!("no refusal by the server: {other:?}"),
    }
}

fn logins(t: &Setup, result: &str) -> f64 {
    t.metric("myriad_client_logins_total", Some(result))
}
