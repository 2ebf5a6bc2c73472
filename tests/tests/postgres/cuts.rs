//! Connections that are cut at every point of a batch: before, amid and after each send and each answer.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bsv_invoicing::ledger::queries::GetUser;
use bsv_invoicing::store::{Store, WalletStore};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::postgres::{SERVER, count_of_user, figures_of_steps, open, user};

/// What begins a batch.
const DOOR: &[u8] = b".door FOR UPDATE";
/// What says that a batch is committed.
const COMMITTED: &[u8] = b"COMMIT\0";
/// The name of the socket in its directory.
const SOCKET: &str = ".s.PGSQL.5432";
/// How long a store may take to hear of something. It looks 20 times a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a connection is cut, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    direction: Direction,
    piece: Piece,
    passes: Passes,
}

/// Which piece is affected, of those that go in a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// The one of this number, from the one that begins a batch on.
    Number(usize),
    /// The one that says that the batch is committed.
    Committed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToDatabase,
    ToStore,
}

/// How much of the piece gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    Nothing,
    Half,
    All,
}

/// A socket before that of the database.
struct Proxy {
    dir: TempDir,
    cut: Arc<Mutex<Option<Cut>>>,
    /// Who holds this keeps the proxy from closing the connection that it cuts.
    patience: Arc<Mutex<()>>,
}

/// The pieces of a connection that have passed each way since a batch began.
type Counts = Arc<Mutex<Option<[usize; 2]>>>;

impl Proxy {
    fn before(database: String) -> Self {
        let (dir, cut) = (tempfile::tempdir().unwrap(), Arc::<Mutex<Option<Cut>>>::default());
        let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let patience = Arc::<Mutex<()>>::default();
        let (of_connections, until) = (Arc::clone(&cut), Arc::clone(&patience));
        thread::spawn(move || {
            for store in listener.incoming() {
                let store = store.unwrap();
                let Ok(server) = UnixStream::connect(format!("{database}/{SOCKET}")) else {
                    return;
                };
                let counts = Counts::default();
                for (direction, from, to) in [
                    (Direction::ToDatabase, &store, &server),
                    (Direction::ToStore, &server, &store),
                ] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (cut, counts) = (Arc::clone(&of_connections), Arc::clone(&counts));
                    let until = Arc::clone(&until);
                    thread::spawn(move || {
                        pass_on(direction, &from, &to, &cut, &counts);
                        drop(until.lock());
                        let _ = from.shutdown(Shutdown::Both);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { dir, cut, patience }
    }

    fn arm(&self, cut: Cut) {
        *self.cut.lock().unwrap() = Some(cut);
    }

    fn has_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }

    /// Answers whether it has cut.
    fn disarm(&self) -> bool {
        self.cut.lock().unwrap().take().is_none()
    }
}

fn pass_on(
    direction: Direction,
    mut from: &UnixStream,
    mut to: &UnixStream,
    cut: &Mutex<Option<Cut>>,
    counts: &Counts,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        let piece = &buffer[..len];
        match affected(direction, piece, cut, counts) {
            None if to.write_all(piece).is_ok() => {}
            None => break,
            Some(passes) => {
                let len = match passes {
                    Passes::Nothing => 0,
                    Passes::Half => len / 2,
                    Passes::All => len,
                };
                let _ = to.write_all(&piece[..len]);
                break;
            }
        }
    }
}

/// How much of a piece passes, if the connection is to be cut there.
fn affected(
    direction: Direction,
    piece: &[u8],
    cut: &Mutex<Option<Cut>>,
    counts: &Counts,
) -> Option<Passes> {
    let mut cut = cut.lock().unwrap();
    let armed = (*cut)?;
    let mut counts = counts.lock().unwrap();
    let begins = direction == Direction::ToDatabase
        && piece.windows(DOOR.len()).any(|window| window == DOOR);
    if begins {
        *counts = Some([0; 2]);
    }
    let count = &mut (*counts).as_mut()?[direction as usize];
    *count += 1;
    let is_affected = match armed.piece {
        Piece::Number(number) => *count == number,
        Piece::Committed => piece.windows(COMMITTED.len()).any(|window| window == COMMITTED),
    };
    if direction != armed.direction || !is_affected {
        return None;
    }
    *cut = None;
    Some(armed.passes)
}

/// The URL of a schema, and of the same one behind a proxy.
fn proxied(schema: &str) -> (String, Proxy, String) {
    let url = SERVER.url(schema);
    let database = url.split_once("host=").unwrap().1.split_once('&').unwrap().0.to_owned();
    let proxy = Proxy::before(database.clone());
    let through = url.replace(&database, proxy.dir.path().to_str().unwrap());
    (url, proxy, through)
}

/// Another process writes before a store finds its own commit, whose answer was lost. The store hears of both.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_others_commit_before_a_lost_answer_is_found_is_heard_of() {
    let (url, proxy, through) = proxied("overheard");
    let [store, other] = [&through, &url].map(|url| Arc::new(open(url)));
    let mut heard = store.changes_by_others().unwrap();
    let writing = tokio::task::block_in_place(|| {
        let _patience = proxy.patience.lock().unwrap();
        let (direction, passes) = (Direction::ToStore, Passes::Nothing);
        proxy.arm(Cut { direction, piece: Piece::Committed, passes });
        let store = Arc::clone(&store);
        let writing = tokio::spawn(async move { store.execute(user("Ada")).await.unwrap() });
        while !proxy.has_cut() {
            assert!(!writing.is_finished(), "it waits for the answer");
            thread::yield_now();
        }
        Handle::current().block_on(other.execute(user("Bob"))).unwrap();
        writing
    });
    writing.await.unwrap();
    // The steps are: the first, Ada, Bob, and the one that confirms the first of these.
    let users = figures_of_steps("overheard").into_iter().map(|figures| figures.last_user);
    assert!(users.eq([0, 1, 2, 2]));
    let step: i64 = SERVER.query("SELECT max(number) - 1 FROM overheard.step").parse().unwrap();
    let hearing = tokio::time::timeout(PATIENCE, heard.wait_for(|last| *last >= step)).await;
    assert!(hearing.is_ok(), "step {step} was not heard of");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_done_once_and_answered_rightly_wherever_its_connection_is_cut() {
    let (url, proxy, through) = proxied("cut");
    let [store, other] = [&through, &url].map(|url| open(url));
    let mut cuts = 0;
    for direction in [Direction::ToDatabase, Direction::ToStore] {
        for passes in [Passes::Nothing, Passes::Half, Passes::All] {
            for piece in 1..=5 {
                let cut = Cut { direction, piece: Piece::Number(piece), passes };
                proxy.arm(cut);
                let names = ["one", "another"].map(|it| format!("{it} {cut:?}"));
                let [first, second] = [&names[0], &names[1]].map(|name| store.execute(user(name)));
                let (first, second) = tokio::join!(first, second);
                for (name, answer) in names.iter().zip([first, second]) {
                    let number = answer.unwrap_or_else(|error| panic!("{cut:?}: {error}")).0;
                    assert_eq!(SERVER.query(&count_of_user("cut", name)), "1", "{cut:?}");
                    let (_, details) = other.get(GetUser(number)).await.unwrap().unwrap();
                    assert_eq!(details.name, *name, "{cut:?}");
                }
                cuts += u32::from(proxy.disarm());
            }
        }
    }
    assert!(cuts >= 12, "only {cuts} connections were cut");
    let users = SERVER.query("SELECT count(*), max(encode(key, 'hex')) FROM cut.users");
    assert_eq!(users, format!("60|{:016x}", 60), "no number is missing, and none was given twice");
}
