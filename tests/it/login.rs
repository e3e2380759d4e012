//! Logging in: who may, who may not, and in which words.

use crate::support::{Login, on_both};

on_both!(the_right_password_gets_in_and_the_wrong_one_does_not, async |t| {
    let mut client = t.client().await;
    assert_eq!(client.one("SELECT 1").await, "1");
});
