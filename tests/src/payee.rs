//! A payee that a test controls. It can also do what no honest payee does.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_tx::{PrivateKey, Script, Transaction, TxOut};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::tls::{self, Stream};

/// A server that offers terms and receives payments. It stops when dropped.
pub struct Payee {
    scheme: &'static str,
    address: SocketAddr,
    desk: Arc<Desk>,
}

/// A request to a payee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The header lines, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A payee's reaction to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// It sends these bytes, keeps the connection and sends nothing more.
    Stalled(Vec<u8>),
    /// It sends these bytes and then what comes, and closes the connection when nothing more can come.
    Stream(Vec<u8>, Arc<Mutex<mpsc::Receiver<Vec<u8>>>>),
}

type Behaviour = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

struct Desk {
    on_get: Mutex<Behaviour>,
    on_post: Mutex<Behaviour>,
    requests: Mutex<Vec<Request>>,
    /// The connections that stay open and silent.
    stalled: Mutex<Vec<Box<dyn Stream>>>,
    is_closed: AtomicBool,
    tls: Option<Arc<ServerConfig>>,
}

impl Payee {
    /// A payee that asks for these terms, and accepts every payment without broadcasting it.
    pub fn asking(terms: &Value) -> Self {
        Self::start(terms, None)
    }

    /// Such a payee over TLS, for clients that trust [`tls::authority`].
    pub fn secure(terms: &Value) -> Self {
        Self::start(terms, Some(tls::server_config("payee")))
    }

    fn start(terms: &Value, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let terms = Answer::json(200, terms);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let desk = Arc::new(Desk {
            on_get: Mutex::new(Arc::new(move |_| terms.clone())),
            on_post: Mutex::new(Arc::new(Answer::accept)),
            requests: Mutex::default(),
            stalled: Mutex::default(),
            is_closed: AtomicBool::new(false),
            tls,
        });
        let open = Arc::clone(&desk);
        thread::spawn(move || open.serve(&listener));
        Self { scheme, address, desk }
    }

    /// Sets its reaction to requests for terms.
    pub fn on_get(&self, behaviour: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        *self.desk.on_get.lock().unwrap() = Arc::new(behaviour);
    }

    /// Sets its reaction to payments.
    pub fn on_post(&self, behaviour: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        *self.desk.on_post.lock().unwrap() = Arc::new(behaviour);
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Its payment URL.
    pub fn url(&self) -> String {
        format!("{}://{}/api/v1/payment/order-1", self.scheme, self.address)
    }

    /// The requests with this method so far.
    pub fn requests(&self, method: &str) -> Vec<Request> {
        let requests = self.desk.requests.lock().unwrap();
        requests.iter().filter(|request| request.method == method).cloned().collect()
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.desk.requests.lock().unwrap().len()
    }

    /// The transaction of the only payment. It may have been posted several times.
    ///
    /// # Panics
    /// If there was no payment, or there were different ones.
    pub fn paid_with(&self) -> Transaction {
        let posts = self.requests("POST");
        let first = posts.first().expect("nothing was posted");
        assert!(posts.iter().all(|post| post.body == first.body), "different payments were posted");
        first.transaction()
    }
}

impl Drop for Payee {
    fn drop(&mut self) {
        self.desk.is_closed.store(true, Ordering::SeqCst);
        self.desk.stalled.lock().unwrap().clear();
        // The first connection wakes the thread, which then ends with its listener.
        while TcpStream::connect(self.address).is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl fmt::Debug for Payee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payee({})", self.address)
    }
}

impl Desk {
    fn serve(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            let desk = Arc::clone(self);
            // A payer may hang up at any moment.
            thread::spawn(move || stream.ok().and_then(|stream| desk.accept(stream)));
        }
    }

    fn accept(&self, stream: TcpStream) -> Option<()> {
        match &self.tls {
            None => self.answer(Box::new(stream)),
            Some(tls) => {
                let connection = ServerConnection::new(Arc::clone(tls)).ok()?;
                self.answer(Box::new(StreamOwned::new(connection, stream)))
            }
        }
    }

    fn answer(&self, mut stream: Box<dyn Stream>) -> Option<()> {
        let request = Request::read(&mut stream)?;
        self.requests.lock().unwrap().push(request.clone());
        let behaviour = if request.method == "POST" { &self.on_post } else { &self.on_get };
        let behaviour = Arc::clone(&behaviour.lock().unwrap());
        match behaviour(&request) {
            Answer::Bytes(bytes) => stream.write_all(&bytes).and_then(|()| stream.flush()).ok()?,
            Answer::Stalled(bytes) => {
                stream.write_all(&bytes).ok()?;
                self.stalled.lock().unwrap().push(stream);
            }
            Answer::Stream(bytes, parts) => {
                stream.write_all(&bytes).and_then(|()| stream.flush()).ok()?;
                while let Ok(part) = parts.lock().unwrap().recv() {
                    stream.write_all(&part).and_then(|()| stream.flush()).ok()?;
                }
            }
        }
        Some(())
    }
}

