//! The metrics that a listener shows at `/metrics`.

use crate::http::Client;

/// Metrics of one moment, in the text format.
#[derive(Clone, Debug)]
pub struct Metrics(pub String);

impl Metrics {
    /// The metrics of a listener.
    ///
    /// # Panics
    /// If it does not.
    pub fn of(client: &Client) -> Self {
        let reply = client.get("/metrics");
        assert_eq!(reply.status, 200, "{}", reply.body);
        Self(reply.body)
    }

    /// The value of a sample, with its labels as they are written, such as `a_total{b="c"}`.
    pub fn get(&self, sample: &str) -> Option<f64> {
        let mut lines = self.0.lines().filter_map(|line| line.rsplit_once(' '));
        lines.find(|(name, _)| *name == sample).map(|(_, value)| value.parse().unwrap())
    }

    /// The value of a sample that must be there.
    ///
    /// # Panics
    /// If it is not.
    pub fn value(&self, sample: &str) -> f64 {
        self.get(sample).unwrap_or_else(|| panic!("there is no {sample} in\n{}", self.0))
    }

    /// How much a sample has grown. A missing sample counts as 0.
    pub fn since(&self, before: &Self, sample: &str) -> f64 {
        self.value(sample) - before.get(sample).unwrap_or(0.0)
    }

    /// The names of all metrics and their types.
    pub fn types(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.0.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        lines.map(|line| line.split_once(' ').expect("a type follows the name"))
    }
}
