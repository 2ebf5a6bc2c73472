//! Checkout: an invoice as its payer sees it.

use bsv_tx::{Address, Script, Txid};

use crate::error::Error;
use crate::ledger::queries::{GetPayingTxids, GetSums};
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::invoice_id::InvoiceId;
use crate::model::settlement::NextStep;
use crate::model::time::Timestamp;
use crate::model::transaction::WaitReason;
use crate::store::WalletStore;
use crate::wallet::Wallet;

/// How many payments of an invoice its receipt names at most.
const SHOWN_PAYMENTS: usize = 10;

/// What the payer of an invoice may know about it. Only its owner decides who sees the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    number: u64,
    /// The id.
    pub id: InvoiceId,
    /// Its state.
    pub state: InvoiceState,
    /// The owner's own reference.
    pub reference: Option<String>,
    /// What the payment is for.
    pub description: Option<String>,
    /// The amount, in satoshis.
    pub satoshis: u64,
    /// The sum of the payments that count, in satoshis.
    pub paid: u64,
    /// The sum of the payments that the network has and that do not count before they are in a block, in
    /// satoshis. It is 0 once the invoice is paid.
    pub waiting: u64,
    /// Why they wait.
    pub waits_for: WaitReason,
    /// What the payer must still send, in satoshis. It is 0 if the invoice is not pending, and also
    /// once everything was sent and only blocks are missing.
    pub due: u64,
    /// The part of `paid` that counts towards the invoice, in satoshis.
    pub counted: u64,
    /// What was refunded or is being refunded, in satoshis.
    pub refunded: u64,
    /// What the payer can get back, in satoshis: see
    /// [`InvoiceSums::surplus`](crate::invoices::InvoiceSums::surplus).
    pub surplus: u64,
    /// When it was paid, if it is.
    pub paid_at: Option<Timestamp>,
    /// The first transactions that have paid it, if it is paid.
    pub txids: Vec<Txid>,
    /// How many transactions besides these have paid it, if it is paid.
    pub further_txids: u64,
    /// Until when it can be paid.
    pub expires_at: Timestamp,
    /// Whether it is paid and all its payments are deep enough in blocks.
    pub is_mined: bool,
    /// Whether everything was sent and is in blocks, and counts once a second service shows the newest
    /// one.
    pub awaits_second_source: bool,
    /// How many confirmations a payment needs before it counts. `None` if it need not be in a block.
    pub mined_blocks: Option<u32>,
}

impl Checkout {
    /// Whether the payer has nothing more to wait for: the invoice is paid, and all its payments
    /// are deep enough in blocks. An invoice that its owner has marked as paid may have no payments.
    pub fn is_final(&self) -> bool {
        self.state == InvoiceState::Paid && (self.is_mined || self.paid == 0)
    }
}

/// What an invoice is paid to.
#[derive(Clone, Debug)]
pub struct Payable {
    /// The locking script.
    pub script: Script,
    /// Its address, if a payment to the address is seen that is not sent to the payment URL.
    pub address: Option<Address>,
}

impl Wallet {
    /// An invoice as its payer sees it.
    pub async fn checkout(&self, id: &str) -> Result<Checkout, Error> {
        let invoice = self.invoice(id).await?;
        let now = self.expiry_time();
        let sums = self.store.get(GetSums(invoice.clone(), now)).await?;
        let state = invoice.state(now);
        let is_paid = state == InvoiceState::Paid;
        let (txids, further_txids) = match state {
            InvoiceState::Paid => {
                self.store.get(GetPayingTxids(invoice.number, SHOWN_PAYMENTS)).await?
            }
            InvoiceState::Pending | InvoiceState::Expired => (Vec::new(), 0),
        };
        let rules = self.settings.payment_rules;
        let mined_blocks = rules.needs_block(invoice.satoshis).then_some(rules.mined_blocks);
        let Invoice { number, id, satoshis, reference, description, expires_at, .. } = invoice;
        Ok(Checkout {
            number,
            id,
            state,
            reference,
            description,
            satoshis,
            paid: sums.received,
            waiting: sums.waiting,
            waits_for: sums.waits_for,
            due: sums.to_send,
            counted: sums.counted,
            refunded: sums.refunded,
            surplus: sums.surplus,
            paid_at: invoice.payment_received_at.filter(|_| is_paid),
            txids,
            further_txids,
            expires_at,
            is_mined: is_paid && sums.outside_blocks == 0 && sums.received > 0,
            awaits_second_source: sums.next == NextStep::AwaitSecondSource,
            mined_blocks,
        })
    }

    /// What an invoice is paid to. It is watched from now on. `None` if nothing is due.
    pub async fn show_payable(&self, checkout: &Checkout) -> Result<Option<Payable>, Error> {
        if checkout.due == 0 {
            return Ok(None);
        }
        let script = self.show_destination(checkout.number).await?;
        // Services do not tell of payments that nobody has sent to us.
        let is_seen = self.sources().map_or(true, |sources| sources.receiving.reads_blocks());
        let address = Address::of_script(&script, self.settings.network).filter(|_| is_seen);
        Ok(Some(Payable { script, address }))
    }

    /// The URL of the payment page of an invoice, if there are such pages.
    pub fn page_url(&self, id: &str) -> Option<String> {
        self.settings.has_page.then(|| [&self.settings.public_url, "/pay/", id].concat())
    }
}
