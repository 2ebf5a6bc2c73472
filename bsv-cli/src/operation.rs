use std::path::PathBuf;

use bsv_minerid::{Alias, MinerContact};
use bsv_tx::OutPoint;
use hyper::Method;
use serde_json::{Value, json};

use crate::output;
use crate::reach::Request;

/// One thing that the service is asked to do.
#[derive(Debug)]
pub(crate) enum Operation {
    Generate { alias: Alias },
    SetUpVctx { alias: Alias, funding: Option<OutPoint> },
    Rotate { alias: Alias },
    GetCurrent { alias: Alias },
    OpReturn { alias: Alias, height: u32 },
    SetContact { alias: Alias, pairs: Vec<(String, String)> },
    Import { from: PathBuf },
    List,
}

impl Operation {
    /// The request that asks for it.
    pub(crate) fn request(&self) -> Request {
        let get = |path: String| Request { method: Method::GET, path, body: None };
        let post = |path: String, body: Value| Request {
            method: Method::POST,
            path,
            body: Some(body.to_string()),
        };
        match self {
            Self::Generate { alias } => {
                post("/control/minerids".to_owned(), json!({ "alias": alias.as_str() }))
            }
            Self::SetUpVctx { alias, funding } => post(
                format!("/control/minerids/{alias}/vctx"),
                json!({ "outpoint": funding.map(|outpoint| outpoint.to_string()) }),
            ),
            Self::Rotate { alias } => post(format!("/control/minerids/{alias}/rotate"), json!({})),
            Self::GetCurrent { alias } => get(format!("/minerid/{alias}")),
            Self::OpReturn { alias, height } => get(format!("/opreturn/{alias}/{height}")),
            Self::SetContact { alias, pairs } => {
                let path = format!("/control/minerids/{alias}/contact");
                // Their order enters documents.
                let contact: MinerContact = pairs.iter().cloned().collect();
                Request { method: Method::POST, path, body: Some(contact.to_json()) }
            }
            Self::Import { from } => {
                // The server has another working directory.
                let from = std::path::absolute(from).unwrap_or_else(|_| from.clone());
                post("/control/import".to_owned(), json!({ "from": from }))
            }
            Self::List => get("/control/minerids".to_owned()),
        }
    }

    /// The answer as JSON, for programs.
    pub(crate) fn json(&self, answer: &str) -> String {
        match self {
            Self::GetCurrent { alias } => {
                format!("{}\n", json!({ "alias": alias.as_str(), "minerId": answer }))
            }
            Self::OpReturn { alias, height } => format!(
                "{}\n",
                json!({ "alias": alias.as_str(), "height": height, "script": answer })
            ),
            _ => format!("{answer}\n"),
        }
    }

    /// The answer for people.
    pub(crate) fn text(&self, answer: &str) -> String {
        let value: Value = serde_json::from_str(answer).unwrap_or_default();
        let member = |name: &str| value[name].as_str().unwrap_or_default();
        match self {
            Self::GetCurrent { .. } | Self::OpReturn { .. } => format!("{answer}\n"),
            Self::Generate { alias } => {
                format!("Alias \"{alias}\" has the new miner id {}\n", member("minerId"))
            }
            Self::Rotate { alias } => format!(
                "Alias \"{alias}\" now has the miner id {}\n\
                 The next block that carries it announces the rotation.\n",
                member("minerId")
            ),
            Self::SetUpVctx { alias, .. } if member("state") == "done" => format!(
                "The VCTx of alias \"{alias}\" is on the network: {}\n\
                 Keep it unspent: spending it revokes the identity.\n",
                member("outpoint")
            ),
            Self::SetUpVctx { .. } => format!(
                "Send at least {} satoshis to {} ({} have arrived), then run this again.\n",
                value["leastSatoshis"],
                member("address"),
                value["foundSatoshis"]
            ),
            Self::SetContact { .. } => format!("{value:#}\n"),
            Self::Import { .. } => output::imported(&value),
            Self::List => output::identities(&value),
        }
    }
}
