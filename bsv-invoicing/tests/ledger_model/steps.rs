//! The steps, and the strategies that draw them.

use bsv_invoicing::ledger::{Evidence, Sighting};
use proptest::prelude::*;

/// A random number that chooses among the possible choices.
pub(crate) type Pick = u16;

/// The source of the coins of a stranger's payment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    /// Coins that nothing else spends.
    Fresh,
    /// A coin that another payment spends, too.
    Shared(Pick),
    /// The change of another payment.
    Chained(Pick),
}

/// Whether the wallet is told of a transaction's ancestors, and in which order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Parents {
    First,
    Last,
    Untold,
}

/// How the network shows a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Showing {
    pub(crate) is_fee_sufficient: bool,
    pub(crate) is_mined: bool,
    /// Whether the chain first loses the blocks that contradict it.
    pub(crate) may_lose_blocks: bool,
    pub(crate) are_blocks_told: bool,
    pub(crate) parents: Parents,
    /// What stands behind it, if services tell of transactions.
    pub(crate) evidence: Evidence,
}

/// The key that an output pays.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payee {
    Invoice(Pick),
    User(Pick),
    Other,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    CreateInvoice {
        satoshis: u64,
        is_short: bool,
    },
    DeleteInvoice(Pick),
    /// A stranger's payment of the amount that is due, more, or less. It may also pay a second
    /// invoice.
    Offer {
        invoice: Pick,
        input: Input,
        more: i64,
        also: Option<Pick>,
        /// Whether the wallet treats it as one payment of both.
        is_joint: bool,
        is_known: bool,
    },
    OfferAgain {
        payment: Pick,
        invoice: Pick,
        is_known: bool,
    },
    /// An invoice is created, offered a payment, and paid.
    Fund {
        satoshis: u64,
        showing: Showing,
    },
    Show {
        transaction: Pick,
        showing: Showing,
    },
    /// The network shows a transaction that contradicts another one.
    ShowRival {
        transaction: Pick,
        rival: Pick,
        showing: Showing,
    },
    /// The network shows a transaction that a stranger has made instead of a payment.
    ShowStrangers {
        transaction: Pick,
        showing: Showing,
    },
    Drop(Pick),
    LoseBlocks {
        count: usize,
        to_mempool: bool,
        is_told: bool,
    },
    TellBlocks,
    /// The mempool is mined, and the wallet follows the chain after so many blocks and one more.
    Grow {
        blocks: u32,
        with_payments: bool,
    },
    NoticeAgain(Pick),
    CheckProof(Pick),
    MineLate(Pick),
    Contest(Pick),
    Tell(Pick),
    Displace(Pick),
    Invalidate(Pick),
    Refuse(Pick),
    Reserve {
        url: Pick,
        satoshis: u64,
        fee_rate: u64,
    },
    Record {
        reservation: Pick,
        to_invoice: Option<Pick>,
    },
    Release(Pick),
    ReleaseAll,
    /// Reserve and record.
    Pay {
        url: Pick,
        satoshis: u64,
        fee_rate: u64,
    },
    /// Reserve and record.
    Refund {
        invoice: Pick,
        satoshis: u64,
        fee_rate: u64,
    },
    Accept(Pick),
    RefuseByPayee(Pick),
    PrepareCancellation(Pick),
    RecordCancellation(Pick),
    /// Prepare and record.
    Cancel(Pick),
    /// Services say something of a transaction, whether it is true or not.
    Say {
        transaction: Pick,
        sighting: Sighting,
    },
    /// Services say that they know another transaction for one of its coins.
    SayRival(Pick),
    /// Services tell of a transaction instead of a node.
    LeaveNode(Pick),
    /// Nobody says for a while what became of a payment.
    FreeInvoices(Pick),
    Unfollow(Pick),
    Recover {
        spends: Option<Pick>,
        to_invoice: Option<Pick>,
        satoshis: u64,
        is_mined: bool,
    },
    /// A stranger pays many of the wallet's keys at once. No one has announced it.
    Find {
        outputs: Vec<(Payee, u64)>,
        showing: Showing,
    },
    /// A stranger mines a block whose coinbase transaction pays these.
    FindReward(Vec<(Payee, u64)>),
    /// A lost block with such a coinbase transaction is in the chain again.
    ReturnBlock(Pick),
    BeginAccount(u32),
    Sweep {
        hours: u64,
    },
    MarkRead {
        transaction: Pick,
        is_read: bool,
    },
}

fn showing() -> impl Strategy<Value = Showing> {
    let parents = prop_oneof![
        4 => Just(Parents::First),
        1 => Just(Parents::Last),
        1 => Just(Parents::Untold),
    ];
    let often = || prop::bool::weighted(0.8);
    let how = (often(), prop::bool::weighted(0.35), any::<bool>(), often(), parents, evidence());
    how.prop_map(
        |(is_fee_sufficient, is_mined, may_lose_blocks, are_blocks_told, parents, evidence)| {
            Showing {
                is_fee_sufficient,
                is_mined,
                may_lose_blocks,
                are_blocks_told,
                parents,
                evidence,
            }
        },
    )
}

fn evidence() -> impl Strategy<Value = Evidence> {
    prop_oneof![
        7 => Just(Evidence::Word),
        2 => Just(Evidence::Hearsay),
        1 => Just(Evidence::Judged),
    ]
}

