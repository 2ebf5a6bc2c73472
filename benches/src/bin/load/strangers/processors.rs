use std::fs;
use std::time::Instant;

use bsv_tests::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How much processor time the server and this process use.
pub(super) struct Processors {
    programs: [String; 2],
    begun: Instant,
    before: [f64; 2],
}

impl Processors {
    pub(super) fn begin(server: &Server) -> Self {
        let programs = [format!("/proc/{}/stat", server.id()), "/proc/self/stat".to_owned()];
        let before = programs.each_ref().map(|program| seconds(program));
        Self { programs, begun: Instant::now(), before }
    }

    /// How many processors the server and this process have used on average since the beginning.
    pub(super) fn used(&self) -> [f64; 2] {
        let elapsed = self.begun.elapsed().as_secs_f64();
        [0, 1].map(|which| (seconds(&self.programs[which]) - self.before[which]) / elapsed)
    }
}

/// The processor time of a program until now. The kernel counts it in hundredths of a second.
fn seconds(program: &str) -> f64 {
    let stat = fs::read_to_string(program).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    let ticks = after_name.split(' ').skip(11).take(2).map(|it| it.parse::<f64>().unwrap());
    ticks.sum::<f64>() / 100.0
}

/// Raises the limit of open files, and thereby of connections, for this process and the server that
/// it starts.
pub(super) fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
