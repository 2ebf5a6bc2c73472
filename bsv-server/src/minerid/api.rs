use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bsv_minerid::node::ChainSign;
use bsv_minerid::{Alias, Error, Identity};
use bsv_tx::{PublicKey, Script, Signature, Txid};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use matchit::Params;
use percent_encoding::percent_decode_str;
use tokio::time::sleep;

use super::coinbase2::Job;
use super::letter_case::in_lower_case;
use super::recent_rotations::RecentRotations;
use crate::access::{Caller, Scope};
use crate::api::Api;
use crate::http;
use crate::http::{
    Answer, Declared, Matched, NoRoute, Problem, Received, Routes, answer, check_unsafe_get,
    is_navigation,
};
use crate::minerid::MinerIds;
use crate::refusal::Refusal;

/// How often a request asks whether its document is noted.
const NOTE_INTERVAL: Duration = Duration::from_millis(5);

/// Answers the requests of the miner identity specification.
#[derive(Debug)]
pub(crate) struct MinerIdApi {
    ids: Arc<MinerIds>,
    /// How long a request may wait for the node.
    patience: Duration,
    rotations: RecentRotations,
    routes: Routes<Route>,
    /// The only alias that the node's listener serves.
    nodes_alias: Option<Alias>,
    nodes_routes: Routes<Route>,
}

#[derive(Clone, Copy, Debug)]
enum Route {
    OutputScript,
    OutputScriptWithData,
    DataScripts,
    IsValid,
    Rotate,
    Coinbase2,
    MinerId,
    Sign,
    PkSign,
}

const ROUTES: [Declared<Route>; 9] = [
    ("/opreturn/{alias}/{height}", "GET, HEAD", Route::OutputScript),
    ("/opreturn/{alias}/{height}/{txid}", "GET, HEAD", Route::OutputScriptWithData),
    ("/datarefs/{alias}/opreturns", "GET, HEAD", Route::DataScripts),
    ("/opreturn/{alias}/isvalid", "GET, HEAD", Route::IsValid),
    ("/opreturn/{alias}/rotate", "GET, POST", Route::Rotate),
    ("/coinbase2", "POST", Route::Coinbase2),
    ("/minerid/{alias}", "GET, HEAD", Route::MinerId),
    ("/minerid/{alias}/sign/{hash}", "GET, HEAD", Route::Sign),
    ("/minerid/{alias}/pksign/{hash}", "GET, HEAD", Route::PkSign),
];

/// The routes that a node calls (`mineridgeneratorurl`) when another node wants it to prove its
/// identity.
const NODES_ROUTES: [Declared<Route>; 2] = [
    ("/minerid/{alias}", "GET, HEAD", Route::MinerId),
    ("/minerid/{alias}/pksign/{hash}", "GET, HEAD", Route::PkSign),
];

/// A request with its caller.
pub(crate) struct Call<'a> {
    matched: Matched<'a, Route>,
    caller: Caller,
    /// Whether the request is a preview, which does not count as handing out a document.
    is_preview: bool,
}

impl Call<'_> {
    /// The pattern of its path.
    pub(crate) fn pattern(&self) -> &'static str {
        self.matched.pattern
    }
}

impl MinerIdApi {
    /// `patience` is how long a request may wait for the node. `nodes_alias` is the alias that the
    /// node's listener serves, if there is that listener.
    pub(crate) fn new(ids: Arc<MinerIds>, patience: Duration, nodes_alias: Option<Alias>) -> Self {
        let [routes, nodes_routes] = [Routes::new(ROUTES), Routes::new(NODES_ROUTES)];
        let rotations = RecentRotations::default();
        Self { ids, patience, rotations, routes, nodes_alias, nodes_routes }
    }

    pub(crate) fn ids(&self) -> &Arc<MinerIds> {
        &self.ids
    }

