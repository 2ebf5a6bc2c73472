//! A relay between a node's notifications and a server that can lose messages.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The length of the greeting that both sides send first (ZMTP 3).
const GREETING_LEN: usize = 64;
/// The bits of the first byte of a frame.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Relays a publisher's messages, and loses them while it is set to.
pub(crate) struct LossyFeed {
    pub(crate) address: String,
    losses: Arc<Losses>,
}

#[derive(Default)]
struct Losses {
    is_losing: AtomicBool,
    lost: AtomicUsize,
    connections: Mutex<Vec<TcpStream>>,
}

impl LossyFeed {
    /// Starts a relay before the publisher at this port.
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let losses = Arc::new(Losses::default());
        let its_losses = Arc::clone(&losses);
        thread::spawn(move || {
            for subscriber in listener.incoming().flatten() {
                let publisher = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let losses = Arc::clone(&its_losses);
                losses.connections.lock().unwrap().push(subscriber.try_clone().unwrap());
                let back = (subscriber.try_clone().unwrap(), publisher.try_clone().unwrap());
                thread::spawn(move || losses.pass_messages(publisher, subscriber));
                thread::spawn(move || io::copy(&mut &back.0, &mut &back.1));
            }
        });
        Self { address, losses }
    }

    /// Sets whether messages are lost from now on.
    pub(crate) fn lose(&self, is_losing: bool) {
        self.losses.is_losing.store(is_losing, Ordering::SeqCst);
    }

    /// Closes the last connection.
    pub(crate) fn cut(&self) {
        let connections = self.losses.connections.lock().unwrap();
        connections.last().unwrap().shutdown(Shutdown::Both).unwrap();
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.losses.connections.lock().unwrap().len()
    }

    /// How many messages were lost.
    pub(crate) fn lost(&self) -> usize {
        self.losses.lost.load(Ordering::SeqCst)
    }
}

impl Losses {
    fn pass_messages(&self, mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
        let mut greeting = [0; GREETING_LEN];
        from.read_exact(&mut greeting)?;
        to.write_all(&greeting)?;
        loop {
            let message = read_message(&mut from)?;
            let is_command = message[0] & COMMAND != 0;
            if self.is_losing.load(Ordering::SeqCst) && !is_command {
                self.lost.fetch_add(1, Ordering::SeqCst);
            } else {
                to.write_all(&message)?;
            }
        }
    }
}

/// Reads a command, or all frames of a message.
fn read_message(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let begin = message.len();
        let flags = read_more(from, 1, &mut message)?[0];
        let mut len = [0; 8];
        let len_len = if flags & LONG != 0 { 8 } else { 1 };
        len[8 - len_len..].copy_from_slice(read_more(from, len_len, &mut message)?);
        read_more(from, u64::from_be_bytes(len) as usize, &mut message)?;
        if message[begin] & MORE == 0 {
            return Ok(message);
        }
    }
}

/// Reads so many bytes, appends them to `message`, and answers them.
fn read_more<'m>(
    from: &mut TcpStream,
    len: usize,
    message: &'m mut Vec<u8>,
) -> io::Result<&'m [u8]> {
    let begin = message.len();
    message.resize(begin + len, 0);
    from.read_exact(&mut message[begin..])?;
    Ok(&message[begin..])
}