impl Request {
    fn read(stream: &mut impl Read) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            read_more(stream, &mut bytes)?;
        };
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter_map(header).collect();
        let mut request = Self { method, path, headers, body: Vec::new() };
        let len = request.header("content-length").map_or(Some(0), |len| len.parse().ok())?;
        while bytes.len() < end + 4 + len {
            read_more(stream, &mut bytes)?;
        }
        request.body = bytes.split_off(end + 4);
        Some(request)
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(present, _)| present == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The transaction of a payment in any dialect.
    ///
    /// # Panics
    /// If there is none.
    pub fn transaction(&self) -> Transaction {
        let body = self.json();
        let places = [&body["rawTx"], &body["mode"]["transactions"][0], &body["transaction"]];
        let hex = places.iter().find_map(|place| place.as_str()).expect("it is no payment");
        Transaction::from_hex(hex).unwrap()
    }
}

fn read_more(stream: &mut impl Read, bytes: &mut Vec<u8>) -> Option<()> {
    let mut part = [0; 64 * 1024];
    let len = stream.read(&mut part).ok().filter(|len| *len > 0)?;
    bytes.extend_from_slice(&part[..len]);
    Some(())
}

impl Answer {
    /// An answer without any byte.
    pub fn silence() -> Self {
        Self::Stalled(Vec::new())
    }

    /// Any JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, &body.to_string())
    }

    /// Any text, with the content type of JSON.
    pub fn text(status: u16, body: &str) -> Self {
        Self::with(status, &[("Content-Type", "application/json")], body.as_bytes())
    }

    /// Any answer with these headers.
    pub fn with(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        Self::Bytes([head.as_bytes(), body].concat())
    }

    /// A redirect that keeps the method.
    pub fn redirect(location: &str) -> Self {
        let head = format!(
            "HTTP/1.1 307 Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        Self::Bytes(head.into_bytes())
    }

    /// The acknowledgement of a payment, in its dialect and without a peer channel.
    pub fn accept(payment: &Request) -> Self {
        let body = payment.json();
        let txid = payment.transaction().txid().to_string();
        let acknowledgement = if body["rawTx"].is_string() {
            json!({ "id": "order-1", "tx_id": txid, "memo": "thanks", "peer_channel": null })
        } else if body["mode"].is_object() {
            json!({ "modeId": body["modeId"], "mode": { "transactionIds": [txid] } })
        } else {
            json!({ "payment": body, "memo": "thanks" })
        };
        Self::json(201, &acknowledgement)
    }
}

/// A P2PKH output of a key that nobody has.
pub fn output(satoshis: u64) -> TxOut {
    let key = PrivateKey::generate().unwrap().public_key();
    TxOut { satoshis, locking_script: Script::p2pkh(&key.hash()) }
}

/// Terms of go-dpp that ask for these outputs and are valid for a day. The quoted fee is 50
/// satoshis per 1000 bytes.
pub fn go_dpp_terms(outputs: &[TxOut]) -> Value {
    let fee = json!({ "satoshis": 50, "bytes": 1000 });
    let fees = json!({ "miningFee": fee, "relayFee": fee });
    json!({
        "network": "regtest",
        "ancestryRequired": false,
        "destinations": { "outputs": listed(outputs) },
        "creationTimestamp": Timestamp::of_system().to_string(),
        "expirationTimestamp": tomorrow().to_string(),
        "memo": "order 1",
        "merchantData": { "name": "shop", "extendedData": { "paymentReference": "order-1" } },
        "fees": { "data": fees, "standard": fees },
    })
}

/// Terms of BRC-27 that ask for these outputs and are valid for a day. The quoted fee is 50
/// satoshis per 1000 bytes.
pub fn brc_terms(outputs: &[TxOut]) -> Value {
    let fee = json!({ "satoshis": 50, "bytes": 1000 });
    let transaction = json!({
        "outputs": { "native": listed(outputs) },
        "policies": { "fees": { "data": fee, "standard": fee }, "SPVRequired": false },
    });
    json!({
        "network": "regtest",
        "version": "1.0",
        "creationTimestamp": seconds(Timestamp::of_system()),
        "expirationTimestamp": seconds(tomorrow()),
        "memo": "order 1",
        "beneficiary": { "name": "shop", "paymentReference": "order-1" },
        "modes": { "ef63d9775da5": { "choiceID0": { "transactions": [transaction] } } },
    })
}

/// Terms of BIP270 that ask for these outputs and are valid for a day.
pub fn bip270_terms(outputs: &[TxOut]) -> Value {
    json!({
        "network": "test",
        "outputs": listed(outputs),
        "creationTimestamp": seconds(Timestamp::of_system()),
        "expirationTimestamp": seconds(tomorrow()),
        "memo": "order 1",
        "merchantData": "order-1",
    })
}

fn listed(outputs: &[TxOut]) -> Vec<Value> {
    let listed = outputs.iter().map(|output| {
        let script = output.locking_script.to_hex();
        json!({ "amount": output.satoshis, "script": script, "description": "goods" })
    });
    listed.collect()
}

fn tomorrow() -> Timestamp {
    Timestamp::of_system().after(Duration::from_secs(24 * 60 * 60))
}

fn seconds(time: Timestamp) -> u64 {
    time.as_micros() / 1_000_000
}
