//! Log lines on standard error: for people or for machines.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

use crate::config::{Log, LogFormat};

/// Starts logging for the whole process. A second call changes nothing.
pub fn start(log: &Log) {
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // Somebody who embeds the library may have a subscriber already; then it is theirs.
    let _ = tracing::subscriber::set_global_default(subscriber(log, io::stderr, color));
}

fn subscriber<W>(log: &Log, writer: W, color: bool) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = match log.format {
        LogFormat::Text => fmt::layer().with_writer(writer).with_ansi(color).boxed(),
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_writer(writer)
            .boxed(),
    };
    Registry::default().with(layer.with_filter(levels(&log.level)))
}

/// The levels of the configuration, which has checked them.
fn levels(directives: &str) -> Targets {
    directives.parse().unwrap_or_else(|_| Targets::new().with_default(tracing::Level::INFO))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, level: &str) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = Log { format, level: level.into(), connections: true };
        tracing::subscriber::with_default(subscriber(&log, move || writer.clone(), false), || {
            tracing::info!(client = 7, "hello");
            tracing::debug!(target: "myriad::pool", "details");
            tracing::debug!(target: "myriad::relay", "more details");
        });
        let bytes = lines.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_is_plain_when_it_is_no_terminal() {
        let text = logged(LogFormat::Text, "info");
        assert!(text.trim_end().ends_with("hello client=7"), "{text}");
        assert!(!text.contains('\x1b') && !text.contains("details"), "{text}");
    }

    #[test]
    fn json_is_one_flat_object_a_line() {
        let text = logged(LogFormat::Json, "info,myriad::pool=debug");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains(r#""message":"hello","client":7"#), "{text}");
        assert!(lines[1].contains(r#""target":"myriad::pool""#), "{text}");
    }

    #[test]
    fn off_is_silent() {
        assert_eq!(logged(LogFormat::Text, "off"), "");
    }
}
