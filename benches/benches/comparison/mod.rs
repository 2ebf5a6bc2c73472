//! Work in multiples of a bare operation.
//!
//! The machine may be busy with other things. Therefore, every sample of the work is followed by a
//! sample of the bare operation that is equally long, and the median of the samples' ratios counts.

use std::fmt::Debug;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bsv_benches::{Table, median, verdict};
use bsv_tests::build;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode};

/// Measures the work that `add` adds, and prints the table.
pub(crate) fn run(
    group: &str,
    (name, bare): (&str, impl FnMut()),
    add: impl FnOnce(&mut Comparison<'_>),
) {
    let mut criterion = Criterion::default()
        .output_directory(&build::target_dir().join("criterion"))
        .without_plots()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let table = measure(criterion.benchmark_group(group), name, bare, add);
    criterion.final_summary();
    println!("\n{table}");
}

fn measure(
    mut group: BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut bare: impl FnMut(),
    add: impl FnOnce(&mut Comparison<'_>),
) -> Table<6> {
    group.sampling_mode(SamplingMode::Flat);
    let table = Table::new(["", "time", name, "multiple", "at most", ""]);
    let mut comparison = Comparison { group, bare: &mut bare, table };
    add(&mut comparison);
    comparison.table
}

pub(crate) struct Comparison<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    bare: &'a mut dyn FnMut(),
    table: Table<6>,
}

/// Seconds per call.
struct Sample {
    work: f64,
    bare: f64,
}

impl Comparison<'_> {
    /// Measures `work`, which may take as long as `bar` bare operations.
    pub(crate) fn add<T, E: Debug>(
        &mut self,
        name: &str,
        bar: Option<f64>,
        mut work: impl FnMut() -> Result<T, E>,
    ) {
        let mut samples = Vec::new();
        let bare = &mut *self.bare;
        self.group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let started = Instant::now();
                for _ in 0..count {
                    black_box(work().unwrap());
                }
                let spent = started.elapsed();
                let bare = time_of(bare, spent);
                samples.push(Sample { work: spent.as_secs_f64() / count as f64, bare });
                spent
            });
        });
        // A filter on the command line may leave this work out.
        if !samples.is_empty() {
            self.table.row(row(name, bar, &samples));
        }
    }
}

/// Repeats the bare operation for at least `duration`. Answers the seconds that one takes.
fn time_of(bare: &mut dyn FnMut(), duration: Duration) -> f64 {
    let started = Instant::now();
    let mut count = 0;
    loop {
        bare();
        count += 1;
        let spent = started.elapsed();
        if spent >= duration {
            return spent.as_secs_f64() / f64::from(count);
        }
    }
}

fn row(name: &str, bar: Option<f64>, samples: &[Sample]) -> [String; 6] {
    let microseconds = |seconds: f64| format!("{:.2} us", seconds * 1e6);
    let multiple = median(samples.iter().map(|sample| sample.work / sample.bare));
    [
        name.to_owned(),
        microseconds(median(samples.iter().map(|sample| sample.work))),
        microseconds(median(samples.iter().map(|sample| sample.bare))),
        format!("{multiple:.4}"),
        bar.map(|bar| format!("{bar:.4}")).unwrap_or_default(),
        bar.map(|bar| verdict(multiple <= bar)).unwrap_or_default(),
    ]
}
