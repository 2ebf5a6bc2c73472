//! Paying.

use clap::Args;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::field;

#[derive(Debug, Args)]
pub(crate) struct PayArguments {
    /// The payment URL
    url: String,
}

impl PayArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let waiting = context.wait("paying");
        let answer = service.post("/api/v1/pay", json!({ "payToURL": self.url })).await?;
        drop(waiting);
        let paid = answer.value()?;
        context.print(&answer.body, || {
            [
                "Paid\n".to_owned(),
                field("id", &paid["id"]),
                field("transaction", &paid["tx_id"]),
                field("memo", &paid["memo"]),
            ]
            .concat()
        })
    }
}
