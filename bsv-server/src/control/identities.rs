mod describe;
mod import;

use std::sync::Arc;

use bsv_minerid::formats::OperatorDataRefs;
use bsv_minerid::node::{
    SweepProgress, VctxSetup, VctxSweep, check_newest_copy, preview_vctx_sweep, revoke_miner_ids,
    revoke_vctx, set_up_vctx, sweep_vctx,
};
use bsv_minerid::store::Vctx;
use bsv_minerid::{Alias, CanonicalJson, MinerContact, RevokedMinerIds};
use bsv_tx::{Address, OutPoint, PublicKey, TxOut};
use bytes::Bytes;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use self::describe::contact_json;
pub(crate) use self::describe::{STATES, is_overdue, state};
pub(super) use self::describe::{alarms, describe, describe_broken};
use super::handed::{HandedFiles, handed, or_write_first};
use super::managed::{Services, parse};
use crate::http::{Answer, Declared, Problem, Received, answer};
use crate::minerid::MinerIds;
use crate::wire;

/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `GET /control/minerids` | | the identities |
/// | `POST /control/minerids` | `{"alias", "protocol"?}` | the new identity |
/// | `GET /control/minerids/{alias}` | | the identity |
/// | `POST /control/minerids/{alias}/rotate` | `{"force"?}` | the identity |
/// | `POST /control/minerids/{alias}/revocation-key` | | the identity, with a new revocation key |
/// | `POST /control/minerids/{alias}/revoke-partially` | `{"minerId"}` | the identity |
/// | `POST /control/minerids/{alias}/revoke-completely` | | the identity |
/// | `POST /control/minerids/{alias}/revoke` | | the identity, its VCTx spent |
/// | `POST /control/minerids/{alias}/confirm` | | the identity |
/// | `POST /control/minerids/{alias}/upgrade` | `{"firstMinerId"?}` | the identity |
/// | `POST /control/minerids/{alias}/extensions` | an object | the identity |
/// | `POST /control/minerids/{alias}/data` | the operator's data | the identity |
/// | `POST /control/minerids/{alias}/blind-signing` | `{"on"}` | the identity |
/// | `POST /control/minerids/{alias}/contact` | an object of strings | the whole contact |
/// | `POST /control/minerids/{alias}/contact/remove` | `{"keys"}` | the whole contact |
/// | `POST /control/minerids/{alias}/delete` | `{"withKeys"?}` | `{}` |
/// | `POST /control/minerids/{alias}/vctx` | `{"outpoint"?}` | what was done, or what to do |
/// | `POST /control/minerids/{alias}/vctx/sweep` | `{"address", "outpoint"?, "dryRun"?}` | the transaction that takes the coins |
/// | `POST /control/import` | `{"home"}`, the files of a home directory | the outcome for each alias |
///
/// If revocation keys are needed and are not in the default directory, `"revocationKeystore"` hands
/// their keystore over. The answer may ask to write its files: see [`or_write_first`].
pub(super) const ROUTES: &[Declared<Route>] = &[
    ("/control/minerids", "GET, POST", Route::All),
    ("/control/minerids/{alias}", "GET", Route::One),
    ("/control/minerids/{alias}/rotate", "POST", Route::Change(Change::Key)),
    ("/control/minerids/{alias}/revocation-key", "POST", Route::Change(Change::RevocationKey)),
    ("/control/minerids/{alias}/revoke-partially", "POST", Route::Change(Change::RevokePartially)),
    (
        "/control/minerids/{alias}/revoke-completely",
        "POST",
        Route::Change(Change::RevokeCompletely),
    ),
    ("/control/minerids/{alias}/revoke", "POST", Route::Change(Change::Revoke)),
    ("/control/minerids/{alias}/confirm", "POST", Route::Change(Change::Confirm)),
    ("/control/minerids/{alias}/upgrade", "POST", Route::Change(Change::Upgrade)),
    ("/control/minerids/{alias}/extensions", "POST", Route::Change(Change::Extensions)),
    ("/control/minerids/{alias}/data", "POST", Route::Change(Change::Data)),
    ("/control/minerids/{alias}/blind-signing", "POST", Route::Change(Change::BlindSigning)),
    ("/control/minerids/{alias}/contact", "POST", Route::Contact),
    ("/control/minerids/{alias}/contact/remove", "POST", Route::RemoveContactKeys),
    ("/control/minerids/{alias}/delete", "POST", Route::Delete),
    ("/control/minerids/{alias}/vctx", "POST", Route::Vctx),
    ("/control/minerids/{alias}/vctx/sweep", "POST", Route::SweepVctx),
    ("/control/import", "POST", Route::Import),
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    All,
    One,
    Change(Change),
    Contact,
    RemoveContactKeys,
    Delete,
    Vctx,
    SweepVctx,
    Import,
}

