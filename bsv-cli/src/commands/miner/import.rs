//! Importing identities of an older generator.

use std::path::PathBuf;

use bsv_minerid::import::HomeFiles;
use bsv_server::Create;
use clap::Args;
use serde_json::{Value, json};

use super::identities::describe;
use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{elements, field, text};
use crate::revocation_keystore::RevocationKeystore;

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The directory with .minerid-client, .keystore and, if there are revocation keys,
    /// .revocationkeystore
    #[arg(long, value_name = "HOME")]
    from: PathBuf,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
}

impl ImportArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let home = json!({ "home": HomeFiles::read(&self.from)? });
        let mut service = context.service_after(Create::Identities, Stores::Identities).await?;
        let waiting = context.wait("importing");
        let keystore = self.revocation_keystore;
        let answer = keystore.post(context, &mut service, "/control/import", home).await?;
        drop(waiting);
        let imported = answer.value()?;
        context.print(&answer.body, || {
            let taken_over = elements(&imported["identities"]).iter().map(taken_over);
            taken_over.chain(elements(&imported["known"]).iter().map(known)).collect()
        })?;
        match elements(&imported["identities"]) {
            [] => Ok(()),
            identities => context.advise(&what_next(identities)),
        }
    }
}

fn taken_over(identity: &Value) -> String {
    describe("Imported alias", identity) + &field("the node", &finding(identity).into())
}

/// The finding about the VCTx.
fn finding(identity: &Value) -> &'static str {
    match identity["vctxFinding"].as_str().unwrap_or_default() {
        "unspent" => "shows the VCTx unspent, and its key is here",
        "spent" => "shows that the VCTx is spent, which revokes the alias",
        "foreign" => "shows that the key of the VCTx does not own it: the VCTx was not imported",
        "notFound" => "has the VCTx in no block, so it is unknown whether it is unspent",
        "notAsked" => "did not tell whether the VCTx is unspent and whether its key owns it",
        _ => "",
    }
}

fn known(known: &Value) -> String {
    let alias = text(known, "alias");
    if known["deleted"] == true {
        return format!("Alias \"{alias}\" was deleted here, and is not imported\n");
    }
    let keys = if known["hasKeys"] == true { "" } else { " with other keys" };
    format!("Alias \"{alias}\" already exists{keys}, and stays unchanged\n")
}

/// The operator's next steps after an import.
fn what_next(identities: &[Value]) -> String {
    let lacking = identities.iter().filter(|identity| identity["vctx"]["state"] == "none");
    let set_up = lacking.map(|identity| {
        let alias = text(identity, "alias");
        format!("Set up a VCTx for alias \"{alias}\": bsv-cli miner vctx --name {alias}\n")
    });
    set_up.collect::<String>()
        + "Stop the older generator, and let the pool use this service: neither knows the changes that the \
           other makes.\n\
           Make a backup with bsv-cli backup. Then delete the home directory, whose keys are not sealed."
}
