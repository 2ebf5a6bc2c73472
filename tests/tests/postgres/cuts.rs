//! Connections that are cut at every point of a batch: before, amid and after each send and each answer.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use bsv_invoicing::WalletStore;
use tempfile::TempDir;

use crate::postgres::{SERVER, open, user};

/// What begins a batch.
const DOOR: &[u8] = b"SELECT 1 FROM door FOR UPDATE";
/// The name of the socket in its directory.
const SOCKET: &str = ".s.PGSQL.5432";

/// Where a connection is cut, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    direction: Direction,
    /// Which piece that goes there is affected, from the one that begins a batch on.
    piece: usize,
    passes: Passes,
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
}

/// The pieces of a connection that have passed each way since a batch began.
type Counts = Arc<Mutex<Option<[usize; 2]>>>;

impl Proxy {
    fn before(database: String) -> Self {
        let (dir, cut) = (tempfile::tempdir().unwrap(), Arc::<Mutex<Option<Cut>>>::default());
        let listener = UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let of_connections = Arc::clone(&cut);
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
                    thread::spawn(move || pass_on(direction, from, to, &cut, &counts));
                }
            }
        });
        Self { dir, cut }
    }

    fn arm(&self, cut: Cut) {
        *self.cut.lock().unwrap() = Some(cut);
    }

    /// Answers whether it has cut.
    fn disarm(&self) -> bool {
        self.cut.lock().unwrap().take().is_none()
    }
}

fn pass_on(
    direction: Direction,
    mut from: UnixStream,
    mut to: UnixStream,
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
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
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
    if direction != armed.direction || *count != armed.piece {
        return None;
    }
    *cut = None;
    Some(armed.passes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_done_once_and_answered_rightly_wherever_its_connection_is_cut() {
    let url = SERVER.url("cut");
    let database = url.split_once("host=").unwrap().1.split_once('&').unwrap().0.to_owned();
    let proxy = Proxy::before(database.clone());
    let through = url.replace(&database, proxy.dir.path().to_str().unwrap());
    let store = open(&through);
    let mut cuts = 0;
    for direction in [Direction::ToDatabase, Direction::ToStore] {
        for passes in [Passes::Nothing, Passes::Half, Passes::All] {
            for piece in 1..=5 {
                let cut = Cut { direction, piece, passes };
                proxy.arm(cut);
                let names = ["one", "another"].map(|it| format!("{it} {cut:?}"));
                let [first, second] = [&names[0], &names[1]].map(|name| store.execute(user(name)));
                let (first, second) = tokio::join!(first, second);
                for (name, answer) in names.iter().zip([first, second]) {
                    let number = answer.unwrap_or_else(|error| panic!("{cut:?}: {error}")).0;
                    let there = SERVER.query(&format!(
                        "SELECT id FROM cut.wallet_user WHERE convert_from(name, 'UTF8') = '{name}'"
                    ));
                    assert_eq!(there, number.to_string(), "{cut:?}");
                }
                cuts += u32::from(proxy.disarm());
            }
        }
    }
    assert!(cuts >= 12, "only {cuts} connections were cut");
    let users = SERVER.query("SELECT count(*) - max(id), max(id) FROM cut.wallet_user");
    assert_eq!(users, "0|60", "no number is missing, and none was given twice");
}
