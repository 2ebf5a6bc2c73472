use bsv_tx::{OutPoint, Transaction, Txid};

/// The progress of an identity's validity check output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vctx {
    /// Not begun.
    None,
    /// Its key is in the keystore under `<alias>_vctx`, and its address waits for coins.
    AwaitingFunds,
    /// The transaction whose output 0 it is. The network may or may not have received it.
    Broadcasting(Transaction),
    /// The output is on the network.
    Recorded(OutPoint, VctxView),
    /// The owner is spending the output with this transaction, which the network may or may not
    /// have received. There is no transaction before a node has answered the output's amount.
    Revoking(OutPoint, Option<Transaction>),
}

/// What remains of the validity check output of an identity that was upgraded to generation 1.0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftVctx {
    /// The output, if it was recorded.
    pub outpoint: Option<OutPoint>,
    /// The last transaction that takes coins from it. The network may or may not have received it.
    pub sweep: Option<Transaction>,
}

impl LeftVctx {
    pub fn of(vctx: &Vctx) -> Self {
        let outpoint = match vctx {
            Vctx::None | Vctx::AwaitingFunds => None,
            Vctx::Broadcasting(transaction) => Some(OutPoint { txid: transaction.txid(), vout: 0 }),
            Vctx::Recorded(outpoint, _) | Vctx::Revoking(outpoint, _) => Some(*outpoint),
        };
        Self { outpoint, sweep: None }
    }

    pub fn begin_sweep(
        &mut self,
        before: Option<Txid>,
        sweep: &Transaction,
    ) -> Result<(), &'static str> {
        if self.sweep.as_ref().map(Transaction::txid) != before {
            return Err("its VCTx was swept");
        }
        self.sweep = Some(sweep.clone());
        Ok(())
    }
}

impl Vctx {
    pub fn await_funding(&mut self) -> Result<(), &'static str> {
        match self {
            Self::None | Self::AwaitingFunds => *self = Self::AwaitingFunds,
            _ => return Err("its VCTx is made already"),
        }
        Ok(())
    }

    pub fn begin(&mut self, transaction: &Transaction) -> Result<(), &'static str> {
        match self {
            Self::AwaitingFunds => *self = Self::Broadcasting(transaction.clone()),
            _ => return Err("its VCTx does not wait for funds"),
        }
        Ok(())
    }

    pub fn abandon(&mut self) -> Result<(), &'static str> {
        match self {
            Self::Broadcasting(_) => *self = Self::AwaitingFunds,
            _ => return Err("its VCTx is not being broadcast"),
        }
        Ok(())
    }

    pub fn record(&mut self, outpoint: OutPoint) -> Result<(), &'static str> {
        match self {
            Self::Recorded(recorded, _) if *recorded == outpoint => {}
            Self::Recorded(..) => return Err("it has another VCTx"),
            Self::Revoking(..) => return Err("its VCTx is being spent"),
            _ => *self = Self::Recorded(outpoint, VctxView::default()),
        }
        Ok(())
    }

    pub fn revoke(&mut self, spending: Option<&Transaction>) -> Result<(), &'static str> {
        match self {
            Self::Recorded(outpoint, _) | Self::Revoking(outpoint, None) => {
                *self = Self::Revoking(*outpoint, spending.cloned());
            }
            // The transaction is made again.
            Self::Revoking(outpoint, Some(_)) if spending.is_some() => {
                *self = Self::Revoking(*outpoint, spending.cloned());
            }
            _ => return Err("it has no VCTx that can be spent"),
        }
        Ok(())
    }

    pub fn note_view(&mut self, seen: OutPoint, seen_view: VctxView) {
        match self {
            Self::Recorded(outpoint, view) if *outpoint == seen => *view = seen_view,
            _ => {}
        }
    }
}

/// What the chain has shown of a validity check output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VctxView {
    /// The greatest height at which it was seen unspent.
    pub last_seen: Option<u32>,
    /// The height of the chain when the output, seen before, was first missing.
    pub gone_since: Option<u32>,
    /// Whether it has been missing for [`VctxView::FINAL_AFTER`] blocks.
    pub is_spent: bool,
}

impl VctxView {
    /// For how many blocks an output must be missing to count as spent. The block that spends it is
    /// the first.
    pub const FINAL_AFTER: u32 = 6;

    /// Updates the view with the chain's answer at the tip `height`.
    ///
    /// Two answers say nothing: that an output was never seen, since it may not be mined yet, and
    /// that a chain lacks the output which is shorter than one with the output.
    pub fn observe(self, height: u32, is_unspent: bool) -> Self {
        let Some(last_seen) = self.last_seen else {
            return Self { last_seen: is_unspent.then_some(height), ..Self::default() };
        };
        if is_unspent {
            return Self { last_seen: Some(last_seen.max(height)), ..Self::default() };
        }
        if height < last_seen {
            return self;
        }
        let gone_since = self.gone_since.map_or(height, |since| since.min(height));
        let is_spent = self.is_spent || height - gone_since >= Self::FINAL_AFTER - 1;
        Self { gone_since: Some(gone_since), is_spent, ..self }
    }
}
