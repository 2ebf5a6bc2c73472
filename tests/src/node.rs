//! A real node on its own network.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bsv_network::{NodeCredentials, NodeError, NodeRpc, NodeSettings};
use bsv_tx::{BlockHash, BlockHeader, MerkleBranch, Transaction, Txid};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::fetch::bitcoind;

/// How long a node may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a node may take to stop when asked to.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a blocking call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// A node makes 2,000 keys for its wallet and fills large caches when it starts, by default, which takes more than a
/// second. None of that changes what it accepts.
const QUICK_START: &str =
    "keypool=10\nmaxsigcachesize=1\nmaxinvalidsigcachesize=1\nmaxscriptcachesize=1\n";

/// The file with the credentials of a node without a password, in its directory.
const COOKIE_FILE: &str = "regtest/.cookie";

/// How often to try other ports if another program takes the port first.
const START_ATTEMPTS: usize = 10;

/// A node with its own network and directory. It runs until this is dropped or the process ends in
/// any way.
///
/// Its methods are for tests: they panic with the node's message if the node refuses.
#[derive(Debug)]
pub struct Node {
    /// The loopback address at which the node answers RPC.
    pub host: String,
    /// The port at which the node answers RPC.
    pub port: u16,
    /// The port at which the node answers other nodes, at the same address.
    pub peer_port: u16,
    /// The RPC user name.
    pub user: String,
    /// The RPC password.
    pub password: String,
    directory: Directory,
    running: Option<Running>,
    settings: NodeSettings,
    rpc: NodeRpc,
    blocking_rpc: NodeRpc,
}

/// How to reach a node.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) rpc: NodeSettings,
    /// Host and port for its peers.
    pub(crate) peer: String,
}

