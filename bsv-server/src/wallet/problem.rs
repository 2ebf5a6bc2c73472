use bsv_invoicing::Error;
use bsv_invoicing::invoices::BodyError;
use bsv_invoicing::ledger::Refusal;
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
        let (status, code) = status_and_code(error);
        let problem = Self::new(status, code, text(error, status));
        match error {
            Error::Invalid(errors) => errors
                .iter()
                .fold(problem, |problem, (field, messages)| problem.with_field(field, messages)),
            _ => problem,
        }
    }
}

/// The code of a failure of a database that is no file.
pub(crate) const STORE_AWAY: &str = "store-away";

const BAD_REQUEST: StatusCode = StatusCode::BAD_REQUEST;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const UNPROCESSABLE: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
const INTERNAL: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// The status of an error, and its stable name for programs.
fn status_and_code(error: &Error) -> (StatusCode, &'static str) {
    match error {
        Error::Malformed(_)
        | Error::Refused(Refusal::NothingDue | Refusal::WebhookIdTaken(_) | Refusal::Moving) => {
            (BAD_REQUEST, "malformed-body")
        }
        Error::Invalid(_) => (BAD_REQUEST, "invalid-fields"),
        Error::BadIdempotencyKey(_) => (BAD_REQUEST, "bad-idempotency-key"),
        Error::BadTransaction(_) => (BAD_REQUEST, "bad-transaction"),
        Error::WrongOutputs(_) => (BAD_REQUEST, "wrong-outputs"),
        Error::UnknownInvoice(_) => (NOT_FOUND, "unknown-invoice"),
        Error::UnknownWebhook(_) => (NOT_FOUND, "unknown-webhook"),
        Error::UnknownUser(_) => (NOT_FOUND, "unknown-user"),
        Error::UnknownChannel => (NOT_FOUND, "unknown-channel"),
        Error::UnknownWithdrawal(_) => (NOT_FOUND, "unknown-withdrawal"),
        Error::Refused(Refusal::UnknownDelivery { .. }) => (NOT_FOUND, "unknown-delivery"),
        Error::Refused(Refusal::UnknownPayment(_)) => (NOT_FOUND, "unknown-payment"),
        Error::Paid(_) | Error::PaidForever(_) => (CONFLICT, "invoice-paid"),
        Error::InFlight(_) => (CONFLICT, "payment-in-flight"),
        Error::PaymentRunning => (CONFLICT, "payment-running"),
        Error::Refused(Refusal::CursorAhead { .. }) => (CONFLICT, "cursor-ahead"),
        Error::Refused(Refusal::TooManyWebhooks(_)) => (CONFLICT, "too-many-webhooks"),
        Error::Refused(Refusal::TwoSecrets(_)) => (CONFLICT, "two-secrets"),
        Error::Refused(Refusal::NotOpen(..)) => (CONFLICT, "payment-not-open"),
        Error::Refused(Refusal::EarlierAttempt(_)) => (CONFLICT, "earlier-payment-open"),
        Error::Refused(Refusal::KeyReused) => (CONFLICT, "idempotency-key-reused"),
        Error::Expired(_) => (UNPROCESSABLE, "invoice-expired"),
        Error::UnknownInput { .. } | Error::UnknownAncestorInput { .. } => {
            (UNPROCESSABLE, "unknown-inputs")
        }
        Error::BadAncestry(_) => (UNPROCESSABLE, "bad-ancestry"),
        Error::FeeTooLow { .. } | Error::AncestorFeeTooLow { .. } | Error::FeeRefused(_) => {
            (UNPROCESSABLE, "fee-too-low")
        }
        Error::TooManyAncestors { .. } | Error::TooManyCheapAncestors { .. } => {
            (UNPROCESSABLE, "too-many-ancestors")
        }
        Error::NotFinal { .. } => (UNPROCESSABLE, "not-final"),
        Error::Underpaid { .. } => (UNPROCESSABLE, "underpaid"),
        Error::Late => (UNPROCESSABLE, "payment-late"),
        Error::Waiting => (UNPROCESSABLE, "payment-waiting"),
        Error::UnpayableTerms(_) => (UNPROCESSABLE, "unpayable-terms"),
        Error::TooSmall { .. } => (UNPROCESSABLE, "too-small"),
        Error::NothingToRefund(_) => (UNPROCESSABLE, "nothing-to-refund"),
        Error::RefundToNeeded { .. } => (UNPROCESSABLE, "refund-to-needed"),
        Error::NoBeef(_) => (UNPROCESSABLE, "no-beef"),
        Error::RefusedByNetwork(_) => (UNPROCESSABLE, "refused-by-network"),
        Error::PayeeRefuses(_) => (UNPROCESSABLE, "refused-by-payee"),
        Error::OverLimit { .. } => (UNPROCESSABLE, "over-limit"),
        Error::FeeTooHigh { .. } => (UNPROCESSABLE, "fee-too-high"),
        Error::Refused(Refusal::TooManyCoins(_)) => (UNPROCESSABLE, "too-many-coins"),
        Error::Refused(Refusal::RefundTooLarge { .. }) => (UNPROCESSABLE, "refund-too-large"),
        Error::Refused(Refusal::RefundMustWait(_)) => (UNPROCESSABLE, "refund-must-wait"),
        Error::Refused(Refusal::BytesDropped(_)) => (UNPROCESSABLE, "bytes-dropped"),
        Error::Refused(Refusal::InsufficientFunds { .. }) | Error::EmptyFaucet(_) => {
            (UNPROCESSABLE, "insufficient-funds")
        }
        Error::BadChain(_) => (UNPROCESSABLE, "unprocessable"),
        Error::PayeeNonsense(_) => (StatusCode::BAD_GATEWAY, "payee-nonsense"),
        Error::PayeeAway(_) => (UNAVAILABLE, "payee-unavailable"),
        Error::OutcomeUnknown(_) => (UNAVAILABLE, "payment-outcome-unknown"),
        Error::NetworkAway(_) => (UNAVAILABLE, "network-unavailable"),
        Error::UnknownBlock { .. } => (UNAVAILABLE, "unknown-block"),
        Error::Refused(Refusal::Full(_)) => (UNAVAILABLE, "wallet-full"),
        Error::Store(StoreError::DamagedFile { .. } | StoreError::Damaged(_)) => {
            (UNAVAILABLE, "store-damaged")
        }
        Error::Store(error) if error.of_server().is_some() => (UNAVAILABLE, STORE_AWAY),
        _ if error.is_out_of_space() => (UNAVAILABLE, "disk-full"),
        Error::Store(
            StoreError::File(_)
            | StoreError::Open { .. }
            | StoreError::Engine(_)
            | StoreError::Commit(_),
        )
        | Error::File(_)
        | Error::Keystore(_) => (UNAVAILABLE, "disk-failed"),
        _ => (INTERNAL, "internal-error"),
    }
}

/// The text of an error. The log of the server has the details of those that are not the caller's.
fn text(error: &Error, status: StatusCode) -> String {
    let is_of_disk = matches!(error, Error::Store(_) | Error::File(_) | Error::Keystore(_));
    if is_of_disk || status == INTERNAL || matches!(error, Error::Refused(Refusal::Full(_))) {
        tracing::error!(request = RequestId::current(), "{error}");
    }
    let cause = match error {
        _ if status == INTERNAL => return "internal error: see the log of the server".to_owned(),
        _ if !is_of_disk => return error.to_string(),
        Error::Store(StoreError::DamagedFile { .. } | StoreError::Damaged(_)) => {
            "the store is damaged: see the log of the server"
        }
        Error::Store(error) if error.of_server().is_some() => {
            "the database cannot be used: see the log of the server"
        }
        _ if error.is_out_of_space() => "no space is left on the disk",
        _ => "the disk cannot be read or written",
    };
    let effect = match error {
        Error::Store(StoreError::Commit(_)) => {
            "the request may or may not have been carried out: repeat it with the same \
             Idempotency-Key, or look for its result"
        }
        _ => "nothing was changed",
    };
    format!("{cause}: {effect}")
}
