//! The OpenAPI 3.1 descriptions of the listeners: files written by hand, as the answers are.

use crate::api::Api;

const WALLET: &str = include_str!("../openapi/wallet.json");
const PAYMENTS: &str = include_str!("../openapi/payments.json");
const MINERID: &str = include_str!("../openapi/minerid.json");

/// The path of an API's description, and the description. Nodes need none, and only the command
/// line uses the control socket.
pub(crate) fn document(api: Api) -> Option<(&'static str, &'static str)> {
    match api {
        Api::Wallet => Some(("/api/v1/openapi.json", WALLET)),
        Api::Payments => Some(("/openapi.json", PAYMENTS)),
        Api::MinerId => Some(("/openapi.json", MINERID)),
        Api::Node | Api::Control => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bsv_invoicing::events::EventKind;
    use serde_json::Value;

    use super::*;
    use crate::access::Scope;
    use crate::paths::paths;

    const DESCRIBED: [Api; 3] = [Api::Wallet, Api::Payments, Api::MinerId];
    /// The methods that a path can have as members.
    const METHODS: [&str; 5] = ["get", "head", "post", "patch", "delete"];

    fn read(api: Api) -> Value {
        let (_, text) = document(api).expect("the api is described");
        serde_json::from_str(text).expect("the description is JSON")
    }

    fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
        let members = value.as_object().into_iter().flatten();
        members.map(|(name, value)| (name.as_str(), value))
    }

    /// Each method of each path, such as `GET /healthz`, with its description.
    fn operations(document: &Value) -> Vec<(String, &Value)> {
        let paths = members(&document["paths"]);
        let operations = paths.flat_map(|(path, item)| {
            let operations = members(item).filter(|(name, _)| METHODS.contains(name));
            operations.map(move |(name, it)| (format!("{} {path}", name.to_uppercase()), it))
        });
        operations.collect()
    }

    #[test]
    fn the_files_describe_every_route_and_no_other() {
        for api in DESCRIBED {
            let document = read(api);
            let described: BTreeSet<_> =
                operations(&document).into_iter().map(|(name, _)| name).collect();
            let routed = paths(api).into_iter().flat_map(|(path, methods)| {
                methods.split(", ").map(move |method| format!("{method} {path}"))
            });
            assert_eq!(described, routed.collect(), "{api:?}");
        }
    }

    #[test]
    fn the_files_have_the_version_of_the_program() {
        for api in DESCRIBED {
            assert_eq!(read(api)["info"]["version"], env!("CARGO_PKG_VERSION"), "{api:?}");
        }
    }

    #[test]
    fn operations_have_ids_of_their_own_and_scopes_that_there_are() {
        let known = Scope::ALL.map(Scope::name);
        for api in DESCRIBED {
            let document = read(api);
            let mut ids = BTreeSet::new();
            for (name, operation) in operations(&document) {
                let id = operation["operationId"].as_str().unwrap_or_default();
                assert!(!id.is_empty() && ids.insert(id.to_owned()), "{name}: {id:?}");
                let demands = operation["security"].as_array().into_iter().flatten();
                for scope in demands.flat_map(|demand| demand["token"].as_array()).flatten() {
                    assert!(known.iter().any(|name| scope == name), "{name}: {scope}");
                }
            }
        }
    }

    #[test]
    fn the_wallets_file_tells_of_every_type_of_event() {
        let document = read(Api::Wallet);
        let told: BTreeSet<_> = members(&document["webhooks"]).map(|(name, _)| name).collect();
        let kinds = EventKind::ALL.iter().map(|kind| kind.name());
        assert_eq!(told, kinds.chain(["webhook.test"]).collect());
    }
}
