//! Rendering of pages, from what a payer may know.

use std::borrow::Cow;
use std::fmt;

use askama::Template;
use bsv_invoicing::dpp::Merchant;
use bsv_invoicing::transactions::WaitReason;
use bsv_invoicing::{Checkout, InvoiceState, Payable, Timestamp};
use bsv_tx::Address;

use super::address::{Bsv, link};
use super::qr::Qr;
use super::texts::Texts;
use crate::visible::steers;

/// The parts that all pages share.
#[derive(Debug)]
pub(super) struct Frame {
    /// The names of the files that a page loads.
    pub(super) script: String,
    pub(super) style: String,
    pub(super) icon: String,
    /// The payee. An avatar is shown only if it has the origin of the pages.
    pub(super) merchant: Merchant,
    /// Whether a page may call a wallet on the payer's machine.
    pub(super) browser_wallets: bool,
    /// Whether the receipt shows the owner's reference.
    pub(super) show_reference: bool,
    /// The name of the network, if its coins have no value.
    pub(super) test_network: Option<&'static str>,
}

/// The state of an invoice as its payer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// A part has been paid.
    Rest,
    /// Everything has been paid, and counts once it is in a block.
    Block,
    /// The same, and a second service must show the newest block.
    SecondSource,
    /// The same, and a fee is so low that a block may take long.
    LowFee,
    /// Everything has been sent, and the wallet is not sure of it before it is in a block.
    Unsure,
    Paid,
    Expired,
}

impl Stage {
    fn of(checkout: &Checkout) -> Self {
        match checkout.state {
            InvoiceState::Paid => Self::Paid,
            InvoiceState::Expired => Self::Expired,
            InvoiceState::Pending if checkout.due == 0 && checkout.waiting > 0 => {
                match checkout.waits_for {
                    WaitReason::LowFee => Self::LowFee,
                    _ => Self::Unsure,
                }
            }
            InvoiceState::Pending if checkout.awaits_second_source => Self::SecondSource,
            InvoiceState::Pending if checkout.due == 0 => Self::Block,
            InvoiceState::Pending if checkout.paid > 0 || checkout.waiting > 0 => Self::Rest,
            InvoiceState::Pending => Self::Waiting,
        }
    }

    /// The name of the stage in the style sheet.
    fn name(self) -> &'static str {
        match self {
            Self::Waiting
            | Self::Rest
            | Self::Block
            | Self::SecondSource
            | Self::LowFee
            | Self::Unsure => "pending",
            Self::Paid => "paid",
            Self::Expired => "expired",
        }
    }
}

/// How an invoice can be paid now.
#[derive(Debug)]
struct Ways {
    address: Option<String>,
    script: String,
    link: String,
    address_qr: Option<Qr>,
    link_qr: Option<Qr>,
}

impl Ways {
    fn new(payable: &Payable, due: u64, payment_url: &str) -> Self {
        let link = link(payable.address.as_ref(), due, payment_url);
        let address = payable.address.as_ref().map(Address::to_string);
        Self {
            script: payable.script.to_hex(),
            address_qr: address.as_deref().and_then(Qr::of),
            address,
            link_qr: Qr::of(&link),
            link,
        }
    }
}

/// Text of strangers. Control characters are shown as `\u…`.
#[derive(Clone, Copy, Debug)]
struct Visible<'a>(&'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\n")?,
                c if steers(c) => write!(f, "\\u{:04x}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct PageHtml<'a> {
    t: &'a Texts,
    frame: &'a Frame,
    invoice: &'a Checkout,
    stage: Stage,
    word: String,
    url: &'a str,
    ways: Option<Ways>,
}

#[derive(Template)]
#[template(path = "missing.html")]
struct MissingHtml<'a> {
    t: &'a Texts,
    frame: &'a Frame,
}

