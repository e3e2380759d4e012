//! MariaDB's query cache, which is not used for sessions whose transactions are tracked: and what that tracker is needed for.

use std::sync::Arc;

use crate::support::{Kind, Setup, Twin, on_both, one_backend};

/// Switches the cache on, or off again, in front of the proxy and so that it notices. None on MySQL, which has none.
async fn set_cache(t: &Arc<Setup>, on: bool) {
    let login = crate::support::Login { schema: None, ..crate::support::Login::admin() };
    let mut admin = t.client_as(&login).await;
    let (kind, size) = if on { ("ON", 1_000_000) } else { ("OFF", 1_048_576) };
    admin.query(&format!("SET GLOBAL query_cache_type = {kind}")).await.expect_ok();
    admin.query(&format!("SET GLOBAL query_cache_size = {size}")).await.expect_ok();
}

on_both!(apart results_come_from_the_cache, one_backend, |t| async move {
    if t.kind == Kind::MySql {
        return;
    }
    let mut master = t.master().await;
    set_cache(&t, true).await;
    let mut twin = Twin::new(&t, &t.app()).await;
    twin.query("CREATE TABLE c (n INT, s VARCHAR(9)) ENGINE = InnoDB").await;
    twin.query("INSERT INTO c VALUES (1, 'x'), (2, 'y')").await;
    let hits = async |master: &mut crate::support::Wire| -> u32 {
        let rows = master.query("SHOW GLOBAL STATUS LIKE 'Qcache_hits'").await.rows();
        rows[0][1].as_ref().unwrap().parse().unwrap()
    };
    twin.query("SELECT n FROM c").await;
    let before = hits(&mut master).await;
    for _ in 0..3 {
        twin.query("SELECT n FROM c").await;
    }
    // Both the proxied one and its private twin.
    assert_eq!(hits(&mut master).await - before, 6);
    let id = twin.prepare("SELECT s FROM c WHERE n = 1").await;
    twin.execute(id, &[]).await;
    let before = hits(&mut master).await;
    twin.execute(id, &[]).await;
    assert_eq!(hits(&mut master).await - before, 2);
    // What a SELECT leaves outlives the tracker's switching.
    twin.query("SELECT CAST(s AS SIGNED) FROM c").await;
    twin.query("SHOW WARNINGS").await;
    twin.query_and_keep("SELECT CAST(s AS SIGNED) FROM c").await;
    twin.query_and_keep("SHOW WARNINGS").await;
    twin.query_and_keep("SELECT CAST(s AS SIGNED) FROM c").await;
    twin.query("SET @count = @@warning_count, @rows = ROW_COUNT()").await;
    twin.query("SELECT @count, @rows").await;
    // And what the tracker is for is still seen.
    for (begin, pin, end) in [
        ("LOCK TABLES c READ", "locks", "UNLOCK TABLES"),
        // (What comes from the cache begins no transaction.)
        ("SET TRANSACTION READ ONLY", "one_shot_transaction", "SELECT SQL_NO_CACHE n FROM c"),
    ] {
        twin.query("SELECT n FROM c").await;
        twin.query_and_keep(begin).await;
        t.until("myriad_pins_total", Some(pin), 1.0).await;
        twin.query(end).await;
    }
    twin.query("SELECT n FROM c").await;
    twin.query_and_keep("BEGIN").await;
    twin.query_and_keep("SELECT n FROM c").await;
    twin.query_and_keep("INSERT INTO c VALUES (3, 'z')").await;
    twin.query("COMMIT").await;
    twin.query("SELECT n FROM c").await;
    // A client that wants to hear of transactions does.
    twin.query("SET session_track_transaction_info = 'STATE'").await;
    twin.query("SELECT n FROM c").await;
    drop(twin);
    set_cache(&t, false).await;
});
