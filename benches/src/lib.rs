//! What the benchmarks and the load program share.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod job;
mod table;

pub use job::{ALIAS, Job};
pub use table::{Table, verdict};

/// The middle figure, or the mean of the middle two.
///
/// # Panics
/// If there is no figure.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len().is_multiple_of(2) {
        f64::midpoint(figures[middle - 1], figures[middle])
    } else {
        figures[middle]
    }
}