impl PageHtml<'_> {
    fn merchant(&self) -> Visible<'_> {
        Visible(&self.frame.merchant.name)
    }

    /// The first letter of the payee.
    fn initial(&self) -> Option<char> {
        self.frame.merchant.name.chars().find(|c| c.is_alphanumeric())
    }

    fn description(&self) -> Option<Visible<'_>> {
        self.invoice.description.as_deref().filter(|text| !text.is_empty()).map(Visible)
    }

    /// The owner's reference, if payers may see it.
    fn reference(&self) -> Option<Visible<'_>> {
        let reference = self.invoice.reference.as_deref().filter(|_| self.frame.show_reference);
        reference.filter(|text| !text.is_empty()).map(Visible)
    }

    fn refunded(&self) -> Bsv {
        Bsv(self.invoice.refunded)
    }

    /// What a payer has sent beyond what was asked for, and has not got back.
    fn surplus(&self) -> Bsv {
        Bsv(if self.stage == Stage::Paid { self.invoice.surplus } else { 0 })
    }

    /// The relevant amount: the remaining one if something is still to be paid, otherwise the
    /// whole.
    fn amount(&self) -> Bsv {
        if self.invoice.due > 0 { self.due() } else { self.whole() }
    }

    fn due(&self) -> Bsv {
        Bsv(self.invoice.due)
    }

    /// What has arrived, even if it does not count yet.
    fn received(&self) -> Bsv {
        Bsv(self.invoice.paid.saturating_add(self.invoice.waiting))
    }

    fn whole(&self) -> Bsv {
        Bsv(self.invoice.satoshis)
    }

    /// The unit of a number of satoshis.
    fn unit(&self, amount: Bsv) -> &'static str {
        if amount.0 == 1 { self.t.satoshi } else { self.t.satoshis }
    }

    fn expiry(&self) -> String {
        in_utc(self.invoice.expires_at)
    }

    fn paid_on(&self) -> String {
        self.invoice.paid_at.map(in_utc).unwrap_or_default()
    }

    /// What must happen to a payment before it counts, if it must be in a block.
    fn block_rule(&self) -> Option<Cow<'static, str>> {
        let blocks = self.invoice.mined_blocks?;
        Some(counted(self.t.needs_block, self.t.needs_blocks, blocks))
    }

    /// Why a part of what has arrived does not count yet.
    fn wait_reason(&self) -> &'static str {
        match self.invoice.waits_for {
            WaitReason::LowFee => self.t.low_fee,
            _ => self.t.unsure,
        }
    }

    fn announcement(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self.stage {
            Stage::Waiting => self.t.waiting,
            Stage::Rest => self.t.waiting_for_rest,
            Stage::Block => {
                let blocks = self.invoice.mined_blocks.unwrap_or(1);
                return counted(self.t.waiting_for_block, self.t.waiting_for_blocks, blocks);
            }
            Stage::SecondSource => self.t.waiting_for_second_source,
            Stage::LowFee => self.t.waiting_for_low_fee,
            Stage::Unsure => self.t.waiting_unsure,
            Stage::Paid => self.t.paid,
            Stage::Expired => self.t.expired,
        })
    }
}

/// The text for one, or that for several with their number.
fn counted(one: &'static str, several: &'static str, count: u32) -> Cow<'static, str> {
    match count {
        1 => Cow::Borrowed(one),
        _ => Cow::Owned(several.replace('#', &count.to_string())),
    }
}

/// A time in UTC. The script shows it in the payer's time zone.
fn in_utc(time: Timestamp) -> String {
    let text = time.to_string();
    format!("{} {} UTC", &text[..10], &text[11..16])
}

/// The data of an invoice that a page shows.
pub(super) struct Shown<'a> {
    pub(super) invoice: &'a Checkout,
    /// The invoice's [word](super::state::word).
    pub(super) word: String,
    /// What to pay to, if something is to be paid.
    pub(super) payable: Option<Payable>,
    /// The URL of the page.
    pub(super) url: &'a str,
    /// The URL of the payment terms.
    pub(super) payment_url: &'a str,
}

impl Frame {
    /// The page of an invoice.
    pub(super) fn page(&self, t: &Texts, shown: Shown<'_>) -> Result<String, askama::Error> {
        let Shown { invoice, word, payable, url, payment_url } = shown;
        let ways = payable.map(|payable| Ways::new(&payable, invoice.due, payment_url));
        let stage = Stage::of(invoice);
        PageHtml { t, frame: self, invoice, stage, word, url, ways }.render()
    }

    /// The page for an unknown invoice.
    pub(super) fn missing(&self, t: &Texts) -> Result<String, askama::Error> {
        MissingHtml { t, frame: self }.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_visible() {
        let text = "a\u{202e}b\u{7}\nשלום\r<b>";
        assert_eq!(Visible(text).to_string(), "a\\u202eb\\u0007\nשלום\\u000d<b>");
    }
}
