use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::model::fields::{BodyError, FieldErrors, Members};
use crate::model::invoice_id::InvoiceId;
use crate::model::time::Timestamp;

/// The most that an invoice can ask for: all satoshis that there will ever be.
pub const MAX_SATOSHIS: u64 = 2_100_000_000_000_000;
/// The longest description, in characters.
pub const MAX_DESCRIPTION_LEN: usize = 1024;
/// The longest reference, in characters.
pub const MAX_REFERENCE_LEN: usize = 128;

pub(crate) const NOT_IN_THE_FUTURE: &str = "must be in the future";

/// What a new invoice asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvoiceDraft {
    /// The amount, from 1 to [`MAX_SATOSHIS`].
    pub satoshis: u64,
    /// What is paid for.
    pub description: Option<String>,
    /// The owner's own reference.
    pub reference: Option<String>,
    /// Until when it can be paid: a time in the future. `None` stands for the period in the
    /// wallet's settings.
    pub expires_at: Option<Timestamp>,
}

impl InvoiceDraft {
    /// Reads the body of `POST /api/v1/invoices`. The error names all invalid fields at once. `now`
    /// is the time for the check of `expiresAt`.
    ///
    /// A time of expiry in the past is no error by itself here: the body may be a repetition with
    /// an idempotency key.
    pub fn from_json(body: &[u8], now: Timestamp) -> Result<Self, BodyError> {
        let mut members = Members::parse(body)?;
        let satoshis = members.integer("satoshis");
        let draft = Self {
            satoshis: satoshis.unwrap_or(1),
            description: members.text("description"),
            reference: members.text("reference"),
            expires_at: members.text("expiresAt").and_then(|text| match Timestamp::parse_storable(
                &text,
            ) {
                Ok(time) => Some(time),
                Err(error) => {
                    members.reject("expiresAt", format!("{error}"));
                    None
                }
            }),
        };
        let mut errors = members.into_errors();
        if satoshis.is_none() && !errors.has("satoshis") {
            errors.add("satoshis", "is required");
        }
        draft.check(&mut errors);
        if !errors.is_empty() && draft.expires_at.is_some_and(|time| time <= now) {
            errors.add("expiresAt", NOT_IN_THE_FUTURE);
        }
        errors.into_result()?;
        Ok(draft)
    }

    pub(crate) fn check(&self, errors: &mut FieldErrors) {
        if !(1..=MAX_SATOSHIS).contains(&self.satoshis) {
            errors.add("satoshis", format!("must be from 1 to {MAX_SATOSHIS}"));
        }
        errors.check_len(
            "description",
            self.description.as_deref().unwrap_or_default(),
            MAX_DESCRIPTION_LEN,
        );
        errors.check_len(
            "reference",
            self.reference.as_deref().unwrap_or_default(),
            MAX_REFERENCE_LEN,
        );
    }
}

/// An invoice as it is stored. Its state follows from its fields and the time.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Invoice {
    /// The number, from 1 in the order of creation.
    #[n(0)]
    pub number: u64,
    /// The id that the API and the payers use.
    #[cbor(n(1), with = "crate::model::byte_members::invoice_id")]
    pub id: InvoiceId,
    /// The amount.
    #[n(2)]
    pub satoshis: u64,
    /// What is paid for.
    #[n(3)]
    pub description: Option<String>,
    /// The owner's own reference.
    #[n(4)]
    pub reference: Option<String>,
    /// When it was created.
    #[n(5)]
    pub created_at: Timestamp,
    /// Until when it can be paid.
    #[n(6)]
    pub expires_at: Timestamp,
    /// When a payment was received, if one was.
    #[n(7)]
    pub payment_received_at: Option<Timestamp>,
    /// Where the payer wants refunds, if it is paid.
    #[cbor(skip)]
    pub refund_to: Option<String>,
    /// When the first of its refunds was made.
    #[cbor(skip)]
    pub refunded_at: Option<Timestamp>,
    /// Whether a payment is on its way to the network. The invoice does not expire until the
    /// outcome is known.
    #[cbor(skip)]
    pub in_flight: bool,
    /// When it was deleted, if it was. A deleted invoice is not shown.
    #[n(8)]
    pub deleted_at: Option<Timestamp>,
    /// Since when the payments first seen in time would pay it if none had to be in a block. `None`
    /// if they would not, or if it is paid or deleted. Such an invoice does not expire.
    #[n(9)]
    pub awaits_block_since: Option<Timestamp>,
    /// When an event told that it has expired, if it was not paid since. It then stays expired until
    /// it is paid.
    #[n(10)]
    pub expired_at: Option<Timestamp>,
}

