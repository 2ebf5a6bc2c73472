use std::borrow::Cow;

use serde::Deserialize;

use super::json::{self, HexBytes};
use super::payment::PaymentError;

/// Reads a body that is only a transaction: its bytes, its hexadecimal digits, or a JSON object
/// with these digits in `rawTx`. The transaction is not decoded.
pub fn read_posted_transaction(body: &[u8]) -> Result<Cow<'_, [u8]>, PaymentError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        raw_tx: HexBytes,
    }
    let text = body.trim_ascii();
    if text.is_empty() {
        return Err(PaymentError::Nothing);
    }
    if text.starts_with(b"{") {
        let Body { raw_tx: HexBytes(bytes) } = json::read(body).map_err(PaymentError::Malformed)?;
        return Ok(Cow::Owned(bytes));
    }
    // The version of a transaction and the first bytes of a BEEF contain bytes that are not digits.
    if !text.iter().all(u8::is_ascii_hexdigit) {
        return Ok(Cow::Borrowed(body));
    }
    let bytes = hex::decode(text).map_err(|error| PaymentError::Malformed(error.to_string()))?;
    Ok(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_digits_and_json_are_told_apart() {
        for (body, bytes) in [
            (&b"\x01\0\0\0\x7b"[..], "010000007b"),
            (b"\x01\x01\x01\x01", "01010101"),
            (b"0100x\n", "30313030780a"),
        ] {
            assert_eq!(hex::encode(read_posted_transaction(body).unwrap()), bytes);
        }
        for text in [
            "0100beef",
            "0100BEEF\r\n",
            " 0100beef",
            r#"{"rawTx":"0100beef"}"#,
            "\n{\"rawTx\": \"0100BEEF\", \"memo\": 1}\n",
        ] {
            assert_eq!(
                *read_posted_transaction(text.as_bytes()).unwrap(),
                [1, 0, 0xbe, 0xef],
                "{text}"
            );
        }
    }

    #[test]
    fn a_body_without_a_transaction_is_refused_with_a_reason() {
        for (body, reason) in [
            (&b""[..], "empty"),
            (b" \n", "empty"),
            (b"0100bee", "Odd number of digits"),
            (b"{}", "missing field `rawTx`"),
            (b"{\"rawTx\":\"0x00\"}", "must be hexadecimal"),
            (b"{\"rawTx\":[1]}", "a string of hexadecimal digits"),
            (b"{\"rawTx\":\"00\"} {", "trailing characters"),
            (b"{\"rawTx\":\"\xff\"}", "not UTF-8"),
        ] {
            let error = read_posted_transaction(body).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
