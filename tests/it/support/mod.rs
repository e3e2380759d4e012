//! What every test needs: a server, a proxy in front of it, and clients.

mod gate;
mod packed;
mod setup;
mod twin;
mod wire;

pub(crate) use gate::Gate;
pub(crate) use setup::{Kind, Setup, one_backend, own_backends};
pub(crate) use twin::Twin;
pub(crate) use wire::{Login, Packets, Wire};

/// Defines a test that runs once on each server, with a fresh [`Setup`].
///
/// `on_both!(name, |config| { .. }, |t| async move { .. });` lets the test change the proxy's settings first;
/// `on_both!(apart name, ..)` uses the servers whose global variables it may set.
macro_rules! on_both {
    ($(#[$meta:meta])* $name:ident, $test:expr) => {
        on_both!(@new $(#[$meta])* $name, |_| {}, $test);
    };
    ($(#[$meta:meta])* $name:ident, $configure:expr, $test:expr) => {
        on_both!(@new $(#[$meta])* $name, $configure, $test);
    };
    (apart $(#[$meta:meta])* $name:ident, $configure:expr, $test:expr) => {
        on_both!(@apart $(#[$meta])* $name, $configure, $test);
    };
    (@$new:ident $(#[$meta:meta])* $name:ident, $configure:expr, $test:expr) => {
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports, reason = "not every test uses everything above it")]
            use super::*;

            async fn run(kind: $crate::support::Kind) {
                let Some(setup) = $crate::support::Setup::$new(kind, $configure).await else { return };
                let test: fn(std::sync::Arc<$crate::support::Setup>) -> _ = $test;
                test(std::sync::Arc::clone(&setup)).await;
                setup.finish().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mariadb() {
                run($crate::support::Kind::MariaDb).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mysql() {
                run($crate::support::Kind::MySql).await;
            }
        }
    };
}
pub(crate) use on_both;
