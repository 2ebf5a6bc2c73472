use std::fmt::Write;
use std::time::Duration;

use bsv_store::{DurationCounts, Durations};
use bytes::Bytes;

use super::format::Format;

/// Metrics as text, in one of two formats.
#[derive(Debug)]
pub(super) struct Exposition {
    format: Format,
    text: String,
}

/// The kind of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A value that only rises until the process ends.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// Counts of durations.
    Histogram,
}

/// The labels that distinguish the samples of a family.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

/// The samples of a metric, which share a name.
#[derive(Debug)]
pub(super) struct Family<'a> {
    name: &'static str,
    text: &'a mut String,
}

/// The samples of a histogram.
#[derive(Debug)]
pub(super) struct Histogram<'a>(Family<'a>);

/// The value of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Whole(u64),
    Real(f64),
}

impl Exposition {
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::with_capacity(32 << 10) }
    }

    /// Begins a counter, whose name ends in `_total`.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, Kind::Counter, help)
    }

    /// Begins a gauge.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, Kind::Gauge, help)
    }

    /// Begins a histogram of seconds, whose name ends in `_seconds`.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> Histogram<'_> {
        Histogram(self.family(name, Kind::Histogram, help))
    }

    fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        // In OpenMetrics, the name of a counter's family lacks the suffix of its samples.
        let family = match (self.format, kind) {
            (Format::OpenMetrics, Kind::Counter) => name.strip_suffix("_total").unwrap_or(name),
            _ => name,
        };
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        push(&mut self.text, format_args!("# HELP {family} {help}\n# TYPE {family} {kind}\n"));
        Family { name, text: &mut self.text }
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> Bytes {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text.into()
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub(super) fn add(&mut self, labels: Labels<'_>, value: impl Into<Number>) {
        self.add_to("", labels, value.into());
    }

    fn add_to(&mut self, suffix: &str, labels: Labels<'_>, value: Number) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (place, (label, value)) in labels.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            push(self.text, format_args!("{label}=\""));
            push_escaped(self.text, value);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        match value {
            Number::Whole(value) => push(self.text, format_args!(" {value}\n")),
            Number::Real(value) => push(self.text, format_args!(" {value}\n")),
        }
    }
}

impl Histogram<'_> {
    /// Adds the samples of a histogram.
    pub(super) fn add(&mut self, labels: Labels<'_>, counts: &DurationCounts) {
        let mut add_bucket = |bound: &str, count| {
            let labels = [labels, &[("le", bound)]].concat();
            self.0.add_to("_bucket", &labels, Number::Whole(count));
        };
        for (bound, count) in Durations::BOUNDS.iter().zip(counts.up_to_bounds()) {
            // Always written with a decimal point, as OpenMetrics requires.
            add_bucket(&format!("{:?}", bound.as_secs_f64()), count);
        }
        add_bucket("+Inf", counts.count());
        self.0.add_to("_sum", labels, counts.sum().into());
        self.0.add_to("_count", labels, counts.count().into());
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<bool> for Number {
    fn from(value: bool) -> Self {
        Self::Whole(value.into())
    }
}

impl From<Duration> for Number {
    fn from(value: Duration) -> Self {
        Self::Real(value.as_secs_f64())
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes everything");
}

fn push_escaped(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format) -> String {
        let mut exposition = Exposition::new(format);
        exposition.counter("a_total", "Things.").add(&[], 3);
        let mut gauge = exposition.gauge("b", "Others.");
        gauge.add(&[("x", "1"), ("y", "a \"b\"\\\n")], Duration::from_millis(1500));
        gauge.add(&[("x", "2"), ("y", "")], true);
        exposition.gauge("nobody", "Nothing.");
        String::from_utf8(exposition.finish().into()).unwrap()
    }

    #[test]
    fn both_formats_are_written() {
        let samples = "a_total 3\n# HELP b Others.\n# TYPE b gauge\n\
                       b{x=\"1\",y=\"a \\\"b\\\"\\\\\\n\"} 1.5\nb{x=\"2\",y=\"\"} 1\n\
                       # HELP nobody Nothing.\n# TYPE nobody gauge\n";
        let text = format!("# HELP a_total Things.\n# TYPE a_total counter\n{samples}");
        let open_metrics = format!("# HELP a Things.\n# TYPE a counter\n{samples}# EOF\n");
        assert_eq!(written(Format::Text), text);
        assert_eq!(written(Format::OpenMetrics), open_metrics);
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let durations = Durations::default();
        durations.note(Duration::from_millis(3));
        durations.note(Duration::from_secs(11));
        let mut exposition = Exposition::new(Format::OpenMetrics);
        exposition.histogram("h_seconds", "Times.").add(&[("l", "v")], &durations.counts());
        let text = String::from_utf8(exposition.finish().into()).unwrap();
        for line in [
            "h_seconds_bucket{l=\"v\",le=\"0.0001\"} 0\n",
            "h_seconds_bucket{l=\"v\",le=\"0.005\"} 1\n",
            "h_seconds_bucket{l=\"v\",le=\"1.0\"} 1\n",
            "h_seconds_bucket{l=\"v\",le=\"10.0\"} 1\n",
            "h_seconds_bucket{l=\"v\",le=\"+Inf\"} 2\n",
            "h_seconds_sum{l=\"v\"} 11.003\n",
            "h_seconds_count{l=\"v\"} 2\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
