use std::sync::Arc;

use bsv_invoicing::PayDraft;
use bsv_invoicing::sending::{PaymentPreview, faucet};
use bsv_tx::Network;
use hyper::StatusCode;
use serde_json::json;

use super::managed::{Services, parse};
use super::progress;
use crate::http::{Answer, Declared, Problem, Received, answer};
use crate::wire;

/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `POST /control/wallet/backup-words` | | `{"words"}`: whoever has them has the money |
/// | `POST /control/wallet/accept-clock` | | `{"doubt"}`: what was doubted, or null |
/// | `POST /control/wallet/rescan` | `{"fromHeight"}` | `{"height","balanceBefore","balance"}`, after the blocks are read, and before it how far that has come |
/// | `POST /control/wallet/pay/preview` | `{"payToURL"}` | the effect of such a payment |
/// | `POST /control/wallet/consolidate` | | `{"payment"}`: the consolidation, or null |
/// | `POST /control/faucet` | `{"url"}` | `{"txid"}`, of the node's wallet (regtest) |
pub(super) const ROUTES: &[Declared<Route>] = &[
    ("/control/wallet/backup-words", "POST", Route::Words),
    ("/control/wallet/accept-clock", "POST", Route::AcceptClock),
    ("/control/wallet/rescan", "POST", Route::Rescan),
    ("/control/wallet/pay/preview", "POST", Route::Preview),
    ("/control/wallet/consolidate", "POST", Route::Consolidate),
    ("/control/faucet", "POST", Route::Faucet),
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Words,
    AcceptClock,
    Rescan,
    Preview,
    Consolidate,
    Faucet,
}

/// Shows the words of the wallet, previews payments, and makes other changes that need the owner.
pub(super) async fn answer(
    managed: &Services,
    route: Route,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    let wallet = managed.wallet()?;
    let body = match route {
        Route::Words => json!({ "words": *wallet.export_seed().await?.words() }),
        Route::AcceptClock => {
            json!({ "doubt": wallet.accept_clock().map(|doubt| doubt.to_string()) })
        }
        Route::Rescan => {
            let wire::Rescan { from_height } = parse(request.body())?;
            let wallet = Arc::clone(wallet);
            let work = progress::answer(|tell| async move {
                let before = wallet.balance().await?;
                let read = wallet.rescan(from_height, |height, last| {
                    tell.send_replace((height, last));
                });
                let (height, balance) = (read.await?, wallet.balance().await?);
                Ok(json!({ "height": height, "balanceBefore": before, "balance": balance }))
            });
            return work.await;
        }
        Route::Preview => {
            let PayDraft { pay_to_url, .. } = PayDraft::from_json(request.body())?;
            let preview = wire::PayPreview::from(wallet.preview_payment(&pay_to_url).await?);
            return Ok(answer::json(StatusCode::OK, &preview));
        }
        Route::Consolidate => {
            let payment = wallet.consolidate().await?;
            let payment = payment.as_ref().map(wire::Outgoing::from);
            return Ok(answer::json(StatusCode::OK, &wire::Consolidated { payment }));
        }
        Route::Faucet => {
            let wire::Faucet { url } = parse(request.body())?;
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

impl From<PaymentPreview> for wire::PayPreview {
    fn from(preview: PaymentPreview) -> Self {
        match preview {
            PaymentPreview::Made(payment) => Self::Made { made: wire::Outgoing::from(&*payment) },
            PaymentPreview::Asked {
                payee,
                memo,
                satoshis,
                fee,
                fee_rate,
                link_satoshis,
                expires_at,
            } => Self::Asked {
                expires_at: expires_at.to_string(),
                fee,
                fee_rate,
                link_satoshis,
                memo,
                payee,
                satoshis,
            },
        }
    }
}
