use std::fs;
use std::io;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::exposition::{Exposition, Number};

/// The operating system's data on this process (proc(5)).
#[derive(Debug)]
struct Process {
    /// Processor time, in seconds.
    cpu: f64,
    /// When it was started, in seconds since 1970.
    started_at: f64,
    /// Virtual memory, in bytes.
    virtual_memory: u64,
    /// Resident memory, in bytes.
    resident_memory: u64,
    open_files: u64,
}

/// Writes the usual metrics of a process, if the operating system provides them.
pub(super) fn write(exposition: &mut Exposition) {
    let Ok(process) = Process::look() else { return };
    let cpu = "Processor time that the process has used, in seconds.";
    exposition.counter("process_cpu_seconds_total", cpu).add(&[], Number::Real(process.cpu));
    let mut gauge = |name, help, value| exposition.gauge(name, help).add(&[], value);
    gauge(
        "process_start_time_seconds",
        "When the process was started, in seconds since 1970.",
        Number::Real(process.started_at),
    );
    gauge(
        "process_virtual_memory_bytes",
        "Virtual memory of the process, in bytes.",
        Number::Whole(process.virtual_memory),
    );
    gauge(
        "process_resident_memory_bytes",
        "Resident memory of the process, in bytes.",
        Number::Whole(process.resident_memory),
    );
    gauge(
        "process_open_fds",
        "Files and connections that the process has open.",
        Number::Whole(process.open_files),
    );
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        let help = "Limit on the open files and connections of the process.";
        gauge("process_max_fds", help, Number::Whole(limit));
    }
}

impl Process {
    fn look() -> io::Result<Self> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let stat = fs::read_to_string("/proc/self/stat")?;
        // The name of the program, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(") ").ok_or_else(malformed)?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        // Fields are numbered from 1. Two fields precede these.
        let field = |number: usize| {
            fields.get(number - 3).and_then(|text| text.parse::<u64>().ok()).ok_or_else(malformed)
        };
        let system = fs::read_to_string("/proc/stat")?;
        let booted_at = system.lines().find_map(|line| line.strip_prefix("btime "));
        let booted_at: f64 = booted_at.and_then(|it| it.parse().ok()).ok_or_else(malformed)?;
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        Ok(Self {
            cpu: seconds(field(14)? + field(15)?),
            started_at: booted_at + seconds(field(22)?),
            virtual_memory: field(23)?,
            resident_memory: field(24)? * page_size() as u64,
            // Without the descriptor that reading the directory takes.
            open_files: (fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1),
        })
    }
}