/// Where an invoice stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvoiceState {
    /// It waits for payment.
    Pending,
    /// It is paid.
    Paid,
    /// It was not paid in time.
    Expired,
}

impl Invoice {
    /// A new invoice of this number and id. `expiry` is how long it can be paid, if the draft does not
    /// say until when.
    pub fn new(
        (number, id): (u64, InvoiceId),
        draft: InvoiceDraft,
        created_at: Timestamp,
        expiry: Duration,
    ) -> Self {
        let InvoiceDraft { satoshis, description, reference, expires_at } = draft;
        Self {
            number,
            id,
            satoshis,
            description,
            reference,
            created_at,
            expires_at: expires_at.unwrap_or_else(|| created_at.after(expiry)),
            payment_received_at: None,
            refund_to: None,
            refunded_at: None,
            in_flight: false,
            deleted_at: None,
            awaits_block_since: None,
            expired_at: None,
        }
    }

    /// Where it stands at `now`. It is paid once that is recorded, even if `now` is earlier, because
    /// time may stand still for what expires.
    pub fn state(&self, now: Timestamp) -> InvoiceState {
        if self.is_paid() {
            InvoiceState::Paid
        } else if self.has_expired(now) || (self.expires_at <= now && !self.is_held()) {
            InvoiceState::Expired
        } else {
            InvoiceState::Pending
        }
    }

    /// Whether it is recorded that it is paid.
    pub fn is_paid(&self) -> bool {
        self.payment_received_at.is_some()
    }

    /// Whether it is recorded that it expired at `now` or before.
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expired_at.is_some_and(|time| time <= now)
    }

    /// Whether the outcome of a payment, or a block, decides whether it expires.
    fn is_held(&self) -> bool {
        self.in_flight || self.awaits_block_since.is_some()
    }

    /// Where it stands at `now` for a new payment. One whose time is over and that is pending only
    /// because an earlier payment or a block decides about it has expired.
    pub(crate) fn state_for_new_payment(&self, now: Timestamp) -> InvoiceState {
        match self.state(now) {
            InvoiceState::Pending if self.expires_at <= now => InvoiceState::Expired,
            state => state,
        }
    }

    /// What a refund sends back if it names no amount, in satoshis, after this much was received and
    /// refunded: what was paid beyond the amount, or everything if the invoice was not paid and is
    /// deleted or expired at `now`.
    pub(crate) fn surplus(&self, received: u64, refunded: u64, now: Timestamp) -> u64 {
        let is_over = !self.is_paid()
            && (self.deleted_at.is_some() || self.state(now) == InvoiceState::Expired);
        let asked = if is_over { 0 } else { self.satoshis };
        received.saturating_sub(asked).saturating_sub(refunded)
    }

    /// The same invoice as it was when it was created.
    pub fn as_created(self) -> Self {
        let Self { number, id, satoshis, description, reference, created_at, expires_at, .. } =
            self;
        let expires_at = Some(expires_at);
        let draft = InvoiceDraft { satoshis, description, reference, expires_at };
        Self::new((number, id), draft, created_at, DEFAULT_EXPIRY)
    }

    /// When it last changed, as seen at `now`.
    pub fn updated_at(&self, now: Timestamp) -> Timestamp {
        let changed = match self.state(now) {
            InvoiceState::Pending => self.created_at,
            InvoiceState::Paid => self.payment_received_at.unwrap_or(self.created_at),
            InvoiceState::Expired => self.expires_at,
        };
        self.refunded_at.map_or(changed, |refunded_at| refunded_at.max(changed))
    }

    /// The invoice as the wallet specification writes it, as it is at `now`: JSON with its twelve
    /// fields, in its order, null where there is nothing.
    pub fn to_json(&self, now: Timestamp) -> String {
        let mut json = Vec::with_capacity(JSON_LEN);
        self.write_json(now, &mut json);
        String::from_utf8(json).expect("it was made of texts and numbers")
    }

    /// Appends the JSON of [`to_json`](Self::to_json). The JSON is written by hand because lists
    /// and look-ups spend much of their time on it.
    pub fn write_json(&self, now: Timestamp, json: &mut Vec<u8>) {
        let Self { id, satoshis, description, reference, created_at, expires_at, .. } = self;
        let Self { payment_received_at, refund_to, refunded_at, .. } = self;
        write_member(json, b"{\"id\":", id.as_str());
        write_member(json, b",\"reference\":", reference);
        write_member(json, b",\"description\":", description);
        write_member(json, b",\"satoshis\":", satoshis);
        write_member(json, b",\"expiresAt\":", expires_at);
        write_member(json, b",\"paymentReceivedAt\":", payment_received_at);
        let is_settled = self.is_paid() || refunded_at.is_some();
        write_member(json, b",\"refundTo\":", &refund_to.as_ref().filter(|_| is_settled));
        write_member(json, b",\"refundedAt\":", refunded_at);
        write_member(json, b",\"state\":", self.state(now).name());
        write_member(json, b",\"createdAt\":", created_at);
        write_member(json, b",\"updatedAt\":", &self.updated_at(now).whole_seconds());
        json.extend_from_slice(b",\"deletedAt\":null}");
    }
}

