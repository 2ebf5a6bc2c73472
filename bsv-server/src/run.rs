use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::Api;
use crate::config::{Config, ConfigSources};
use crate::control::{self, Listening};
use crate::http::{Limits, serve_stream};
use crate::instance::Instance;
use crate::listeners::{self, BoundListener, HandedSockets};
use crate::logging::{LogForm, log_to_stderr};
use crate::openapi;
use crate::opening::{OpenError, SERVER, holder_of};
use crate::request_log::answer_and_log;
use crate::reread::reread_settings;
use crate::service_manager;
use crate::serving::{Serving, most_connections};
use crate::start_error::StartError;
use crate::store_check::check_stores;
use crate::version::{COMMIT, version};
use crate::wallet::EventLogger;

/// The server of the Bitcoin SV wallet and miner identity service.
///
/// The wallet creates invoices, keeps users and knows its balance. The miner identity service holds
/// a signing key for each alias, makes the output script that carries a miner's identity in a
/// coinbase transaction, and signs hashes. Set up identities with bsv-cli.
#[derive(Debug, Parser)]
#[command(version = version(), max_term_width = 100)]
struct Arguments {
    /// A TOML file of settings. The environment variable BSV_CONFIG, a JSON object, overrides the
    /// file
    #[arg(long, env = "BSV_CONFIG_FILE", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory for all data [default: $XDG_DATA_HOME/bsv-server or ~/.local/share/bsv-server]
    #[arg(long, env = "BSV_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The format of the log on standard error
    #[arg(long, value_enum, value_name = "FORM", default_value_t = LogForm::Text)]
    log: LogForm,
}

/// Runs the program `bsv-server`: reads its arguments, and serves until SIGTERM or SIGINT. Answers
/// 0, or 1 with the reason on standard error. SIGHUP makes it read certificates and settings again.
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

/// How many threads wait for the disk or read pages of lists. Each has its own memory.
const BLOCKING_THREADS: usize = 8;

/// The files of the stores, the connections to the node, and those of the runtime.
const OTHER_DESCRIPTORS: u64 = 100;
fn start(arguments: Arguments) -> Result<(), StartError> {
    let Arguments { config: file, data_dir, log } = arguments;
    let sources = ConfigSources { file, data_dir };
    let config = Config::load(&sources)?;
    let sockets = HandedSockets::from_environment()?;
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
        run(Launch { config, sources: Some(sources), sockets, log }, told_to_stop).await
    })
}

/// Raises the process's limit on files and connections to the maximum. The usual limit is less than
/// the listeners take, and whoever fills it would also keep keys from being written.
fn raise_descriptor_limit(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!("cannot raise the limit on open files: {error}");
    }
    if let Some(maximum) = limit.maximum
        && maximum < needed
    {
        tracing::warn!(
            "only {maximum} files and connections can be open, but {needed} may be needed"
        );
    }
}

/// Makes a write beyond a limit on the size of files fail, instead of ending the process. Call it
/// within a tokio runtime.
pub fn survive_file_size_limit() -> io::Result<()> {
    const SIGXFSZ: i32 = 25;
    // A handler stays in place once it is installed.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// Keeps SIGHUP from ending the process, even if no listener has certificates.
fn survive_hang_up() -> io::Result<()> {
    signal(SignalKind::hangup()).map(drop)
}

/// What a server needs to start.
#[derive(Debug)]
pub struct Launch {
    /// The settings.
    pub config: Config,
    /// The sources of the settings, to be read again at SIGHUP.
    pub sources: Option<ConfigSources>,
    /// Sockets that already listen.
    pub sockets: HandedSockets,
    /// The format of the log. A JSON log also contains the lines that are otherwise printed.
    pub log: LogForm,
}

/// How long to wait for a server that hands over its sockets and stops.
const HANDOVER_PATIENCE: Duration = Duration::from_secs(60);

/// Opens the data directory, listens, and serves until `shutdown` completes, or until other
/// servers of its wallet take this one for dead. Then it finishes the requests in flight: those of
/// payers, of the wallet and of the command line first, while the miner identity listener still
/// serves.
///
/// As soon as a listener accepts connections, a line such as `listening minerid
/// http://127.0.0.1:9002` tells its address, with `https` for TLS. If sockets were handed over, it
/// waits up to a minute for another server that holds the data directory and is about to stop.
pub async fn run(launch: Launch, shutdown: impl Future<Output = ()>) -> Result<(), StartError> {
    let Launch { mut config, sources, sockets, log } = launch;
    tokio::pin!(shutdown);
    for warning in config.clear_text_warnings() {
        tracing::warn!("{warning}");
    }
    let patience = if sockets.is_empty() { Duration::ZERO } else { HANDOVER_PATIENCE };
    // Listening comes before opening the wallet, which needs its address: it tells the address to
    // payers, and refuses to pay itself. A server that cannot listen makes nothing.
    let doors = match listeners::listen(&mut config, sockets) {
        Ok(doors) => doors,
        // Another process with this data directory explains why a port is in use.
        Err(error) => {
            let holder = holder_of(&config.network_dir, SERVER).map(OpenError::from);
            return Err(holder.map_or(error, StartError::Open));
        }
    };
    let opened = tokio::select! {
        opened = Instance::open_to_serve(config, patience) => opened,
        () = &mut shutdown => return Ok(()),
    };
    let instance = Arc::new(opened?);
    let mut logger =
        instance.wallet.as_ref().map(|service| EventLogger::new(Arc::clone(service.wallet())));
    let mut followers = JoinSet::new();
    let serving = open_doors(&instance, doors, &mut followers, log)?;
    let hang_ups = signal(SignalKind::hangup())?;
    let reread = async {
        if let Some(sources) = sources {
            reread_settings(&instance, sources, hang_ups).await;
        }
    };
    let log_events = async {
        if let Some(logger) = &mut logger {
            logger.log_events().await;
        }
    };
    service_manager::tell_ready();
    let (stop_services, services_stopped) = watch::channel(());
    let mut is_overtaken = false;
    let served = async {
        tokio::select! {
            () = shutdown => {}
            () = overtaken(&instance) => is_overtaken = true,
        }
        stop(&instance, serving).await;
        // Requests in flight may still hand out documents, which is noted at the end.
        drop(stop_services);
    };
    let served_and_ended =
        async { tokio::join!(served, run_services(&instance, services_stopped)) };
    let stores = check_stores(&instance);
    let tokens = instance.access.follow_tokens();
    let headers = async {
        if let Some(headers) = &instance.headers {
            headers.follow().await;
        }
    };
    let background = async {
        tokio::join!(
            stores,
            instance.metrics.node.watch(instance.health.node()),
            reread,
            log_events,
            tokens,
            headers
        )
    };
    tokio::select! {
        _ = served_and_ended => {}
        _ = background => {}
        () = service_manager::keep_watchdog_quiet() => {}
    }
    if let Some(logger) = &mut logger {
        logger.finish().await;
    }
    tracing::info!("stopped");
    if is_overtaken { Err(StartError::Overtaken) } else { Ok(()) }
}

/// Completes when other servers of the wallet take this one for dead.
async fn overtaken(instance: &Instance) {
    match &instance.wallet {
        Some(service) => service.wallet().store().overtaken().await,
        None => std::future::pending().await,
    }
}

/// Starts all listeners, and tells where they listen. `followers` receives the tasks that watch
/// certificates.
fn open_doors<'i>(
    instance: &'i Arc<Instance>,
    doors: Vec<BoundListener>,
    followers: &mut JoinSet<()>,
    log: LogForm,
) -> Result<Serving<'i>, StartError> {
    let network_dir = &instance.config.network_dir;
    let control_path = control::socket_path(network_dir).display().to_string();
    let control = control::bind(network_dir).map_err(StartError::listen(control_path.clone()))?;
    let mut serving = Serving::new(instance);
    let mut listening = Vec::new();
    for (api, listener, tls) in doors {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        listening.push(Listening { name: api.name(), url });
        if let Some(tls) = &tls {
            followers.spawn(Arc::clone(tls).follow_files(signal(SignalKind::hangup())?));
        }
        serving.spawn(api, listener, tls);
    }
    listening.push(Listening { name: Api::Control.name(), url: control_path });
    serving.spawn(Api::Control, control, None);
    tell_start(instance, &listening, log);
    instance.control.managed().note_listening(listening);
    Ok(serving)
}

