//! Logging in: who may, who may not, and in which words.

use myriad::protocol::handshake::LoginError;

use crate::support::{Login, Wire, on_both};

on_both!(the_right_password_gets_in_and_the_wrong_one_does_not, |t| async move {
    let mut client = t.client().await;
    assert_eq!(client.one("SELECT 1").await, "1");
    for (user, password) in [("app", "wrong"), ("nobody", "app-secret")] {
        let login = Login { user, password, ..t.app() };
        let Err(LoginError::Server { code, message, .. }) = Wire::connect(t.address, &login).await else {
            panic!("{user} got in");
        };
        let wanted = format!("Access denied for user '{user}'@'127.0.0.1' (using password: YES)");
        assert_eq!((code, message), (1045, wanted));
    }
});