/// The change of an identity that a request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Key,
    RevocationKey,
    RevokePartially,
    RevokeCompletely,
    Revoke,
    Confirm,
    Upgrade,
    Extensions,
    Data,
    BlindSigning,
}

/// Sets up and shows identities.
pub(super) async fn answer(
    managed: &Services,
    route: Route,
    alias: &str,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    let handed = handed(request.body())?;
    let handed = handed.as_ref();
    or_write_first(handed, answer_with(managed, route, alias, request, handed).await)
}

async fn answer_with(
    managed: &Services,
    route: Route,
    alias: &str,
    request: Received<'_>,
    handed: Option<&HandedFiles>,
) -> Result<Answer, Problem> {
    let ids = managed.ids()?;
    let body = request.body();
    let ok = |value: Value| Ok(answer::json(StatusCode::OK, &value));
    match route {
        Route::All if request.method() == Method::POST => generate(managed, body, handed).await,
        Route::All => {
            ok(ids.all().iter().map(|id| describe(id)).chain(describe_broken(ids)).collect())
        }
        Route::One => ok(describe(&*ids.get(alias)?)),
        Route::Change(what) => {
            change(managed, &named(alias)?, what, body, handed).await?;
            ok(describe(&*ids.get(alias)?))
        }
        Route::Contact => {
            let alias = named(alias)?;
            let contact = MinerContact::from_json(text(body)?)
                .map_err(|error| Problem::bad_request(error.to_string()))?;
            let whole = managed.on_identities(move |ids| ids.set_contact(&alias, &contact)).await?;
            ok(contact_json(&whole))
        }
        Route::RemoveContactKeys => {
            let (alias, wire::ContactKeys { keys }) = (named(alias)?, parse(body)?);
            let remove = move |ids: &MinerIds| ids.remove_contact_keys(&alias, &keys);
            ok(contact_json(&managed.on_identities(remove).await?))
        }
        Route::Delete => {
            delete(managed, named(alias)?, &parse(body)?).await?;
            ok(json!({}))
        }
        Route::Vctx => ok(set_up(managed, &named(alias)?, &parse(body)?).await?),
        Route::SweepVctx => ok(sweep(managed, &named(alias)?, &parse(body)?).await?),
        Route::Import => ok(import::answer(managed, body, handed).await?),
    }
}

async fn generate(
    managed: &Services,
    body: &Bytes,
    handed: Option<&HandedFiles>,
) -> Result<Answer, Problem> {
    let wire::NewIdentity { alias, protocol } = parse(body)?;
    let alias = named(&alias)?;
    let made = alias.clone();
    match protocol.as_deref() {
        None | Some("0.2") => {
            managed.on_identities(move |ids| ids.generate(&made)).await?;
        }
        Some("1.0") => {
            let keys = managed.revocation_keys.open(handed).await?;
            managed.on_identities(move |ids| ids.generate_miner_info(&made, &keys)).await?;
        }
        Some(_) => return Err(Problem::bad_request("the protocol is 0.2 or 1.0")),
    }
    // The blocks from here on are watched.
    check_newest(managed, &alias).await?;
    let identity = managed.ids()?.get(alias.as_str())?;
    Ok(answer::json(StatusCode::CREATED, &describe(&identity)))
}

async fn change(
    managed: &Services,
    alias: &Alias,
    change: Change,
    body: &Bytes,
    handed: Option<&HandedFiles>,
) -> Result<(), Problem> {
    let (ids, keys) = (managed.ids()?, &managed.revocation_keys);
    let named = alias.clone();
    match change {
        Change::Key => {
            let wire::Rotation { force } = parse(body)?;
            ids.rotate(managed.any_node(), alias, force).await?;
            Ok(())
        }
        Change::RevocationKey => {
            let wire::Nothing {} = parse(body)?;
            let keystore = keys.open_existing(handed).await?;
            check_newest(managed, alias).await?;
            let roll = move |ids: &MinerIds| ids.roll_revocation_key(&named, &keystore);
            managed.on_identities(roll).await.map(drop)
        }
        Change::RevokePartially => {
            let wire::RevokedBackTo { miner_id } = parse(body)?;
            let revoked = RevokedMinerIds::BackTo(public_key(&miner_id)?);
            let node = managed.node()?;
            let keystore = Arc::new(keys.open_existing(handed).await?);
            Ok(revoke_miner_ids(ids, node, alias, revoked, keystore).await?)
        }
        Change::RevokeCompletely => {
            let wire::Nothing {} = parse(body)?;
            let node = managed.node()?;
            let keystore = Arc::new(keys.open_existing(handed).await?);
            Ok(revoke_miner_ids(ids, node, alias, RevokedMinerIds::All, keystore).await?)
        }
        Change::Revoke => {
            revoke_vctx(ids, managed.node()?, alias).await?;
            Ok(())
        }
        Change::Confirm => managed.on_identities(move |ids| ids.confirm(&named)).await,
        Change::Upgrade => {
            let wire::Upgrade { first_miner_id } = parse(body)?;
            let first = first_miner_id.as_deref().map(public_key).transpose()?;
            let keystore = keys.open(handed).await?;
            check_newest(managed, alias).await?;
            let upgrade = move |ids: &MinerIds| ids.upgrade(&named, first.as_ref(), &keystore);
            managed.on_identities(upgrade).await.map(drop)
        }
        Change::Extensions => {
            let extensions = CanonicalJson::from_text(text(body)?)
                .map_err(|error| Problem::bad_request(error.to_string()))?;
            managed.on_identities(move |ids| ids.set_extensions(&named, extensions)).await
        }
        Change::Data => {
            let data = OperatorDataRefs::from_json(text(body)?)
                .map_err(|error| Problem::unprocessable(error.to_string()))?;
            managed.on_identities(move |ids| ids.set_data(&named, data)).await
        }
        Change::BlindSigning => {
            let wire::BlindSigning { on } = parse(body)?;
            managed.on_identities(move |ids| ids.set_blind_signing(&named, on)).await
        }
    }
}

