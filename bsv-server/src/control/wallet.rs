use std::sync::Arc;

use bsv_invoicing::{OutgoingPayment, PayDraft, PaymentPreview, Wallet, faucet};
use bsv_tx::Network;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::managed::{Managed, parse};
use crate::http::{Answer, Declared, Problem, Received, answer, number_parameter};

/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `POST /control/wallet/backup-words` | | `{"words"}`: whoever has them has the money |
/// | `POST /control/wallet/accept-clock` | | `{"doubt"}`: what was doubted, or null |
/// | `GET /control/wallet/payments?before=N` | | payments by the wallet, the newest first |
/// | `POST /control/wallet/payments/{number}/cancel` | | the payment |
/// | `POST /control/wallet/pay/preview` | `{"payToURL"}` | what paying there would do |
/// | `POST /control/faucet` | `{"url"}` | `{"txid"}`, of the node's wallet (regtest) |
pub(super) const ROUTES: &[Declared<Route>] = &[
    ("/control/wallet/backup-words", "POST", Route::Words),
    ("/control/wallet/accept-clock", "POST", Route::AcceptClock),
    ("/control/wallet/payments", "GET", Route::Payments),
    ("/control/wallet/payments/{number}/cancel", "POST", Route::Cancel),
    ("/control/wallet/pay/preview", "POST", Route::Preview),
    ("/control/faucet", "POST", Route::Faucet),
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Words,
    AcceptClock,
    Payments,
    Cancel,
    Preview,
    Faucet,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaucetJson {
    url: String,
}

/// How many payments are told at once.
const MAX_PAYMENTS: usize = 100;

/// Tells secrets of the wallet, and looks after its payments.
pub(super) async fn answer(
    managed: &Managed,
    route: Route,
    number: &str,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    let wallet = managed.wallet()?;
    let body = match route {
        Route::Words => json!({ "words": *wallet.export_seed().await?.words() }),
        Route::AcceptClock => {
            json!({ "doubt": wallet.accept_clock().map(|doubt| doubt.to_string()) })
        }
        Route::Payments => {
            let before = number_parameter(request.uri(), "before")?.unwrap_or(u64::MAX);
            let payments = wallet.outgoing_payments(before, MAX_PAYMENTS).await?;
            payments.iter().map(describe).collect()
        }
        Route::Cancel => describe(&cancel(wallet, number).await?),
        Route::Preview => {
            let PayDraft { pay_to_url, .. } = PayDraft::from_json(request.body())?;
            describe_preview(&wallet.preview_payment(&pay_to_url).await?)
        }
        Route::Faucet => {
            let FaucetJson { url } = parse(request.body())?;
            if managed.network != Network::Regtest {
                let detail = "the faucet gives coins of a regtest node only";
                return Err(Problem::of_status(StatusCode::UNPROCESSABLE_ENTITY, detail));
            }
            let own = wallet.own_listeners().clone();
            json!({ "txid": faucet(managed.node()?, &url, own).await?.to_string() })
        }
    };
    Ok(answer::json(StatusCode::OK, &body))
}

async fn cancel(wallet: &Arc<Wallet>, number: &str) -> Result<OutgoingPayment, Problem> {
    let unknown = |_| {
        let detail = format!("there is no payment {number}");
        Problem::new(StatusCode::NOT_FOUND, "unknown-payment", detail)
    };
    Ok(wallet.cancel_payment(number.parse().map_err(unknown)?).await?)
}

fn describe(payment: &OutgoingPayment) -> Value {
    json!({
        "id": payment.number,
        "url": payment.url,
        "txid": payment.txid.to_string(),
        "satoshis": payment.satoshis,
        "fee": payment.fee,
        "state": payment.state.name(),
        "createdAt": payment.created_at.to_string(),
        "expiresAt": payment.expires_at.to_string(),
        "memo": payment.memo,
        "blockHash": payment.block.map(|block| block.hash.to_string()),
        "blockHeight": payment.block.map(|block| block.height),
    })
}

fn describe_preview(preview: &PaymentPreview) -> Value {
    match preview {
        PaymentPreview::Made(payment) => json!({ "made": describe(payment) }),
        PaymentPreview::Asked { payee, memo, satoshis, fee, fee_rate, expires_at } => json!({
            "payee": payee,
            "memo": memo,
            "satoshis": satoshis,
            "fee": fee,
            "feeRate": fee_rate,
            "expiresAt": expires_at.to_string(),
        }),
    }
}
