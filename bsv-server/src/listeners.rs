//! The listening sockets: those handed over to this process, and those that it creates.

use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;

use listenfd::ListenFd;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::{TcpListener, TcpSocket};

use crate::api::Api;
use crate::config::{Config, TlsFiles};
use crate::http::Tls;
use crate::start_error::StartError;

/// A listener, with its TLS if it uses TLS.
pub(crate) type BoundListener = (Api, TcpListener, Option<Arc<Tls>>);

/// Listening sockets that a service manager hands over to the process. While no server accepts,
/// connections wait, so that a restart refuses nobody.
#[derive(Debug, Default)]
pub struct HandedSockets(Vec<net::TcpListener>);

impl HandedSockets {
    /// Takes the sockets that the environment announces (`LISTEN_FDS` and `LISTEN_PID`, see
    /// sd_listen_fds(3)).
    pub fn from_environment() -> io::Result<Self> {
        let mut handed = ListenFd::from_env();
        let sockets = (0..handed.len()).map(|place| handed.take_tcp_listener(place));
        Ok(Self(sockets.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect()))
    }

    /// Whether there are no sockets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The socket that listens on an address.
    fn take(&mut self, address: SocketAddr) -> Option<net::TcpListener> {
        let listens_there = |it: &net::TcpListener| it.local_addr().is_ok_and(|at| at == address);
        let place = self.0.iter().position(listens_there)?;
        Some(self.0.swap_remove(place))
    }
}

/// Listens on all addresses, with the sockets that were handed over for them. Ports that the system
/// chooses are written into the configuration.
pub(crate) fn listen(
    config: &mut Config,
    mut handed: HandedSockets,
) -> Result<Vec<BoundListener>, StartError> {
    let mut doors = Vec::new();
    let mut bind = |api, address: &mut SocketAddr, setting, files: &Option<TlsFiles>| {
        let tls = files.clone().map(|files| Tls::open(setting, files)).transpose()?;
        let listener = match handed.take(*address) {
            Some(socket) => take_over(socket),
            None => listen_at(*address),
        };
        let listener = listener.map_err(StartError::listen(address.to_string()))?;
        *address = listener.local_addr()?;
        doors.push((api, listener, tls.map(Arc::new)));
        Ok::<_, StartError>(())
    };
    if let Some(minerid) = &mut config.minerid {
        bind(Api::MinerId, &mut minerid.address, "tls", &minerid.tls)?;
        if let Some(listener) = &mut minerid.node_listener {
            bind(Api::Node, &mut listener.address, "minerid.nodeListener", &None)?;
        }
    }
    if let Some(wallet) = &mut config.wallet {
        bind(Api::Wallet, &mut wallet.address, "wallet.tls", &wallet.tls)?;
        let payments = &mut wallet.payments;
        bind(Api::Payments, &mut payments.address, "payments.tls", &payments.tls)?;
    }
    match handed.0.first() {
        Some(unwanted) => Err(StartError::UnwantedSocket(unwanted.local_addr()?)),
        None => Ok(doors),
    }
}

/// How much of an answer the system buffers for its reader, in bytes. With a larger buffer, a slow
/// reader would seem to take nothing for a long time.
const SEND_BUFFER_LEN: u32 = 256 << 10;
/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

fn take_over(socket: net::TcpListener) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    set_socket_send_buffer_size(&socket, SEND_BUFFER_LEN as usize)?;
    TcpListener::from_std(socket)
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Lets a restarted server take its port at once.
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_LEN)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