/// Most invoices fit into this as JSON, in bytes.
const JSON_LEN: usize = 512;

fn write_member(json: &mut Vec<u8>, name: &[u8], value: &(impl Serialize + ?Sized)) {
    json.extend_from_slice(name);
    serde_json::to_writer(json, value).expect("a vector takes texts and numbers");
}

impl InvoiceState {
    /// The name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for InvoiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text is not the name of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be pending, paid or expired")]
pub struct InvoiceStateParseError;

impl FromStr for InvoiceState {
    type Err = InvoiceStateParseError;

    fn from_str(name: &str) -> Result<Self, InvoiceStateParseError> {
        [Self::Pending, Self::Paid, Self::Expired]
            .into_iter()
            .find(|state| state.name() == name)
            .ok_or(InvoiceStateParseError)
    }
}

/// Which invoices are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvoiceQuery {
    /// Only those after the one of this number, in the order asked for.
    pub after: Option<u64>,
    /// Only those in this state.
    pub state: Option<InvoiceState>,
    /// Only those whose owner has to decide something: see
    /// [`NextStep::needs_decision`](crate::invoices::NextStep::needs_decision).
    pub needs_decision: bool,
    /// Whether the newest come first.
    pub newest_first: bool,
    /// How many at most, from 1 on.
    pub limit: usize,
}

/// Some invoices, in the order asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvoicePage {
    /// The invoices, none of them deleted.
    pub invoices: Vec<Invoice>,
    /// The last invoice that was looked at, if there may be more after it: its number and id.
    pub next: Option<(u64, InvoiceId)>,
    /// The time at which their states are those asked for.
    pub now: Timestamp,
}

/// How many invoices are looked at for one page at most. This bounds the cost of a page, even if
/// few invoices are in the selected state. A page that ends for this reason has fewer invoices than
/// its limit, and there is a next one.
pub const MAX_LOOKED_AT: usize = 10_000;

/// How much text the invoices of a page may have, in bytes, before the page ends: that of 1000
/// invoices with the longest ASCII texts.
pub const MAX_PAGE_TEXT: usize = 1000 * (MAX_DESCRIPTION_LEN + MAX_REFERENCE_LEN);

/// How long an invoice can be paid if its draft names no time.
pub const DEFAULT_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);
