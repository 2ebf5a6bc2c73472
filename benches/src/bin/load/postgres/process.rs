use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::{PostgresOptions, PostgresWalletStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use super::work::{Done, Order, Work, fulfil};

/// How many callers a process has.
pub(super) const CALLERS: u64 = 64;
/// How many callers prepare invoices.
const PREPARING: u64 = 512;
const PREPARATION: Duration = Duration::from_millis(250);

/// A process that uses a store of a wallet, among others. It ends when this value is dropped.
pub(super) struct Process {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a process that has opened the store.
    pub(super) fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["store", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, answers };
        assert_eq!(process.hear::<String>(), "open");
        process
    }

    /// Has callers work, and answers how often per second.
    pub(super) fn rate(&mut self, work: Work, callers: u64, duration: Duration) -> f64 {
        rate_of_all([self], |_| Order { work, callers, duration })
    }

    /// Creates invoices while nobody else does, and answers the number of the first of so many.
    pub(super) fn prepare(&mut self, count: u64) -> u64 {
        let (mut made, mut last) = (0, 0);
        while made < count {
            let order = Order { work: Work::Create, callers: PREPARING, duration: PREPARATION };
            self.tell(&order);
            let done: Done = self.hear();
            made += done.count;
            last = done.last_invoice;
        }
        last + 1 - count
    }

    fn tell(&mut self, order: &Order) {
        let mut line = serde_json::to_string(order).unwrap();
        line.push('\n');
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn hear<T: DeserializeOwned>(&mut self) -> T {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// Has processes work at the same time, each as it is ordered, and answers how often per second all of them together
/// did.
pub(super) fn rate_of_all<const N: usize>(
    processes: [&mut Process; N],
    order: impl Fn(u64) -> Order,
) -> f64 {
    let mut processes = processes;
    for (number, process) in (0..).zip(&mut processes) {
        process.tell(&order(number));
    }
    let done = processes.map(Process::hear::<Done>);
    done.iter().map(|done| done.count as f64 / done.elapsed.as_secs_f64()).sum()
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Opens a store, and does what standard input orders until that ends.
pub(crate) fn work_for_parent(url: &str) {
    let options = PostgresOptions::from_url(url).unwrap();
    let store = Arc::new(PostgresWalletStore::open(options).unwrap());
    let runtime = Runtime::new().unwrap();
    answer(&"open");
    for line in std::io::stdin().lines() {
        let order = serde_json::from_str(&line.unwrap()).unwrap();
        answer(&runtime.block_on(fulfil(&store, order)));
    }
}

fn answer(answer: &impl Serialize) {
    println!("{}", serde_json::to_string(answer).unwrap());
}
