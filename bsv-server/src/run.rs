use std::future;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::MAX_WEBHOOKS;
use clap::{Parser, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, ConfigError, ConfigSources, TlsFiles};
use crate::control::{self, Listening};
use crate::http::{Connections, Limits, Listener, Tls, TlsError, serve, serve_stream};
use crate::instance::Instance;
use crate::metrics::watch_node;
use crate::opening::OpenError;
use crate::request_log::answer_and_log;
use crate::store_check::check_stores;
use crate::surface::Surface;
use crate::wallet;

/// The server of the Bitcoin SV wallet and miner identity service.
///
/// The wallet creates invoices, keeps users and knows its balance. The miner identity service holds a
/// signing key per alias, makes the output script that carries a miner's identity in a coinbase
/// transaction, and signs hashes. Identities are set up with bsv-cli.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// A TOML file of settings; those in the environment variable BSV_CONFIG, a JSON object, count
    /// over it
    #[arg(long, env = "BSV_CONFIG_FILE", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory for all data [default: $XDG_DATA_HOME/bsv-server or ~/.local/share/bsv-server]
    #[arg(long, env = "BSV_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// How the log is written to standard error
    #[arg(long, value_enum, value_name = "FORM", default_value_t = LogForm::Text)]
    log: LogForm,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// Lines for people.
    Text,
    /// A JSON object per line.
    Json,
}

/// Why the server could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A listener cannot speak TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A listener cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address or path.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The operating system refuses something that a server needs.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// Runs the program `bsv-server`: reads its arguments, serves until it is told to stop (SIGTERM or
/// SIGINT), and answers 0, or 1 with the reason on standard error. SIGHUP has certificates read again.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr("info", arguments.log);
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bsv-server: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Logs to standard error what the environment variable BSV_LOG asks for, or else what is at least
/// of `level`.
pub fn log_to_stderr(level: &str, form: LogForm) {
    let filter = EnvFilter::try_from_env("BSV_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A log that cannot be written, on a full disk too, is no reason to end.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    match form {
        LogForm::Text => log.with_ansi(io::stderr().is_terminal()).init(),
        LogForm::Json => log.json().flatten_event(true).init(),
    }
}

/// How many threads wait for the disk or read pages of lists. Each keeps memory of its own.
const BLOCKING_THREADS: usize = 8;

/// The files of the stores, the connections to the node, and those of the runtime itself.
const OTHER_DESCRIPTORS: u64 = 100;
/// The connections to webhooks, of which each has 8 attempts under way.
const WEBHOOK_CONNECTIONS: u64 = MAX_WEBHOOKS as u64 * 8;

fn start(arguments: Arguments) -> Result<(), StartError> {
    let Arguments { config: file, data_dir, log: _ } = arguments;
    let config = Config::load(&ConfigSources { file, data_dir })?;
    raise_descriptor_limit(OTHER_DESCRIPTORS + most_connections(&config));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    runtime.block_on(async {
        survive_file_size_limit()?;
        survive_hang_up()?;
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let told_to_stop = async {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = interrupted.recv() => {}
            }
        };
        run(config, told_to_stop).await
    })
}

/// Lets the process have as many files and connections as it may have at all: the usual limit is less
/// than what the listeners take, and who fills it would keep keys from being written too.
fn raise_descriptor_limit(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!("the limit of open files cannot be raised: {error}");
    }
    if let Some(maximum) = limit.maximum
        && maximum < needed
    {
        tracing::warn!(
            "only {maximum} files and connections can be open, and {needed} may be needed"
        );
    }
}

/// Makes a write beyond a limit on the size of files fail, instead of ending the process. Called
/// within a tokio runtime.
pub fn survive_file_size_limit() -> io::Result<()> {
    const SIGXFSZ: i32 = 25;
    // Once made, a handler stays in place.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// Makes SIGHUP end nothing, whether or not a listener has certificates to read again.
fn survive_hang_up() -> io::Result<()> {
    signal(SignalKind::hangup()).map(drop)
}

/// Opens the data directory, listens, and serves until `shutdown` completes; then finishes the
/// requests in flight.
///
/// For each listener it prints a line such as `listening minerid http://127.0.0.1:9002` as soon as
/// that accepts connections; with `https` if it speaks TLS.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), StartError> {
    let mut config = config;
    for warning in config.clear_text_warnings() {
        tracing::warn!("{warning}");
    }
    // Before the wallet is opened, which tells payers where they reach it, and pays nobody who leads it
    // to itself; but that another process has the data directory is worth more to know than that it
    // has a port as well.
    let tcp_listeners = bind_listeners(&mut config);
    let instance = Arc::new(Instance::open_to_serve(config).await?);
    let tcp_listeners = tcp_listeners?;
    let network_dir = &instance.config.network_dir;
    let control_path = control::socket_path(network_dir).display().to_string();
    let control = control::bind(network_dir).map_err(listen_error(&control_path))?;
    let (stop, stopped) = watch::channel(());
    let (mut listeners, mut followers) = (JoinSet::new(), JoinSet::new());
    let mut listening = Vec::new();
    for (surface, listener, tls) in tcp_listeners {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        say(&format!("listening {} {url}", surface.name()));
        listening.push(Listening { name: surface.name(), url });
        if let Some(tls) = &tls {
            followers.spawn(Arc::clone(tls).follow_files(signal(SignalKind::hangup())?));
        }
        let instance = Arc::clone(&instance);
        listeners.spawn(serve_surface(instance, surface, listener, tls, stopped.clone()));
    }
    say(&format!("listening control {control_path}"));
    listening.push(Listening { name: Surface::Control.name(), url: control_path });
    instance.control.managed().note_listening(listening);
    listeners.spawn(serve_surface(Arc::clone(&instance), Surface::Control, control, None, stopped));

    let served = async {
        shutdown.await;
        instance.stop_waiting();
        drop(stop);
        while listeners.join_next().await.is_some() {}
    };
    tokio::select! {
        () = served => {}
        () = keep_up_to_date(&instance) => {}
    }
    instance.record_hand_outs();
    Ok(())
}

