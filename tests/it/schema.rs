//! The default schema: with one, without one, and when it is gone.

use myriad::config::Config;
use myriad::protocol::capability::CapabilityFlags;

use crate::support::{Setup, on_both};

fn one_backend(config: &mut Config) {
    config.pool.max_connections = 1;
}

/// As many backends as this were opened, and none was closed for it.
fn assert_opened(t: &Setup, backends: f64) {
    assert_eq!(t.metric("myriad_backend_opens_total", Some("ok")), backends);
}

on_both!(a_backend_that_was_reset_is_of_its_class_still, one_backend, |t| async move {
    let flags = CapabilityFlags::CLIENT_IGNORE_SPACE;
    let mut client = t.client_as(&t.app().with(flags)).await;
    client.query("SET @pinned=1").await.expect_ok();
    drop(client);
    t.until("myriad_resets_total", None, 1.0).await;
    let mut client = t.client_as(&t.app().with(flags)).await;
    assert_eq!(client.one("SELECT FIND_IN_SET('IGNORE_SPACE', @@sql_mode) > 0").await, "1");
    assert_opened(&t, 1.0);
});
