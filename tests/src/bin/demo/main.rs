//! The demonstration: a real Bitcoin SV node on a private network, a shop's invoice with its payment
//! page, a webhook, and blocks that carry a miner identity. It stays until it is interrupted, and
//! goes on where it was when it is started again.

#![allow(clippy::unwrap_used, reason = "what fails here fails the demonstration")]

mod chain;
mod programs;
mod webhooks;

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bsv_tests::{Node, build, fetch};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::chain::{mine_identity, prepare_identity};
use crate::programs::{Programs, Site};

/// A shop and a mining pool on a real Bitcoin SV node (regtest), to be tried by hand.
///
/// Starts a node, the server, a shop and a pool, prints the payment page of an invoice, and stays.
/// Each step tells the command or request that does it.
#[derive(Debug, Parser)]
struct Arguments {
    /// Forget the last demonstration and begin anew
    #[arg(long)]
    fresh: bool,
    /// The directory of the demonstration [default: target/demo]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What the reader wants next.
enum Wish {
    Line(String),
    /// The standard input has ended. The demonstration stays.
    NoMoreLines,
    Stop,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let dir = arguments.dir.unwrap_or_else(|| build::target_dir().join("demo"));
    let dir = std::path::absolute(dir).unwrap();
    fs::create_dir_all(&dir).unwrap();
    let is_empty = fs::read_dir(&dir).unwrap().next().is_none();
    if !is_empty && !Site::is_in(&dir) {
        eprintln!(
            "{} holds something else than a demonstration: name another --dir",
            dir.display()
        );
        return ExitCode::FAILURE;
    }
    if arguments.fresh {
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir_all(&dir).unwrap();
    }
    Site::mark(&dir);
    println!("A shop and a mining pool, on a real Bitcoin SV node (regtest)");
    println!("Everything is in {}, the log of the server in server.log there.\n", dir.display());
    step("building bsv-server and bsv-cli", || {
        build::server_program();
    });
    if let Err(error) =
        step("looking for a Bitcoin SV node, which is fetched once", fetch::try_bitcoind)
    {
        eprintln!("\n{error}\n");
        eprintln!(
            "Without a node there are no payments and no blocks. Invoices, users and documents of identities work:\n\
             start the server alone with  cargo run -p bsv-server"
        );
        return ExitCode::FAILURE;
    }
    let node = step("starting the node", || Node::start_in(&dir.join("node")));
    let site = Site::new(&dir, &node);
    if site.is_ahead_of(&node) {
        eprintln!("\nThe node has lost blocks, because it was killed. Begin anew with --fresh.");
        return ExitCode::FAILURE;
    }
    if height(&node) < 101 {
        step("mining the first coins of the faucet (bitcoin-cli generate 101)", || node.mine(101));
    }
    let wishes = listen();
    let programs = step("starting bsv-server", || site.start());
    webhooks::receive(&site);
    programs.print_environment();
    webhooks::prepare(&programs);
    prepare_identity(&programs);
    let mut url = invoice(&programs);
    menu();
    for wish in wishes {
        match wish {
            Wish::Line(line) => match line.trim() {
                "p" => programs.show(&["wallet", "faucet", &url]),
                "i" => url = invoice(&programs),
                "b" => mine_identity(&node, &programs),
                "s" => programs.show(&["status"]),
                "q" => break,
                "" => menu(),
                other => println!("There is no \"{other}\"."),
            },
            Wish::NoMoreLines => {}
            Wish::Stop => break,
        }
        site.note_height(height(&node));
    }
    println!();
    step("stopping bsv-server and the node", || {
        drop(programs);
        drop(node);
    });
    println!("The next start goes on here; --fresh begins anew.");
    ExitCode::SUCCESS
}

fn height(node: &Node) -> u64 {
    node.call("getblockcount", serde_json::json!([])).as_u64().unwrap()
}

/// Makes an invoice, and says where its payment page is. Answers its payment URL.
fn invoice(programs: &Programs) -> String {
    let arguments =
        ["invoice", "create", "--satoshis", "50000", "--description", "a box of coffee"];
    let invoice: Value = programs.show_json(&arguments);
    let member = |name: &str| invoice[name].as_str().unwrap().to_owned();
    println!("  invoice {}", member("id"));
    let page = format!("http://127.0.0.1:{}/pay/{}", programs.ports.payments, member("id"));
    println!("\nOpen the payment page in a browser:\n\n    {page}\n");
    member("paymentUrl")
}

fn menu() {
    println!("Then type a letter and press Enter:");
    println!(
        "  p  pay the invoice as a customer; the page turns to \"paid\", and the webhook comes"
    );
    println!("  b  mine a block that carries the pool's identity");
    println!("  i  make another invoice");
    println!("  s  show the status");
    println!("  q  stop (or Ctrl-C)");
    let _ = io::stdout().flush();
}

/// The lines of the standard input, and the signals to stop.
fn listen() -> mpsc::Receiver<Wish> {
    let (sender, receiver) = mpsc::channel();
    let lines = sender.clone();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let _ = lines.send(Wish::Line(line));
        }
        let _ = lines.send(Wish::NoMoreLines);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let signals = {
        let _entered = runtime.enter();
        [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).unwrap())
    };
    thread::spawn(move || {
        runtime.block_on(async move {
            let [mut interrupted, mut terminated] = signals;
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
            let _ = sender.send(Wish::Stop);
        });
    });
    receiver
}

/// Does something, and shows a sign of life while it is slow.
fn step<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}").unwrap();
    let bar = ProgressBar::new_spinner().with_style(style).with_message(name);
    bar.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    bar.finish_and_clear();
    println!("✓ {name} ({:.1?})", bar.elapsed());
    result
}
