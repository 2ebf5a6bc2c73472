//! Access: who may send which requests, how much a stranger can make the server hold, and that no
//! secret leaks.

mod blind_signing;
mod browsers;
mod certificates;
mod crowd;
mod guarded;
mod handshakes;
mod health;
mod jwt;
mod lasting;
mod logs;
mod node_listener;
mod payers;
mod routes;
mod secrets;
mod stalled;
mod tls;
mod token_file;
mod tokens;

use guarded::Guarded;
