use bsv_invoicing::{BodyError, Error};
use bsv_store::StoreError;
use hyper::StatusCode;

use crate::http::Problem;
use crate::request_id::RequestId;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        Self::from(Error::from(error))
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Malformed(_) => Self::new(StatusCode::BAD_REQUEST, "malformed-body", text),
            Error::Invalid(errors) => {
                let problem = Self::new(StatusCode::BAD_REQUEST, "invalid-fields", text);
                errors
                    .iter()
                    .fold(problem, |problem, (field, messages)| problem.with_field(field, messages))
            }
            Error::BadIdempotencyKey(_) => {
                Self::new(StatusCode::BAD_REQUEST, "bad-idempotency-key", text)
            }
            Error::UnknownInvoice(_) => Self::new(StatusCode::NOT_FOUND, "unknown-invoice", text),
            Error::CursorAhead { .. } => Self::new(StatusCode::CONFLICT, "cursor-ahead", text),
            Error::UnknownWebhook(_) => Self::new(StatusCode::NOT_FOUND, "unknown-webhook", text),
            Error::UnknownDelivery { .. } => {
                Self::new(StatusCode::NOT_FOUND, "unknown-delivery", text)
            }
            Error::TooManyWebhooks(_) => Self::new(StatusCode::CONFLICT, "too-many-webhooks", text),
            Error::TwoSecrets(_) => Self::new(StatusCode::CONFLICT, "two-secrets", text),
            Error::UnknownUser(_) => Self::new(StatusCode::NOT_FOUND, "unknown-user", text),
            Error::Paid(_) | Error::PaidForever(_) => {
                Self::new(StatusCode::CONFLICT, "invoice-paid", text)
            }
            Error::InFlight(_) => Self::new(StatusCode::CONFLICT, "payment-in-flight", text),
            Error::PaymentRunning => Self::new(StatusCode::CONFLICT, "payment-running", text),
            Error::NotOpen(..) => Self::new(StatusCode::CONFLICT, "payment-not-open", text),
            Error::UnknownPayment(_) => Self::new(StatusCode::NOT_FOUND, "unknown-payment", text),
            Error::UnknownChannel => Self::new(StatusCode::NOT_FOUND, "unknown-channel", text),
            Error::BadTransaction(_) => Self::new(StatusCode::BAD_REQUEST, "bad-transaction", text),
            Error::WrongOutputs(_) => Self::new(StatusCode::BAD_REQUEST, "wrong-outputs", text),
            Error::Expired(_) => impossible("invoice-expired", text),
            Error::UnknownInput { .. } | Error::UnknownAncestorInput { .. } => {
                impossible("unknown-inputs", text)
            }
            Error::BadAncestry(_) => impossible("bad-ancestry", text),
            Error::FeeTooLow { .. } => impossible("fee-too-low", text),
            Error::TooManyAncestors { .. } | Error::TooManyCheapAncestors { .. } => {
                impossible("too-many-ancestors", text)
            }
            Error::NotFinal { .. } => impossible("not-final", text),
            Error::Underpaid { .. } => impossible("underpaid", text),
            Error::Late => impossible("payment-late", text),
            Error::Waiting => impossible("payment-waiting", text),
            Error::UnpayableTerms(_) => impossible("unpayable-terms", text),
            Error::TooSmall { .. } => impossible("too-small", text),
            Error::TooManyCoins(_) => impossible("too-many-coins", text),
            Error::NothingToRefund(_) => impossible("nothing-to-refund", text),
            Error::RefundTooLarge { .. } => impossible("refund-too-large", text),
            Error::RefundMustWait(_) => impossible("refund-must-wait", text),
            Error::RefundToNeeded => impossible("refund-to-needed", text),
            Error::UnknownWithdrawal(_) => {
                Self::new(StatusCode::NOT_FOUND, "unknown-withdrawal", text)
            }
            Error::EarlierAttempt(_) => {
                Self::new(StatusCode::CONFLICT, "earlier-payment-open", text)
            }
            Error::NoBeef(_) => impossible("no-beef", text),
            Error::BytesDropped(_) => impossible("bytes-dropped", text),
            Error::RefusedByNetwork(_) => impossible("refused-by-network", text),
            Error::PayeeRefuses(_) => impossible("refused-by-payee", text),
            Error::OverLimit { .. } => impossible("over-limit", text),
            Error::FeeTooHigh { .. } => impossible("fee-too-high", text),
            Error::InsufficientFunds { .. } => impossible("insufficient-funds", text),
            Error::PayeeNonsense(_) => Self::new(StatusCode::BAD_GATEWAY, "payee-nonsense", text),
            Error::PayeeAway(_) => away("payee-unavailable", text),
            Error::OutcomeUnknown(_) => away("payment-outcome-unknown", text),
            Error::NetworkAway(_) => away("network-unavailable", text),
            Error::UnknownBlock { .. } => away("unknown-block", text),
            Error::KeyReused => Self::new(StatusCode::CONFLICT, "idempotency-key-reused", text),
            Error::Full(_) => {
                tracing::error!(request = RequestId::current(), "{text}");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "wallet-full", text)
            }
            Error::Store(
                StoreError::NoSpace { .. }
                | StoreError::File(_)
                | StoreError::Open { .. }
                | StoreError::Engine(_)
                | StoreError::Commit(_)
                | StoreError::DamagedFile { .. }
                | StoreError::Damaged(_),
            )
            | Error::File(_)
            | Error::Keystore(_) => disk_failure(error),
            _ => {
                tracing::error!(request = RequestId::current(), "{text}");
                Self::of_status(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal error: see the log of the server",
                )
            }
        }
    }
}

/// The code of a failure of a database that is no file.
pub(crate) const STORE_AWAY: &str = "store-away";

fn impossible(code: &'static str, text: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, text)
}

fn away(code: &'static str, text: String) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, text)
}

fn disk_failure(error: &Error) -> Problem {
    tracing::error!(request = RequestId::current(), "{error}");
    let (code, cause) = match error {
        Error::Store(StoreError::DamagedFile { .. } | StoreError::Damaged(_)) => {
            ("store-damaged", "the store is damaged: see the log of the server")
        }
        Error::Store(error) if error.of_server().is_some() => {
            (STORE_AWAY, "the database cannot be used: see the log of the server")
        }
        _ if error.is_out_of_space() => ("disk-full", "no space is left on the disk"),
        _ => ("disk-failed", "the disk cannot be read or written"),
    };
    let effect = match error {
        Error::Store(StoreError::Commit(_)) => {
            "the request may or may not have been carried out: repeat it with the same \
             Idempotency-Key, or look for its result"
        }
        _ => "nothing was changed",
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, format!("{cause}: {effect}"))
}
