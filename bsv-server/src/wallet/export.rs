//! Movements of money for bookkeeping, as CSV or JSON.

use std::borrow::Cow;
use std::sync::Arc;

use bsv_invoicing::movements::{Movement, MovementKind, MovementPage, MovementQuery};
use bsv_invoicing::{Error, Timestamp, Wallet};
use bsv_tx::Network;
use bytes::Bytes;
use hyper::{Method, Uri};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::list::{PAUSE, Streams};
use crate::http::{self, Answer, Problem, answer};

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
}

/// The parameters of a request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    format: Format,
    query: MovementQuery,
}

impl Asked {
    /// Parses the query. Reports all faults at once.
    fn parse(uri: &Uri) -> Result<Self, Problem> {
        let (from, to) = (Timestamp::from_micros(0), Timestamp::MAX);
        let query = MovementQuery { after: 0, from, to };
        let mut asked = Self { format: Format::Json, query };
        let mut problem = http::read_parameters(uri, |name, value| asked.set(name, value));
        if asked.query.from > asked.query.to {
            problem = problem.with_field("to", &["must not be before from".to_owned()]);
        }
        problem.unless_faulty(asked)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "from" => self.query.from = time(value)?,
            "to" => self.query.to = time(value)?,
            "format" => match value {
                "json" => self.format = Format::Json,
                "csv" => self.format = Format::Csv,
                _ => return Err("must be csv or json".to_owned()),
            },
            _ => return Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
        Ok(())
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "must be a time such as 2026-11-01T00:00:00Z".to_owned())
}

/// A movement, in the order of the columns.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    time: Timestamp,
    r#type: &'static str,
    /// The received amount, or the negative of the spent amount without the fee.
    satoshis: i64,
    fee: u64,
    txid: String,
    vout: Option<u32>,
    state: &'static str,
    block_height: Option<u32>,
    block_hash: Option<String>,
    block_time: Option<Timestamp>,
    invoice: Option<String>,
    reference: Option<Cow<'a, str>>,
    description: Option<Cow<'a, str>>,
    to: Option<&'a str>,
    withdrawal: Option<u64>,
    bytes_dropped: bool,
    network: &'static str,
}

impl<'a> Row<'a> {
    /// `written` converts text that the owner or a customer has written.
    fn new(movement: &'a Movement, network: Network, written: fn(&'a str) -> Cow<'a, str>) -> Self {
        let Movement { at, kind, received, sent, fee, txid, vout, state, block, .. } = movement;
        let invoice = kind.invoice();
        Self {
            time: *at,
            r#type: kind.name(),
            satoshis: received.cast_signed().saturating_sub_unsigned(*sent),
            fee: *fee,
            txid: txid.to_string(),
            vout: *vout,
            state: state.name(),
            block_height: block.map(|block| block.height),
            block_hash: block.map(|block| block.hash.to_string()),
            block_time: movement.block_time,
            invoice: invoice.map(|it| it.id.to_string()),
            reference: invoice.and_then(|it| it.reference.as_deref()).map(written),
            description: invoice.and_then(|it| it.description.as_deref()).map(written),
            to: kind.recipient(),
            withdrawal: match kind {
                MovementKind::Withdrawal(number, _) => Some(*number),
                _ => None,
            },
            bytes_dropped: movement.are_bytes_dropped,
            network: network.name(),
        }
    }
}

/// Makes a spreadsheet show a text instead of computing it as a formula.
fn plain(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => Cow::Owned(["'", text].concat()),
        false => Cow::Borrowed(text),
    }
}

/// Writes movements, part by part.
struct Export {
    format: Format,
    network: Network,
    has_begun: bool,
}

impl Export {
    /// The text of a part. No part follows the last one.
    fn write(&mut self, movements: &[Movement], is_last: bool) -> Vec<u8> {
        match self.format {
            Format::Csv => self.write_csv(movements),
            Format::Json => self.write_json(movements, is_last),
        }
    }

    fn write_csv(&mut self, movements: &[Movement]) -> Vec<u8> {
        let mut writer = csv::WriterBuilder::new()
            .has_headers(false)
            .terminator(csv::Terminator::CRLF)
            .from_writer(Vec::new());
        if !std::mem::replace(&mut self.has_begun, true) {
            writer.write_record(COLUMNS).expect("memory can be written to");
        }
        for movement in movements {
            writer
                .serialize(Row::new(movement, self.network, plain))
                .expect("a row has the columns");
        }
        writer.into_inner().expect("memory can be written to")
    }

    fn write_json(&mut self, movements: &[Movement], is_last: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for movement in movements {
            text.push(if std::mem::replace(&mut self.has_begun, true) { b',' } else { b'[' });
            serde_json::to_writer(&mut text, &Row::new(movement, self.network, Cow::Borrowed))
                .expect("rows consist of strings and numbers");
        }
        if is_last {
            text.extend_from_slice(if self.has_begun { b"]" } else { b"[]" });
        }
        text
    }
}

const COLUMNS: [&str; 17] = [
    "time",
    "type",
    "satoshis",
    "fee",
    "txid",
    "vout",
    "state",
    "blockHeight",
    "blockHash",
    "blockTime",
    "invoice",
    "reference",
    "description",
    "to",
    "withdrawal",
    "bytesDropped",
    "network",
];

/// Answers all movements in a period. The first part is read before the answer begins, so that an
/// error in reading it is reported.
pub(super) async fn answer(
    wallet: &Arc<Wallet>,
    streams: &Streams,
    uri: &Uri,
    method: &Method,
) -> Result<Answer, Problem> {
    let Asked { format, query } = Asked::parse(uri)?;
    let place = streams.begin().await?;
    let first = wallet.movements(query).await?;
    // Besides the part that waits here, one is being sent and one is being made.
    let (parts, body) = mpsc::channel(1);
    let answer = match format {
        Format::Csv => answer::csv_stream(body),
        Format::Json => answer::json_stream(body),
    };
    if *method == Method::HEAD {
        let _ = parts.try_send(None);
        return Ok(answer);
    }
    let export = Export { format, network: wallet.network(), has_begun: false };
    let wallet = Arc::clone(wallet);
    tokio::spawn(async move {
        let _place = place;
        if let Err(error) = send_all(&wallet, export, query, first, &parts).await {
            tracing::error!("an export was cut off: {error}");
        }
    });
    Ok(answer)
}

/// Sends part by part, up to the last one or until the reader is gone.
async fn send_all(
    wallet: &Wallet,
    mut export: Export,
    mut query: MovementQuery,
    mut page: MovementPage,
    parts: &mpsc::Sender<Option<Bytes>>,
) -> Result<(), Error> {
    loop {
        let part = export.write(&page.movements, page.next.is_none());
        if !part.is_empty() {
            // Sending fails if the reader is gone or the connection was given up.
            let _ = parts.send(Some(part.into())).await;
        }
        let Some(next) = page.next else {
            let _ = parts.send(None).await;
            return Ok(());
        };
        if parts.is_closed() {
            return Ok(());
        }
        query.after = next;
        sleep(PAUSE).await;
        page = wallet.movements(query).await?;
    }
}