    /// The patterns of all paths, with their methods.
    pub(crate) fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
        ROUTES.iter().map(|(pattern, methods, _)| (*pattern, *methods))
    }

    /// The patterns of all paths on the node's listener, with their methods.
    pub(crate) fn node_paths() -> impl Iterator<Item = (&'static str, &'static str)> {
        NODES_ROUTES.iter().map(|(pattern, methods, _)| (*pattern, *methods))
    }

    /// The pattern that matches a path on the node's listener, if there is one.
    pub(crate) fn node_pattern(&self, path: &str) -> Option<&'static str> {
        self.nodes_routes.pattern(without_slash(path))
    }

    /// The pattern that matches a path, if there is one.
    pub(crate) fn pattern(&self, path: &str) -> Option<&'static str> {
        self.routes.pattern(without_slash(&in_lower_case(path)))
    }

    /// Determines the request, and checks that the caller may make it. Refuses requests that can be
    /// refused without their body.
    pub(crate) fn admit<'a>(
        &'a self,
        head: &'a Parts,
        api: Api,
        caller: Caller,
    ) -> Result<Call<'a>, Refusal> {
        let path = without_slash(head.uri.path());
        let matched = match api {
            Api::Node if !self.is_of_nodes_alias(path) => return Err(NoRoute::Path.into()),
            Api::Node => self.nodes_routes.find(path, &head.method)?,
            _ => self.routes.find(path, &head.method)?,
        };
        let (route, params) = (matched.route, &matched.params);
        match route {
            Route::Coinbase2 => caller.require_for_some_alias(route.scope())?,
            _ => {
                let alias = param(params, "alias")?;
                caller.require(route.scope(), || Some(alias))?;
            }
        }
        if matches!(route, Route::Rotate | Route::OutputScriptWithData)
            && head.method == Method::GET
        {
            check_unsafe_get(&head.headers).map_err(Refusal::Forbidden)?;
        }
        // Output of the command line is not handed out.
        let is_preview =
            api == Api::Control || head.method == Method::HEAD || is_navigation(&head.headers);
        Ok(Call { matched, caller, is_preview })
    }

    /// Whether a path such as `/minerid/pool` names the alias that the node's listener serves.
    fn is_of_nodes_alias(&self, path: &str) -> bool {
        let alias = self.nodes_alias.as_ref();
        alias.is_some_and(|alias| path.split('/').nth(2) == Some(alias.as_str()))
    }

    /// Answers a call.
    pub(crate) async fn answer(
        &self,
        call: Call<'_>,
        request: Received<'_>,
    ) -> Result<Answer, Refusal> {
        let Call { matched, caller, is_preview } = call;
        let job = match matched.route {
            Route::Coinbase2 => Job::parse(request.body()),
            _ => Ok(Job::default()),
        };
        // A body that names no alias is refused for what it lacks.
        if let Some(alias) = job.as_ref().ok().and_then(Job::alias) {
            caller.require(matched.route.scope(), || Some(alias))?;
        }
        Ok(self.call(matched.route, &matched.params, request, job, is_preview).await?)
    }

    async fn call(
        &self,
        route: Route,
        params: &Params<'_, '_>,
        request: Received<'_>,
        job: Result<Job<'_>, Problem>,
        is_preview: bool,
    ) -> Result<Answer, Problem> {
        if let Some((name, _)) = http::parameters(request.uri()).next() {
            let text = format!("the query parameter \"{name}\" is not known here");
            return Err(Problem::bad_request(text));
        }
        let alias = || param(params, "alias");
        let ok = |body: String| answer::text(StatusCode::OK, body);
        match route {
            Route::OutputScript => {
                let height = height(&param(params, "height")?)?;
                let identity = self.identity(&alias()?)?;
                self.catch_up(&identity, ChainSign::Height(height)).await;
                let script = match is_preview {
                    true => identity.preview_output_script(height)?,
                    false => noted(|| Ok(identity.output_script_if_noted(height)?)).await?,
                };
                Ok(answer::hexadecimal(&script))
            }
            Route::OutputScriptWithData => {
                let height = height(&param(params, "height")?)?;
                let alias = alias()?;
                let identity = self.identity(&alias)?;
                self.catch_up(&identity, ChainSign::Height(height)).await;
                let txid = data_txid(&param(params, "txid")?)?;
                let script = match *request.method() {
                    // Some pools always name a transaction.
                    _ if identity.lacks_data() && is_preview => {
                        identity.preview_output_script(height)?
                    }
                    _ if identity.lacks_data() => {
                        noted(|| Ok(identity.output_script_if_noted(height)?)).await?
                    }
                    Method::HEAD => identity.preview_output_script_with_data(height, txid)?,
                    _ => match identity.output_script_with_data_if_noted(height, txid)? {
                        Some(script) => script,
                        None => {
                            let alias = alias.into_owned();
                            let refer = move |ids: &MinerIds| {
                                ids.output_script_with_data(&alias, height, txid)
                            };
                            self.ids.on_disk(refer).await?
                        }
                    },
                };
                Ok(answer::hexadecimal(&script))
            }
            Route::DataScripts => {
                let scripts = self.identity(&alias()?)?.data_scripts();
                let scripts: Vec<_> = scripts.iter().map(Script::to_hex).collect();
                Ok(ok(serde_json::Value::from(scripts).to_string()))
            }
            Route::IsValid => Ok(ok(self.identity(&alias()?)?.is_valid().to_string())),
            Route::Rotate => self.rotate(&alias()?, request.method()).await,
            Route::Coinbase2 => {
                let job = job?;
                if self.ids.announced() > 0
                    && let Some((identity, sign)) = job.sign(&self.ids)
                {
                    self.catch_up(&identity, sign).await;
                }
                let coinbase2 = noted(|| job.rewrite(&self.ids)).await?;
                Ok(answer::hexadecimal(&coinbase2))
            }
            Route::MinerId => Ok(ok(self.identity(&alias()?)?.public_key().to_string())),
            Route::Sign => {
                let identity = self.identity(&alias()?)?;
                let digest = digest(&param(params, "hash")?)?;
                Ok(ok(identity.sign(&digest)?.to_string()))
            }
            Route::PkSign => {
                let identity = self.identity(&alias()?)?;
                let digest = digest(&param(params, "hash")?)?;
                let (public_key, signature) = identity.sign_and_name_key(&digest)?;
                let body = PkSignJson { public_key, signature };
                Ok(answer::json(StatusCode::OK, &body))
            }
        }
    }

    /// Asks the node for news, if a request implies a new block.
    async fn catch_up(&self, identity: &Identity, sign: ChainSign) {
        self.ids.catch_up(identity, sign, self.patience).await;
    }

    async fn rotate(&self, alias: &str, method: &Method) -> Result<Answer, Problem> {
        let alias: Alias = alias.parse().map_err(|_| Error::UnknownAlias(alias.to_owned()))?;
        let (ids, named) = (Arc::clone(&self.ids), alias.clone());
        let rotation = async move { ids.rotate(ids.node(), &named, false).await.map(drop) };
        let rotation = Box::pin(rotation);
        match *method {
            Method::GET => self.rotations.once(&alias, rotation).await?,
            _ => rotation.await?,
        }
        Ok(answer::text(StatusCode::OK, "OK"))
    }

    fn identity(&self, alias: &str) -> Result<Arc<Identity>, Problem> {
        Ok(self.ids.get(alias)?)
    }
}

