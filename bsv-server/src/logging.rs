//! The log, on standard error.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// Lines for people.
    Text,
    /// A JSON object per line.
    Json,
}

/// Logs to standard error. The environment variable BSV_LOG selects the lines; without it, those of
/// at least `level` are logged.
pub fn log_to_stderr(level: &str, form: LogForm) {
    let asked = std::env::var("BSV_LOG").ok().and_then(|asked| filter(&asked));
    let log = tracing_subscriber::fmt()
        .with_env_filter(asked.or_else(|| filter(level)).unwrap_or_default())
        // A log that cannot be written, for example on a full disk, must not end the process.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    match form {
        LogForm::Text => log.with_ansi(io::stderr().is_terminal()).init(),
        LogForm::Json => log.json().flatten_event(true).init(),
    }
}

/// Parses a filter. A bare level applies to this project's crates; other crates log only warnings.
/// Any other text is a list of targets and levels, such as `warn,bsv_server=debug`.
fn filter(asked: &str) -> Option<EnvFilter> {
    match asked.parse::<LevelFilter>() {
        Ok(level) => {
            let of_others = level.min(LevelFilter::WARN);
            EnvFilter::try_new(format!("{of_others},bsv_={level}")).ok()
        }
        Err(_) => EnvFilter::try_new(asked).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_does_not_count_for_the_crates_of_others() {
        let shown = |asked| filter(asked).map(|filter| filter.to_string());
        let sorted = |text: &str| {
            let mut parts: Vec<_> = text.split(',').map(str::to_owned).collect();
            parts.sort();
            parts
        };
        for (asked, expected) in [
            ("info", "bsv_=info,warn"),
            ("trace", "bsv_=trace,warn"),
            ("error", "bsv_=error,error"),
            ("off", "bsv_=off,off"),
            ("debug,rustls=trace", "debug,rustls=trace"),
        ] {
            assert_eq!(sorted(&shown(asked).unwrap()), sorted(expected), "{asked}");
        }
        assert_eq!(shown("a=b=c"), None);
    }
}