/// The nodes of this process by their RPC ports, also those that were stopped.
pub(crate) fn endpoints() -> MutexGuard<'static, BTreeMap<u16, Endpoints>> {
    static ENDPOINTS: Mutex<BTreeMap<u16, Endpoints>> = Mutex::new(BTreeMap::new());
    ENDPOINTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    /// Starts a node and waits until it answers.
    ///
    /// # Panics
    /// If it does not, with the end of its log.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a node with further lines in its configuration file, like `txindex=0`. A setting
    /// given twice has its first value; these come first. With `rpcpassword=` the node has no
    /// password, and writes a [cookie file](Node::cookie_file) at each start.
    ///
    /// # Panics
    /// If it does not answer, with the end of its log.
    pub fn start_with(settings: &[&str]) -> Self {
        let new = || tempfile::Builder::new().prefix("bsv-node-").tempdir().unwrap();
        Self::start_on(|| Directory::Temporary(new()), settings)
    }

    /// Starts a node on a directory that stays, with the chain that it holds. The ports are new at
    /// each start.
    ///
    /// # Panics
    /// If it does not answer, with the end of its log.
    pub fn start_in(directory: &Path) -> Self {
        fs::create_dir_all(directory).unwrap();
        Self::start_on(|| Directory::Kept(directory.to_owned()), &[])
    }

    fn start_on(directory: impl Fn() -> Directory, settings: &[&str]) -> Self {
        let mut attempts = 1;
        loop {
            let mut node = Self::prepare(directory(), settings);
            match node.launch() {
                Ok(()) => {
                    endpoints().insert(node.port, node.endpoints());
                    return node;
                }
                Err(error) if error.is_port_taken() && attempts < START_ATTEMPTS => attempts += 1,
                Err(error) => node.start_failed(&error),
            }
        }
    }

    fn prepare(directory: Directory, settings: &[&str]) -> Self {
        let has_cookie = settings.contains(&"rpcpassword=");
        let (host, port, peer_port) = ("127.0.0.1".to_owned(), free_port(), free_port());
        // The unique password reveals another node on the port that is meant for this one.
        let (user, password) = ("bitcoin".to_owned(), random_password());
        let configuration = format!(
            "{}\nregtest=1\nserver=1\nstandalone=1\nminerid=1\ntxindex=1\n\
             rpcuser={user}\nrpcpassword={password}\nrpcport={port}\n\
             rpcallowip={host}\nrpcbind={host}\nbind={host}:{peer_port}\n\
             maxstackmemoryusageconsensus=0\nexcessiveblocksize=10000000000\n\
             minminingtxfee=0.00000001\ngenesisactivationheight=1\ndebug=minerid\n{QUICK_START}",
            settings.join("\n"),
        );
        fs::write(directory.path().join("bitcoin.conf"), configuration).unwrap();
        let credentials = if has_cookie {
            NodeCredentials::CookieFile(directory.path().join(COOKIE_FILE))
        } else {
            NodeCredentials::password(&user, password.as_str())
        };
        let settings = NodeSettings { host: host.clone(), port, credentials };
        Self {
            host,
            port,
            peer_port,
            user,
            password,
            directory,
            running: None,
            rpc: NodeRpc::new(settings.clone()),
            blocking_rpc: NodeRpc::new(settings.clone()).with_timeout(CALL_TIMEOUT),
            settings,
        }
    }

    fn launch(&mut self) -> Result<(), StartError> {
        let running = self.running.insert(Running::start(&self.directory));
        let rpc = self.blocking_rpc.clone().with_timeout(Duration::from_secs(2));
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let exited = running.has_exited();
            let Err(error) = block_on(ask(rpc.clone(), "uptime".to_owned(), vec![])) else {
                return Ok(());
            };
            if exited || error == NodeError::Unauthorized || Instant::now() > deadline {
                return Err(StartError { error, output: running.output() });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn start_failed(&self, StartError { error, output }: &StartError) -> ! {
        let text = format!("{output}\n{}", self.log());
        let lines: Vec<_> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(40)..].join("\n");
        panic!("the node did not start: {error}\n{tail}");
    }

    /// Stops the node and keeps its directory. Does nothing if it does not run.
    ///
    /// # Panics
    /// If it has not stopped after 15 seconds.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            let asked = self.try_call("stop", json!([]));
            let stopped = running.finish();
            assert!(stopped, "the node had to be killed, asked to stop it answered {asked:?}");
        }
    }

    /// Stops the node, if it runs, and starts it on the same directory and ports.
    ///
    /// # Panics
    /// If it does not stop or does not answer.
    pub fn restart(&mut self) {
        self.stop();
        let mut attempts = 1;
        while let Err(error) = self.launch() {
            if !error.is_port_taken() || attempts == START_ATTEMPTS {
                self.start_failed(&error);
            }
            attempts += 1;
            if let Some(running) = self.running.take() {
                running.finish();
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// Stops the node, and starts it on the same directory and ports with further lines in its
    /// configuration file. They come before the earlier lines.
    ///
    /// # Panics
    /// If it does not stop or does not answer.
    pub fn restart_with(&mut self, settings: &[&str]) {
        self.stop();
        let file = self.directory.path().join("bitcoin.conf");
        let before = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{}\n{before}", settings.join("\n"))).unwrap();
        self.restart();
    }

    /// A client of this node. Use it in one tokio runtime only; for another, make another from
    /// [`Node::settings`].
    pub fn rpc(&self) -> &NodeRpc {
        &self.rpc
    }

    /// How to reach this node.
    pub fn settings(&self) -> NodeSettings {
        self.settings.clone()
    }

    fn endpoints(&self) -> Endpoints {
        Endpoints { rpc: self.settings(), peer: format!("{}:{}", self.host, self.peer_port) }
    }

    /// The file that a node without a password writes at each start.
    pub fn cookie_file(&self) -> PathBuf {
        self.directory().join(COOKIE_FILE)
    }

    /// The node's data directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The node's log so far.
    pub fn log(&self) -> String {
        fs::read(self.directory.path().join("regtest/bitcoind.log"))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// Calls any method and waits for the result. `params` is an array. Works with and without a
    /// tokio runtime around it.
    ///
    /// # Panics
    /// If the node refuses, with its words.
    pub fn call(&self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls any method and waits for the result or the refusal.
    pub fn try_call(&self, method: &str, params: Value) -> Result<Value, NodeError> {
        let Value::Array(params) = params else { panic!("parameters are an array, not {params}") };
        block_on(ask(self.blocking_rpc.clone(), method.to_owned(), params))
    }

    /// Mines `blocks` blocks, paid to the node's wallet. The first coin can be spent after 101.
    pub fn mine(&self, blocks: u32) -> Vec<BlockHash> {
        let rpc = self.blocking_rpc.clone();
        block_on(async move { rpc.generate(blocks).await }).unwrap_or_else(|e| panic!("{e}"))
    }

    /// What to mine next (`getminingcandidate`), without a coinbase transaction.
    pub fn mining_candidate(&self) -> Value {
        self.call("getminingcandidate", json!([]))
    }

    /// Mines `candidate` with `coinbase` as its first transaction. Returns the hash of the new tip,
    /// or the reason why the node refused the block.
    ///
    /// # Panics
    /// If `candidate` is not one that [`Node::mining_candidate`] answers.
    pub fn submit_block(
        &self,
        candidate: &Value,
        coinbase: &Transaction,
    ) -> Result<BlockHash, String> {
        let header = solve(header_of(candidate, coinbase));
        let solution = json!({
            "id": candidate["id"],
            "nonce": header.nonce,
            "coinbase": coinbase.to_hex(),
            "time": header.time,
            "version": header.version,
        });
        match self.try_call("submitminingsolution", json!([solution])) {
            Ok(Value::Bool(true)) => {}
            Ok(answer) => return Err(answer.to_string()),
            Err(error) => return Err(error.to_string()),
        }
        let tip = self.call("getbestblockhash", json!([]));
        let tip = tip.as_str().unwrap().parse().unwrap();
        if tip == header.block_hash() {
            Ok(tip)
        } else {
            Err(format!("{} was taken, but the tip is {tip}", header.block_hash()))
        }
    }
}

impl Drop for Node {
    /// Kills a node whose directory is removed as well: a clean stop would only cost two seconds.
    /// Stops any other in order, since a node that is killed may lose blocks.
    fn drop(&mut self) {
        endpoints().remove(&self.port);
        match (&self.directory, self.running.take()) {
            (Directory::Temporary(_), Some(running)) => running.kill(),
            (Directory::Kept(_), Some(running)) => {
                let _ = self.try_call("stop", json!([]));
                running.finish();
            }
            (_, None) => {}
        }
    }
}

/// The directory of a node.
#[derive(Debug)]
enum Directory {
    Temporary(TempDir),
    Kept(PathBuf),
}

impl Directory {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(directory) => directory.path(),
            Self::Kept(directory) => directory,
        }
    }
}

/// Why a node does not answer.
struct StartError {
    error: NodeError,
    /// What the node wrote before it exited.
    output: String,
}

impl StartError {
    /// Whether another program took one of the node's ports first.
    fn is_port_taken(&self) -> bool {
        const COMPLAINTS: [&str; 2] = ["Unable to bind", "Unable to start HTTP server"];
        self.error == NodeError::Unauthorized || COMPLAINTS.iter().any(|c| self.output.contains(c))
    }
}

/// A running `bitcoind` under a shell that kills it when this process ends.
#[derive(Debug)]
struct Running {
    shell: Child,
    /// The node's output. It ends when the node does, because nothing else holds the pipe.
    output: Option<JoinHandle<String>>,
}

impl Running {
    fn start(directory: &Directory) -> Self {
        let removed = match directory {
            Directory::Temporary(directory) => directory.path(),
            Directory::Kept(_) => Path::new(""),
        };
        let directory = directory.path();
        let (mut reader, writer) = io::pipe().unwrap();
        let shell = Command::new("sh")
            .args(["-c", include_str!("watch.sh"), "watch.sh"])
            .arg(removed)
            .arg(bitcoind())
            .arg(format!("-datadir={}", directory.display()))
            .stdin(Stdio::piped())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            // An interrupt from the keyboard is for the tests. The node ends when they end.
            .process_group(0)
            .spawn()
            .expect("every system has a POSIX shell");
        let read = move || {
            let mut output = Vec::new();
            let _ = reader.read_to_end(&mut output);
            String::from_utf8_lossy(&output).into_owned()
        };
        Self { shell, output: Some(thread::spawn(read)) }
    }

    fn has_exited(&self) -> bool {
        self.output.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The node's output after it has exited.
    fn output(&mut self) -> String {
        match self.output.take_if(|output| output.is_finished()) {
            Some(output) => output.join().unwrap_or_default(),
            None => String::new(),
        }
    }

    /// Waits until the node has stopped after a request, and kills it if it does not. Returns
    /// whether it stopped by itself.
    fn finish(mut self) -> bool {
        let deadline = Instant::now() + STOP_TIMEOUT;
        while !self.has_exited() {
            if Instant::now() > deadline {
                self.kill();
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        if let Some(stdin) = &mut self.shell.stdin {
            let _ = stdin.write_all(b"\n");
        }
        let _ = self.shell.wait();
        true
    }

    /// Kills the node and lets the shell remove its directory.
    fn kill(mut self) {
        // This closes the shell's standard input first.
        let _ = self.shell.wait();
    }
}

/// A port that is free now, below those that systems hand out for outgoing connections.
pub fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        let mut random = [0; 2];
        getrandom::fill(&mut random).unwrap();
        AtomicU16::new(u16::from_le_bytes(random))
    });
    loop {
        let port = FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn random_password() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    hex::encode(random)
}

/// Waits for `future` in a runtime of this crate, so that the caller may run in a runtime or not.
pub(crate) fn block_on<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    });
    let (sender, receiver) = mpsc::channel();
    RUNTIME.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().expect("the future does not panic")
}