impl Route {
    /// The scope that a request needs. Documents are worthless outside of blocks, but other
    /// signatures can be worth anything. Rotations and references change later documents.
    fn scope(self) -> Scope {
        match self {
            Self::OutputScript
            | Self::DataScripts
            | Self::IsValid
            | Self::Coinbase2
            | Self::MinerId => Scope::MinerIdRead,
            Self::Sign | Self::PkSign => Scope::MinerIdSign,
            Self::OutputScriptWithData | Self::Rotate => Scope::MinerIdRotate,
        }
    }
}

/// The answer of `pksign`, for a node.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct PkSignJson {
    public_key: PublicKey,
    signature: Signature,
}

/// Asks for a document until its note is on the disk. The identity stops waiting for a disk that
/// hangs. No thread waits meanwhile.
async fn noted(
    document: impl Fn() -> Result<Option<Arc<[u8]>>, Problem>,
) -> Result<Arc<[u8]>, Problem> {
    loop {
        match document()? {
            Some(document) => return Ok(document),
            None => sleep(NOTE_INTERVAL).await,
        }
    }
}

/// The older generator ignores a slash at the end.
fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

fn param<'p>(params: &Params<'_, 'p>, name: &str) -> Result<Cow<'p, str>, Problem> {
    let raw = params.get(name).unwrap_or_default();
    percent_decode_str(raw).decode_utf8().map_err(|_| Problem::bad_request("The path is not UTF-8"))
}

/// A height that is not a number makes a path that does not exist.
fn height(text: &str) -> Result<u32, Problem> {
    if !text.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Problem::of_status(StatusCode::NOT_FOUND, "Not Found"));
    }
    text.parse()
        .ok()
        .filter(|height| (1..=i32::MAX.cast_unsigned()).contains(height))
        .ok_or_else(|| Error::InvalidHeight.into())
}

fn data_txid(text: &str) -> Result<Txid, Problem> {
    let wrong = "Data refs txid must be a 64-characters hexadecimal string";
    text.parse().map_err(|_| Problem::unprocessable(wrong))
}

fn digest(text: &str) -> Result<[u8; 32], Problem> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest)
        .map_err(|_| Problem::unprocessable("Hash must be 64 characters (32 byte hex string)"))?;
    Ok(digest)
}