/// Refuses to change an older copy of an identity. Without a running server, the node has not been
/// asked before.
async fn check_newest(managed: &Services, alias: &Alias) -> Result<(), Problem> {
    let Some(node) = managed.any_node() else { return Ok(()) };
    Ok(check_newest_copy(managed.ids()?, node, alias).await?)
}

/// Deletes an identity. First sends the transaction again that revokes an identity of generation
/// 0.2: after the deletion, nobody sends it.
async fn delete(managed: &Services, alias: Alias, request: &wire::Deletion) -> Result<(), Problem> {
    let ids = managed.ids()?;
    if let Some(Vctx::Revoking(..)) = ids.get(alias.as_str())?.record().vctx() {
        revoke_vctx(ids, managed.node()?, &alias).await?;
    }
    let with_keys = request.with_keys;
    managed.on_identities(move |ids| ids.delete(&alias, with_keys)).await
}

async fn set_up(managed: &Services, alias: &Alias, asked: &wire::Vctx) -> Result<Value, Problem> {
    let outpoint = outpoint(asked.outpoint.as_deref())?;
    Ok(match set_up_vctx(managed.ids()?, managed.node()?, alias, outpoint).await? {
        VctxSetup::Done(outpoint) => json!({ "state": "done", "outpoint": outpoint.to_string() }),
        VctxSetup::FundingNeeded { address, least_satoshis, found_satoshis } => json!({
            "state": "fundingNeeded",
            "address": address.to_string(),
            "leastSatoshis": least_satoshis,
            "foundSatoshis": found_satoshis,
        }),
    })
}

async fn sweep(managed: &Services, alias: &Alias, asked: &wire::Sweep) -> Result<Value, Problem> {
    let to = Address::parse(&asked.address, managed.network);
    let to = to.map_err(|error| Problem::bad_request(error.to_string()))?;
    let (ids, node) = (managed.ids()?, managed.node()?);
    let named = outpoint(asked.outpoint.as_deref())?;
    let swept = match asked.dry_run {
        true => preview_vctx_sweep(ids, node, alias, &to, named).await?,
        false => sweep_vctx(ids, node, alias, &to, named).await?,
    };
    let VctxSweep { transaction, fee, .. } = &swept;
    let address = |output: &TxOut| Address::of_script(&output.locking_script, managed.network);
    let spent = transaction.inputs.iter().map(|input| input.previous_output.to_string());
    Ok(json!({
        "txid": transaction.txid().to_string(),
        "address": transaction.outputs.first().and_then(address).map(|address| address.to_string()),
        "satoshis": transaction.outputs.iter().map(|output| output.satoshis).sum::<u64>(),
        "fee": fee,
        "spent": spent.collect::<Vec<_>>(),
        "state": match swept.progress {
            SweepProgress::Planned => "planned",
            SweepProgress::Unseen => "unseen",
            SweepProgress::InMempool => "inMempool",
            SweepProgress::Mined => "mined",
        },
    }))
}

fn outpoint(text: Option<&str>) -> Result<Option<OutPoint>, Problem> {
    let outpoint = text.map(str::parse).transpose();
    outpoint.map_err(|error| Problem::bad_request(format!("{error}")))
}

fn named(alias: &str) -> Result<Alias, Problem> {
    alias.parse().map_err(|error| Problem::bad_request(format!("{error}")))
}

fn public_key(text: &str) -> Result<PublicKey, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("{error}")))
}

fn text(body: &Bytes) -> Result<&str, Problem> {
    std::str::from_utf8(body).map_err(|_| Problem::bad_request("the text is not UTF-8"))
}