/// A listener and what it speaks TLS with, if it does.
type TcpDoor = (Surface, TcpListener, Option<Arc<Tls>>);

/// Listens at all addresses. Ports that the system chooses enter the configuration.
fn bind_listeners(config: &mut Config) -> Result<Vec<TcpDoor>, StartError> {
    let mut doors = Vec::new();
    let mut bind = |surface, address: &mut SocketAddr, setting, files: &Option<TlsFiles>| {
        let tls = files.clone().map(|files| Tls::open(setting, files)).transpose()?;
        let listener = bind_tcp(*address)?;
        *address = listener.local_addr()?;
        doors.push((surface, listener, tls.map(Arc::new)));
        Ok::<_, StartError>(())
    };
    if let Some(minerid) = &mut config.minerid {
        bind(Surface::MinerId, &mut minerid.address, "tls", &minerid.tls)?;
        if let Some(listener) = &mut minerid.node_listener {
            bind(Surface::Node, &mut listener.address, "minerid.nodeListener", &None)?;
        }
    }
    if let Some(wallet) = &mut config.wallet {
        bind(Surface::Wallet, &mut wallet.address, "wallet.tls", &wallet.tls)?;
        let payments = &mut wallet.payments;
        bind(Surface::Payments, &mut payments.address, "payments.tls", &payments.tls)?;
    }
    Ok(doors)
}

/// Does what time and the chain make due, for as long as it is polled.
async fn keep_up_to_date(instance: &Instance) {
    let identities = async {
        if let Some(api) = &instance.minerid {
            api.watch().run().await;
        }
    };
    let wallet = async {
        if let Some(api) = &instance.wallet {
            let wallet = api.wallet();
            tokio::join!(
                wallet::sweep(Arc::clone(wallet)),
                wallet::follow(Arc::clone(wallet)),
                wallet::watch_mempool(Arc::clone(wallet)),
                // It is cut off in the middle: what it has not noted it sends once more.
                Arc::clone(api.webhooks()).run(future::pending()),
            );
        }
    };
    tokio::join!(identities, wallet, check_stores(instance), watch_node(instance));
}

/// Answers the requests that come over one connection of any kind, until it ends.
pub async fn serve_connection<C>(instance: &Arc<Instance>, surface: Surface, stream: C)
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let answer = |request| answer_and_log(Arc::clone(instance), surface, None, request);
    if let Err(error) = serve_stream(stream, &Limits::default(), answer).await {
        tracing::debug!("a connection ended: {error}");
    }
}

/// How many connections a listener has at once.
fn connection_limit(config: &Config, surface: Surface) -> u32 {
    let usual = Limits::default().connections;
    match (surface, &config.wallet) {
        // Who waits for events takes no place of those who ask for something else.
        (Surface::Wallet, Some(wallet)) => usual + 2 * wallet.streams,
        (Surface::Payments, Some(wallet)) => wallet.payments.connections + wallet.payments.streams,
        _ => usual,
    }
}

/// How many connections all listeners that are configured have at once, and webhooks.
fn most_connections(config: &Config) -> u64 {
    let minerid = config.minerid.as_ref();
    let surfaces = [
        Some(Surface::Control),
        minerid.map(|_| Surface::MinerId),
        minerid.and_then(|minerid| minerid.node_listener.as_ref()).map(|_| Surface::Node),
        config.wallet.as_ref().map(|_| Surface::Wallet),
        config.wallet.as_ref().map(|_| Surface::Payments),
    ];
    let surfaces = surfaces.into_iter().flatten();
    let accepted: u64 = surfaces.map(|it| u64::from(connection_limit(config, it))).sum();
    accepted + config.wallet.as_ref().map_or(0, |_| WEBHOOK_CONNECTIONS)
}

async fn serve_surface<L: Listener>(
    instance: Arc<Instance>,
    surface: Surface,
    listener: L,
    tls: Option<Arc<Tls>>,
    mut stopped: watch::Receiver<()>,
) {
    let connections = connection_limit(&instance.config, surface);
    let mut limits = Limits { connections, ..Limits::default() };
    match surface {
        // The command line may wait for its user between two requests.
        Surface::Control => limits.head_timeout = Duration::from_secs(24 * 60 * 60),
        Surface::Payments => limits.peers = Some(Arc::clone(&instance.payers)),
        _ => {}
    }
    let counts = instance.metrics.listener(surface);
    let connections =
        counts.map_or_else(Connections::new, |counts| Arc::clone(counts.connections()));
    let answer =
        move |address, request| answer_and_log(Arc::clone(&instance), surface, address, request);
    let shutdown = async move {
        // Ends when the sender is dropped.
        let _ = stopped.changed().await;
    };
    serve(listener, tls, limits, connections, answer, shutdown).await;
}

/// How much of an answer waits in the system for its reader, in bytes. Of a larger buffer, a slow reader
/// would seem to take nothing for long.
const SEND_BUFFER_LEN: u32 = 256 << 10;
/// How many connections wait to be accepted.
const BACKLOG: u32 = 1024;

fn bind_tcp(address: SocketAddr) -> Result<TcpListener, StartError> {
    let listen = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A server that starts again takes its port at once.
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_LEN)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(listen_error(&address.to_string()))
}

fn listen_error(address: &str) -> impl FnOnce(io::Error) -> StartError {
    let address = address.to_owned();
    move |source| StartError::Listen { address, source }
}

/// Programs wait for these lines; that nobody reads them is no reason to stop.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
