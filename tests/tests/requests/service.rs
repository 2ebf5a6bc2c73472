use bsv_tests::{Reply, Server, Site, http, vectors};
use serde_json::Value;

/// A server with the recorded identities, which can make documents without a node.
pub(crate) struct Service {
    pub(crate) site: Site,
    pub(crate) server: Server,
    first_key: String,
}

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// The refusal of bytes that are not the end of a coinbase transaction.
pub(crate) const MALFORMED: &str = "Invalid Coinbase 2: it does not read as the end of a coinbase transaction from any offset up to 100";
pub(crate) const ONE_OUTPUT: &str =
    "00f2052a010000001976a9145deb9155942e7d38febc15de8870222fd24d080e88ac";

/// A coinbase2 with this output count and these outputs.
pub(crate) fn coinbase2(count: &str, outputs: &str) -> String {
    format!("ffffffff{count}{outputs}00000000")
}

/// The body of a valid `POST /coinbase2`, in which some members have other JSON text. A member with
/// an empty text is left out.
pub(crate) fn body_with(replaced: &[(&str, &str)]) -> String {
    let coinbase2 = format!("\"{}\"", coinbase2("01", ONE_OUTPUT));
    let mut members =
        vec![("blockHeight", "1000"), ("alias", "\"first\""), ("coinbase2", &coinbase2)];
    for (name, text) in replaced {
        members.retain(|(present, _)| present != name);
        if !text.is_empty() {
            members.push((name, text));
        }
    }
    let members: Vec<_> = members.iter().map(|(name, text)| format!("\"{name}\":{text}")).collect();
    format!("{{{}}}", members.join(","))
}

impl Service {
    pub(crate) fn start() -> Self {
        Self::start_on(Site::new())
    }

    pub(crate) fn start_on(site: Site) -> Self {
        let vectors = vectors::minerid_0_2();
        let home = vectors::write_home(&vectors, site.data_dir());
        site.cli_ok(&["importminerid", "--from", home.to_str().unwrap()]);
        let first_key = vectors["keys"]["first_1"]["public_key"].as_str().unwrap().to_owned();
        Self { server: site.server(), site, first_key }
    }

    pub(crate) fn restart(self) -> Self {
        let Self { site, server, first_key } = self;
        assert_eq!(server.stop(), 0);
        Self { server: site.server(), site, first_key }
    }

    /// Checks that the started server still runs and answers.
    pub(crate) fn check_alive(&self) {
        assert_eq!(self.server.text("/minerid/first"), self.first_key);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.id())).unwrap();
        assert!(stat.contains("(bsv-server)"), "{stat}");
    }

    /// Checks that the answer to `GET path` has this status and text.
    pub(crate) fn check_get(&self, path: &str, status: u16, text: &str) {
        check(&self.server.get(path), status, text, path);
    }

    /// Checks that the answer to `POST /coinbase2` has this status and text.
    pub(crate) fn check_post(&self, body: impl AsRef<[u8]>, status: u16, text: &str) {
        let body = body.as_ref();
        let shown = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
        check(&self.server.post("/coinbase2", body), status, text, &shown);
    }

    /// Checks that `POST /coinbase2` succeeds. Gives the body of the answer.
    pub(crate) fn post_ok(&self, body: impl AsRef<[u8]>) -> String {
        let reply = self.server.post("/coinbase2", body.as_ref());
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.header("content-type"), Some(TEXT));
        reply.body
    }

    /// Sends these bytes, and reads the answer.
    pub(crate) fn raw(&self, request: impl AsRef<[u8]>) -> std::io::Result<Reply> {
        http::exchange(self.server.address(), request.as_ref(), "GET")
    }

    /// The answer to `GET path` with these header lines and no others.
    pub(crate) fn get_with(&self, path: &str, headers: &str) -> Reply {
        self.raw(format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")).unwrap()
    }

    pub(crate) fn key_of(&self, alias: &str) -> String {
        self.server.text(&format!("/minerid/{alias}"))
    }

    pub(crate) fn is_valid(&self, alias: &str) -> bool {
        self.server.text(&format!("/opreturn/{alias}/isvalid")).parse().unwrap()
    }
}

/// Checks that an answer is plain text with this status. If `text` ends with `…`, the answer only
/// has to begin with it.
pub(crate) fn check(reply: &Reply, status: u16, text: &str, request: &str) {
    assert_eq!(reply.status, status, "{request}: {}", reply.body);
    match text.strip_suffix('…') {
        Some(start) => assert!(reply.body.starts_with(start), "{request}: {}", reply.body),
        None => assert_eq!(reply.body, text, "{request}"),
    }
    assert_eq!(reply.header("content-type"), Some(TEXT), "{request}");
}

/// Whether the document in a script or a coinbase2 holds this text.
pub(crate) fn holds(hex_text: &str, text: &str) -> bool {
    hex_text.contains(&hex::encode(text))
}

/// The recorded job data with all inputs.
pub(crate) fn full_job_data() -> Value {
    let vectors = vectors::minerid_0_2();
    let bodies = vectors["cases"].as_array().unwrap().iter().filter_map(|case| {
        let body: Value = serde_json::from_str(case["request"]["body"].as_str()?).unwrap();
        body.get("jobData").cloned()
    });
    bodies
        .into_iter()
        .find(|job| job.as_object().unwrap().len() == 3)
        .expect("one of the recorded requests has all of jobData")
}