async fn ask(rpc: NodeRpc, method: String, params: Vec<Value>) -> Result<Value, NodeError> {
    let result = rpc.call(&method, &params).await?;
    Ok(serde_json::from_str(result.get()).expect("raw JSON is JSON"))
}

/// The header of the block of a candidate and a coinbase transaction, with nonce 0.
fn header_of(candidate: &Value, coinbase: &Transaction) -> BlockHeader {
    let text = |name: &str| candidate[name].as_str().unwrap();
    let number = |name: &str| candidate[name].as_u64().unwrap();
    let siblings = merkle_branch(candidate);
    let merkle_root = MerkleBranch::of_coinbase(&siblings).root(&coinbase.txid());
    BlockHeader {
        version: i32::try_from(candidate["version"].as_i64().unwrap()).unwrap(),
        previous_block: text("prevhash").parse().unwrap(),
        merkle_root: merkle_root.expect("a coinbase's branch fits its position"),
        time: u32::try_from(number("time")).unwrap(),
        bits: u32::from_str_radix(text("nBits"), 16).unwrap(),
        nonce: 0,
    }
}

/// The coinbase transaction's Merkle branch of a candidate, from the bottom, in internal byte order.
pub(crate) fn merkle_branch(candidate: &Value) -> Vec<[u8; 32]> {
    let branch = |hash: &Value| *hash.as_str().unwrap().parse::<Txid>().unwrap().as_bytes();
    candidate["merkleProof"].as_array().unwrap().iter().map(branch).collect()
}

pub(crate) fn solve(header: BlockHeader) -> BlockHeader {
    (0..=u32::MAX)
        .map(|nonce| BlockHeader { nonce, ..header })
        .find(BlockHeader::has_proof_of_work)
        .expect("on a private network every other nonce will do")
}
