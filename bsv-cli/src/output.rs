use std::io::{self, BufRead, Read, Write};

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use serde_json::Value;

/// Prints a whole answer.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Asks a question on the terminal; only a clear yes counts.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().take(16).read_line(&mut answer)?;
    if !answer.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// What a refusal says: the detail of a problem document, or the text that it is. It may quote what
/// others wrote.
pub(crate) fn reason(body: &str) -> String {
    let problem: Value = serde_json::from_str(body).unwrap_or_default();
    printable(problem["detail"].as_str().unwrap_or(body))
}

/// What was imported.
pub(crate) fn imported(answer: &Value) -> String {
    let aliases = answer["aliases"].as_array().into_iter().flatten().filter_map(Value::as_str);
    aliases.map(|alias| format!("Imported alias \"{alias}\"\n")).collect()
}

/// A user, a line per field.
pub(crate) fn user(user: &Value) -> String {
    let mut text = format!("User {}\n", user["id"]);
    for (name, value) in [
        ("name", &user["name"]),
        ("email", &user["email"]),
        ("avatar", &user["avatar"]),
        ("address", &user["address"]),
        ("phone number", &user["phoneNumber"]),
        ("public key", &user["extendedData"]["pki"]),
    ] {
        text.push_str(&field(name, value));
    }
    text
}

/// What a payment came to.
pub(crate) fn paid(result: &Value) -> String {
    ["Paid\n".to_owned(), field("id", &result["id"]), field("transaction", &result["tx_id"])]
        .concat()
        + &field("memo", &result["memo"])
}

/// A table of payments by the wallet.
pub(crate) fn payments(payments: &Value) -> String {
    let payments = payments.as_array().map(Vec::as_slice).unwrap_or_default();
    if payments.is_empty() {
        return "There is no payment\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["id", "state", "satoshis", "fee", "block", "transaction", "paid to"]);
    for payment in payments {
        let text = |name: &str| printable(payment[name].as_str().unwrap_or_default());
        let number = |name: &str| payment[name].as_u64().map_or(String::new(), |n| n.to_string());
        table.add_row([
            number("id"),
            text("state"),
            number("satoshis"),
            number("fee"),
            number("blockHeight"),
            text("txid"),
            text("url"),
        ]);
    }
    format!("{table}\n")
}

/// A token that has just been made: the only time that it is shown.
pub(crate) fn new_token(token: &Value) -> String {
    format!(
        "{}\nThis is token {}. It is not shown again.\n",
        token["token"].as_str().unwrap_or_default(),
        token["id"].as_str().unwrap_or_default()
    )
}

/// A table of tokens.
pub(crate) fn tokens(tokens: &Value) -> String {
    let tokens = tokens.as_array().map(Vec::as_slice).unwrap_or_default();
    if tokens.is_empty() {
        return "There is no token: make one with token create\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["id", "label", "scopes", "created", "expires"]);
    for token in tokens {
        let text = |name: &str| printable(token[name].as_str().unwrap_or_default());
        let scopes = token["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let expires = match token["isExpired"].as_bool() {
            Some(true) => format!("expired {}", text("expiresAt")),
            _ => text("expiresAt"),
        };
        let scopes = scopes.collect::<Vec<_>>().join("\n");
        table.add_row([text("id"), text("label"), scopes, text("createdAt"), expires]);
    }
    format!("{table}\n")
}

/// A line that shows a field which is not empty.
pub(crate) fn field(name: &str, value: &Value) -> String {
    match value.as_str() {
        Some(value) if !value.is_empty() => format!("{name:<13}{}\n", printable(value)),
        _ => String::new(),
    }
}

/// What makes a terminal show the text around it in another direction.
const TURNS_TEXT: [char; 12] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Text that others wrote, with nothing in it that steers a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || TURNS_TEXT.contains(&c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A table of identities.
pub(crate) fn identities(identities: &Value) -> String {
    let identities = identities.as_array().map(Vec::as_slice).unwrap_or_default();
    if identities.is_empty() {
        return "There is no identity: make one with generateminerid\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "alias",
        "protocol",
        "miner id",
        "keys",
        "VCTx or revocation key",
        "announced",
    ]);
    for identity in identities {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let vctx = &identity["vctx"];
        let vctx = match (vctx["outpoint"].as_str(), identity["revocationKey"].as_str()) {
            (Some(outpoint), _) => format!("{} {outpoint}", text(&vctx["state"])),
            (None, Some(revocation_key)) => revocation_key.to_owned(),
            (None, None) => text(&vctx["state"]),
        };
        let announced = identity["announced"].as_array().into_iter().flatten();
        let announced: Vec<_> = announced.filter_map(Value::as_str).map(announcement).collect();
        let announced = match identity["state"].as_str() {
            Some("closed") => "closed".to_owned(),
            _ => announced.join("\n"),
        };
        let keys = identity["minerIds"].as_array().map_or(0, Vec::len);
        table.add_row([
            text(&identity["alias"]),
            text(&identity["protocol"]),
            text(&identity["minerId"]),
            keys.to_string(),
            vctx,
            announced,
        ]);
    }
    format!("{table}\n")
}

fn announcement(name: &str) -> &str {
    match name {
        "rotation" => "rotation",
        "revocationKey" => "new revocation key",
        "partialRevocation" | "completeRevocation" => "revocation",
        other => other,
    }
}