fn satoshis() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1_000_u64..5_000, 2 => 5_000_u64..60_000, 1 => 1_u64..200]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let pick = any::<Pick>;
    let input = prop_oneof![
        3 => Just(Input::Fresh),
        2 => pick().prop_map(Input::Shared),
        1 => pick().prop_map(Input::Chained),
    ];
    let more = prop_oneof![3 => Just(0_i64), 1 => 1_i64..2_000, 1 => -900_i64..0];
    let rate = || prop_oneof![Just(0_u64), Just(50_u64), Just(500_u64)];
    let maybe = || prop::option::weighted(0.3, any::<Pick>());
    let payee = prop_oneof![
        1 => pick().prop_map(Payee::Invoice),
        2 => pick().prop_map(Payee::User),
        1 => Just(Payee::Other),
    ];
    let incoming = prop_oneof![
        2 => (satoshis(), any::<bool>())
            .prop_map(|(satoshis, is_short)| Step::CreateInvoice { satoshis, is_short }),
        1 => pick().prop_map(Step::DeleteInvoice),
        4 => (pick(), input, more, maybe(), any::<bool>(), any::<bool>()).prop_map(
            |(invoice, input, more, also, is_joint, is_known)| Step::Offer {
                invoice, input, more, also, is_joint, is_known,
            }
        ),
        3 => (pick(), pick(), any::<bool>()).prop_map(|(payment, invoice, is_known)| {
            Step::OfferAgain { payment, invoice, is_known }
        }),
        3 => (satoshis(), showing())
            .prop_map(|(satoshis, showing)| Step::Fund { satoshis, showing }),
        3 => pick().prop_map(Step::Refuse),
        1 => (maybe(), maybe(), satoshis(), any::<bool>()).prop_map(
            |(spends, to_invoice, satoshis, is_mined)| Step::Recover {
                spends, to_invoice, satoshis, is_mined,
            }
        ),
        2 => (prop::collection::vec((payee.clone(), satoshis()), 1..6), showing())
            .prop_map(|(outputs, showing)| Step::Find { outputs, showing }),
        2 => prop::collection::vec((payee, satoshis()), 1..4).prop_map(Step::FindReward),
    ];
    let network = prop_oneof![
        8 => (pick(), showing())
            .prop_map(|(transaction, showing)| Step::Show { transaction, showing }),
        3 => (pick(), pick(), showing()).prop_map(|(transaction, rival, showing)| {
            Step::ShowRival { transaction, rival, showing }
        }),
        2 => (pick(), showing())
            .prop_map(|(transaction, showing)| Step::ShowStrangers { transaction, showing }),
        2 => pick().prop_map(Step::Drop),
        2 => (1_usize..4, any::<bool>(), prop::bool::weighted(0.8)).prop_map(
            |(count, to_mempool, is_told)| Step::LoseBlocks { count, to_mempool, is_told }
        ),
        1 => Just(Step::TellBlocks),
        2 => pick().prop_map(Step::ReturnBlock),
        9 => (prop_oneof![1 => 0_u32..3, 2 => 97_u32..103], any::<bool>())
            .prop_map(|(blocks, with_payments)| Step::Grow { blocks, with_payments }),
        2 => pick().prop_map(Step::NoticeAgain),
        2 => pick().prop_map(Step::CheckProof),
        2 => pick().prop_map(Step::MineLate),
        3 => pick().prop_map(Step::Contest),
        2 => pick().prop_map(Step::Tell),
        3 => pick().prop_map(Step::Displace),
        2 => pick().prop_map(Step::Invalidate),
        2 => pick().prop_map(Step::Unfollow),
    ];
    let word = prop_oneof![4 => Just(Evidence::Word), 1 => Just(Evidence::Hearsay)];
    let services = prop_oneof![
        6 => (pick(), prop::bool::weighted(0.8), word).prop_map(
            |(transaction, is_fee_sufficient, evidence)| Step::Say {
                transaction, sighting: Sighting { is_fee_sufficient, evidence },
            }
        ),
        1 => pick().prop_map(Step::SayRival),
        1 => pick().prop_map(Step::LeaveNode),
        2 => pick().prop_map(Step::FreeInvoices),
    ];
    let outgoing = prop_oneof![
        2 => (pick(), satoshis(), rate())
            .prop_map(|(url, satoshis, fee_rate)| Step::Reserve { url, satoshis, fee_rate }),
        2 => (pick(), maybe())
            .prop_map(|(reservation, to_invoice)| Step::Record { reservation, to_invoice }),
        1 => pick().prop_map(Step::Release),
        7 => (pick(), satoshis(), rate())
            .prop_map(|(url, satoshis, fee_rate)| Step::Pay { url, satoshis, fee_rate }),
        5 => (pick(), satoshis(), rate()).prop_map(|(invoice, satoshis, fee_rate)| {
            Step::Refund { invoice, satoshis, fee_rate }
        }),
        2 => pick().prop_map(Step::Accept),
        5 => pick().prop_map(Step::RefuseByPayee),
        1 => pick().prop_map(Step::PrepareCancellation),
        1 => pick().prop_map(Step::RecordCancellation),
        3 => pick().prop_map(Step::Cancel),
    ];
    let rest = prop_oneof![
        2 => Just(Step::ReleaseAll),
        1 => (0_u32..9).prop_map(Step::BeginAccount),
        4 => (0_u64..60).prop_map(|hours| Step::Sweep { hours }),
        2 => (pick(), any::<bool>())
            .prop_map(|(transaction, is_read)| Step::MarkRead { transaction, is_read }),
    ];
    prop_oneof![8 => incoming, 14 => network, 4 => services, 12 => outgoing, 2 => rest]
}
