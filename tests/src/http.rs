//! HTTP of a caller that may be hostile: the bytes are sent unchanged.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::openapi;
use crate::tls::{self, Stream};

/// An answer. Every answer of the server is compared with its OpenAPI files first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The header lines, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, which must be UTF-8.
    pub body: String,
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(present, _)| present == name).map(|(_, value)| value.as_str())
    }

    /// The path and query of the next page in the `Link` header.
    ///
    /// # Panics
    /// If the header has another form.
    pub fn next_page(&self) -> Option<String> {
        let link = self.header("link")?;
        let target = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
        Some(target.unwrap_or_else(|| panic!("{link}")).to_owned())
    }

    fn parse(bytes: &[u8], method: &str) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let is_chunked = headers.contains(&("transfer-encoding".to_owned(), "chunked".to_owned()));
        let body = &bytes[end + 4..];
        let body = if is_chunked && method != "HEAD" { dechunk(body)? } else { body.to_vec() };
        let reply = Self { status, headers, body: String::from_utf8(body).ok()? };
        let announced = reply.header("content-length").and_then(|len| len.parse().ok());
        let is_whole =
            method == "HEAD" || announced.is_none_or(|len: usize| reply.body.len() == len);
        is_whole.then_some(reply)
    }
}

/// The content of a chunked body. `None` if the body is incomplete.
fn dechunk(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let end = body.windows(2).position(|window| window == b"\r\n")?;
        let len = usize::from_str_radix(std::str::from_utf8(&body[..end]).ok()?, 16).ok()?;
        body = &body[end + 2..];
        let chunk = body.get(..len)?;
        body = body[len..].strip_prefix(b"\r\n")?;
        content.extend_from_slice(chunk);
        if len == 0 {
            return body.is_empty().then_some(content);
        }
    }
}

/// A client of a listener.
#[derive(Clone, Debug)]
pub struct Client {
    address: String,
    is_secure: bool,
    /// Whether answers are compared with the OpenAPI file of the listener.
    is_checked: bool,
}

impl Client {
    /// A client of the listener at this host and port.
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), is_secure: false, is_checked: true }
    }

    /// A client of the listener at this `http` or `https` URL, which has no path.
    pub fn at(url: &str) -> Option<Self> {
        let (scheme, address) = url.split_once("://")?;
        let is_secure = scheme == "https";
        Some(Self { address: address.to_owned(), is_secure, is_checked: true })
    }

    /// A client whose answers are not compared with the OpenAPI file: that takes long for long
    /// lists, which some tests read again and again.
    pub fn unchecked(&self) -> Self {
        Self { is_checked: false, ..self.clone() }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// `GET path`.
    pub fn get(&self, path: &str) -> Reply {
        self.request("GET", path, b"")
    }

    /// The elements of a list, page by page.
    ///
    /// # Panics
    /// If an answer is another one.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let (mut elements, mut next) = (Vec::new(), Some(path.to_owned()));
        while let Some(path) = next {
            let reply = self.get(&path);
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
            let page: Vec<Value> = serde_json::from_str(&reply.body).unwrap();
            elements.extend(page);
            next = reply.next_page();
        }
        elements
    }

    /// `POST path` with a JSON body.
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.request("POST", path, body.as_ref())
    }

    /// Any request. The path is sent unchanged.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        self.try_request(method, path, body).unwrap()
    }

    /// Any request, possibly without an answer.
    pub fn try_request(&self, method: &str, path: &str, body: &[u8]) -> io::Result<Reply> {
        self.try_send(method, path, &[("Content-Type", "application/json")], body)
    }

    /// Any request, with these headers in addition to `Host`, `Content-Length` and `Connection`.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.try_send(method, path, headers, body).unwrap()
    }

    /// Any such request, possibly without an answer.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\
             Connection: close\r\n{headers}\r\n",
            self.address,
            body.len()
        );
        let stream = connect(&self.address)?;
        let request = [head.as_bytes(), body].concat();
        let reply = match self.is_secure {
            true => exchange_over(tls::over(stream), &request, method),
            false => exchange_over(stream, &request, method),
        }?;
        if self.is_checked {
            openapi::check(&self.address, &request, &reply);
        }
        Ok(reply)
    }
}

/// How long a server may be silent.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long a whole answer may take. A stream of events never ends by itself.
const LONGEST_ANSWER: Duration = Duration::from_secs(300);

/// Sends a request with an unchanged path, and reads the answer.
pub fn request(address: &str, method: &str, path: &str, body: &[u8]) -> io::Result<Reply> {
    Client::new(address).try_request(method, path, body)
}

/// Sends `request` and reads the answer. The request must ask for the connection to be closed.
/// Fails if the answer is incomplete.
///
/// # Panics
/// If the answer is not as the OpenAPI file of the listener describes it.
pub fn exchange(address: &str, request: &[u8], method: &str) -> io::Result<Reply> {
    let reply = exchange_over(connect(address)?, request, method)?;
    openapi::check(address, request, &reply);
    Ok(reply)
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

fn exchange_over(mut stream: impl Stream, request: &[u8], method: &str) -> io::Result<Reply> {
    let deadline = Instant::now() + LONGEST_ANSWER;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the answer does not end"));
        }
    }
    Reply::parse(&answer, method).ok_or_else(|| {
        let answer = String::from_utf8_lossy(&answer).into_owned();
        io::Error::new(io::ErrorKind::UnexpectedEof, format!("no whole answer: {answer:?}"))
    })
}
