//! A receiver of webhooks, as a shop has one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::Value;

use crate::programs::{Programs, Site};

/// Prints the events that arrive, from now on.
pub(crate) fn receive(site: &Site) {
    let listener = TcpListener::bind(("127.0.0.1", site.ports.webhook)).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || while answer(&stream).unwrap_or(false) {});
        }
    });
}

/// Makes the webhook, unless an earlier start has made it.
pub(crate) fn prepare(programs: &Programs) {
    let url = format!("http://127.0.0.1:{}/", programs.ports.webhook);
    let webhooks = programs.ask(&["webhook", "list"]);
    if !webhooks.to_string().contains(&url) {
        programs.show(&["webhook", "create", &url, "--types", "invoice.*"]);
    }
}

/// Reads a request, prints its event, and accepts it. Answers whether there was one.
fn answer(stream: &TcpStream) -> io::Result<bool> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let header = line.trim_end().to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if header.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if let Ok(event) = serde_json::from_slice::<Value>(&body) {
        let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        println!(
            "\n→ webhook: {} {}",
            word("type"),
            event["data"]["invoiceId"].as_str().unwrap_or("")
        );
    }
    write!(&mut &*stream, "HTTP/1.1 204 No Content\r\n\r\n")?;
    Ok(true)
}