async fn stop(instance: &Instance, serving: Serving<'_>) {
    service_manager::tell_stopping();
    tracing::info!("stopping: payments and the wallet first, then the miner identity service");
    instance.stop_waiting();
    serving.stop().await;
}

/// Logs the start of the server, and where it listens.
fn tell_start(instance: &Instance, listening: &[Listening], log: LogForm) {
    let urls: Vec<_> = listening.iter().map(|it| format!("{} {}", it.name, it.url)).collect();
    let listeners = urls.join(", ");
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = COMMIT,
        network = instance.config.network.name(),
        dir = %instance.config.network_dir.display(),
        listeners,
        "started"
    );
    for Listening { name, url } in listening {
        match log {
            LogForm::Text => say(&format!("listening {name} {url}")),
            LogForm::Json => tracing::info!(listener = name, url, "listening"),
        }
    }
    if log == LogForm::Text {
        first_steps(&instance.config, listening).iter().for_each(|line| say(line));
    }
}

/// What to open, what is missing, and what to do first, in a line each.
fn first_steps(config: &Config, listening: &[Listening]) -> Vec<String> {
    let (surface, next) = match config.wallet {
        Some(_) => (Api::Wallet, "bsv-cli invoice create --satoshis 5000"),
        None => (Api::MinerId, "bsv-cli miner create --name pool"),
    };
    let url = listening.iter().find(|it| it.name == surface.name()).map(|it| &it.url);
    let described = url.zip(openapi::document(surface)).map(|(url, (path, _))| url.clone() + path);
    let opened = described.map(|url| format!("open {url} for a description of all calls"));
    let node = match config.node {
        Some(_) => None,
        None => Some(
            "no node: payments and what blocks show stay unknown. Set rpcUser and rpcPassword, or \
             rpcCookieFile, and run bsv-cli config check --node"
                .to_owned(),
        ),
    };
    opened.into_iter().chain(node).chain([format!("next: {next}")]).collect()
}

/// Does the work that time and the chain make due.
async fn run_services(instance: &Instance, stopped: watch::Receiver<()>) {
    let identities = async {
        if let Some(service) = &instance.minerid {
            Arc::clone(service.ids()).run(dropped(stopped.clone())).await;
        }
    };
    let wallet = async {
        if let Some(service) = &instance.wallet {
            Arc::clone(service.wallet()).run(dropped(stopped.clone())).await;
        }
    };
    tokio::join!(identities, wallet);
}

/// Completes when the sender is dropped.
async fn dropped(mut receiver: watch::Receiver<()>) {
    let _ = receiver.changed().await;
}

/// Answers the requests of one connection of any kind until it ends.
pub async fn serve_connection<C>(instance: &Arc<Instance>, api: Api, stream: C)
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let answer = |request| answer_and_log(Arc::clone(instance), api, None, request);
    if let Err(error) = serve_stream(stream, &Limits::default(), answer).await {
        tracing::debug!("a connection ended: {error}");
    }
}

/// Prints a line that programs may wait for. A missing reader must not stop the server.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
