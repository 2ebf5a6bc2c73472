use bsv_tests::{Client, Reply, Server, Site, vectors};
use serde_json::{Value, json};

/// A server that demands tokens, with the recorded identities `first` and `rot`.
pub(crate) struct Guarded {
    pub(crate) site: Site,
    pub(crate) server: Server,
}

impl Guarded {
    pub(crate) fn start() -> Self {
        Self::start_with(json!({"auth": {"requireToken": true}}))
    }

    pub(crate) fn start_with(settings: Value) -> Self {
        let mut site = Site::with(settings);
        site.set_env("BSV_LOG", "off");
        let home = vectors::write_home(&vectors::minerid_0_2(), site.data_dir());
        site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
        Self { server: site.server(), site }
    }

    /// Makes a token with these scopes.
    pub(crate) fn token(&self, scopes: &[&str]) -> String {
        create(&self.site, scopes, None).0
    }

    pub(crate) fn minerid(&self) -> Client {
        Client::new(self.server.address())
    }

    /// Sends a request to the listener of `path`, with or without a token.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str, token: Option<&str>) -> Reply {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(authorization.as_deref().map(|value| ("Authorization", value)));
        let client = match path.starts_with("/api/") {
            true => self.server.wallet().clone(),
            false => self.minerid(),
        };
        client.send(method, path, &headers, body.as_bytes())
    }
}

/// Makes a token on a site, and returns the token and its id.
pub(crate) fn create(site: &Site, scopes: &[&str], expires_at: Option<&str>) -> (String, String) {
    let mut arguments = vec!["token", "create"];
    for scope in scopes {
        arguments.extend(["--scope", scope]);
    }
    arguments.extend(expires_at.iter().flat_map(|at| ["--expires-at", at]));
    let made = site.cli_json(&arguments);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}
