//! Access control: scopes, tokens, and the JSON Web Tokens of the older generator.

mod jwt;
mod scope;
mod tokens;

use std::fmt;
use std::sync::Arc;

use bsv_invoicing::Timestamp;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{HeaderMap, StatusCode};

pub use jwt::{JwtKey, WeakJwtKey};
pub use scope::{Grant, GrantParseError, Scope};
pub(crate) use tokens::{
    ChangeError, FILE_NAME as TOKENS_FILE_NAME, IssuedToken, TokenDraft, file_of_rows,
};
pub use tokens::{TokenFileError, Tokens};

use jwt::JwtError;
use tokens::TokenError;

use crate::api::Api;

/// The answer to a header that holds no kind of token.
const NOT_A_TOKEN: Denied = Denied::Invalid(TokenKind::Own);
/// The beginning of `WWW-Authenticate`.
const CHALLENGE: &str = "Bearer realm=\"bsv-server\"";

/// How callers of the wallet and of the miner identity listener authenticate themselves.
#[derive(Clone, Debug, Default)]
pub struct AccessConfig {
    /// Whether callers must show a token.
    pub require_token: bool,
    /// The key of the older generator's tokens, if they are accepted.
    pub jwt_key: Option<JwtKey>,
}

/// Identifies callers.
#[derive(Debug)]
pub struct Access {
    config: AccessConfig,
    tokens: Arc<Tokens>,
}

/// The caller of a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// A caller that may do everything: the owner of the control socket, or anybody if no token is
    /// required.
    Trusted,
    /// The bearer of a token with these scopes.
    Bearer(Arc<[Grant]>),
}

/// Why a caller is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The request has no token.
    Missing,
    /// The token was never made, or is revoked.
    Invalid(TokenKind),
    /// The token has expired.
    Expired(TokenKind),
    /// The token does not allow this request.
    OutOfScope(Scope, Option<String>),
}

/// Who makes the tokens of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// `bsv-cli token create` makes them.
    Own,
    /// Callers of the older generator make them, with the shared key.
    OlderGenerator,
}

impl Access {
    /// Makes the access control for these settings and tokens.
    pub fn new(config: AccessConfig, tokens: Arc<Tokens>) -> Self {
        Self { config, tokens }
    }

    /// Takes note of tokens that expire, and of those that other servers make and revoke, until it is
    /// dropped.
    pub(crate) async fn follow_tokens(&self) {
        self.tokens.follow().await;
    }

    /// Identifies the sender of these headers at a listener that may require a token.
    ///
    /// # Errors
    ///
    /// [`Denied`] if a token is required and the headers hold no accepted one.
    pub fn identify(&self, headers: &HeaderMap) -> Result<Caller, Denied> {
        if !self.config.require_token {
            return Ok(Caller::Trusted);
        }
        let token = bearer_token(headers)?;
        if tokens::is_own(token) {
            let grants = self.tokens.grants_of(token).map_err(|error| match error {
                TokenError::Unknown => Denied::Invalid(TokenKind::Own),
                TokenError::Expired => Denied::Expired(TokenKind::Own),
            })?;
            return Ok(Caller::Bearer(grants));
        }
        let kind = TokenKind::OlderGenerator;
        let key = self.config.jwt_key.as_ref().ok_or(Denied::Invalid(kind))?;
        let now = Timestamp::of_system().as_micros() / 1_000_000;
        key.check(token, now).map_err(|error| match error {
            JwtError::Invalid => Denied::Invalid(kind),
            JwtError::Expired => Denied::Expired(kind),
        })?;
        // The older generator has no scopes and no wallet.
        let scopes = [Scope::MinerIdRead, Scope::MinerIdSign, Scope::MinerIdRotate];
        Ok(Caller::Bearer(scopes.map(Grant::of_all).into()))
    }

    /// Completes when the sender of these headers, who was identified, is not accepted any more.
    /// `None` if a token is not required, or is one of the older generator: those have no scope for
    /// anything that is answered for longer than a moment.
    pub(crate) fn end_of(&self, headers: &HeaderMap) -> Option<impl Future<Output = ()> + use<>> {
        let token = bearer_token(headers).ok().filter(|_| self.config.require_token)?;
        tokens::is_own(token).then(|| self.tokens.end_of(token))
    }
}

impl Caller {
    /// Checks that the caller has `scope`, for `alias` if the request is about an alias.
    ///
    /// # Errors
    ///
    /// [`Denied::OutOfScope`] if the caller's token lacks the scope.
    pub fn require<A: Into<String> + AsRef<str>>(
        &self,
        scope: Scope,
        alias: impl FnOnce() -> Option<A>,
    ) -> Result<(), Denied> {
        let Self::Bearer(grants) = self else { return Ok(()) };
        let alias = alias();
        let named = alias.as_ref().map(A::as_ref);
        if grants.iter().any(|grant| grant.allows(scope, named)) {
            return Ok(());
        }
        Err(Denied::OutOfScope(scope, alias.map(Into::into)))
    }

    /// Checks that the caller has `scope` for at least one alias. The alias of a request may be in
    /// its body.
    pub(crate) fn require_for_some_alias(&self, scope: Scope) -> Result<(), Denied> {
        let Self::Bearer(grants) = self else { return Ok(()) };
        match grants.iter().any(|grant| grant.is_about(scope)) {
            true => Ok(()),
            false => Err(Denied::OutOfScope(scope, None)),
        }
    }
}

impl Denied {
    /// The status of the answer. The older generator's callers make a new token when the miner
    /// identity listener answers 403.
    pub(crate) fn status(&self, api: Api) -> StatusCode {
        match self {
            Self::Invalid(TokenKind::OlderGenerator) | Self::Expired(TokenKind::OlderGenerator)
                if api == Api::MinerId =>
            {
                StatusCode::FORBIDDEN
            }
            Self::Missing | Self::Invalid(_) | Self::Expired(_) => StatusCode::UNAUTHORIZED,
            Self::OutOfScope(..) => StatusCode::FORBIDDEN,
        }
    }

    /// The stable name for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Missing => "token-missing",
            Self::Invalid(_) => "token-invalid",
            Self::Expired(_) => "token-expired",
            Self::OutOfScope(..) => "scope-missing",
        }
    }

    /// The header `WWW-Authenticate` (RFC 6750, section 3).
    pub(crate) fn challenge(&self) -> HeaderValue {
        let text = match self {
            Self::Missing => CHALLENGE.to_owned(),
            Self::Invalid(_) | Self::Expired(_) => format!("{CHALLENGE}, error=\"invalid_token\""),
            Self::OutOfScope(scope, _) => {
                format!("{CHALLENGE}, error=\"insufficient_scope\", scope=\"{}\"", scope.name())
            }
        };
        HeaderValue::try_from(text).expect("names of scopes are printable")
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "a token is missing: make one with bsv-cli token create, and send it in the header \
                 Authorization: Bearer TOKEN",
            ),
            Self::Invalid(_) => f.write_str("the token is not one that is accepted here"),
            Self::Expired(_) => f.write_str("the token has expired"),
            Self::OutOfScope(scope, None) => {
                write!(f, "the token lacks the scope {}", scope.name())
            }
            Self::OutOfScope(scope, Some(alias)) => {
                write!(f, "the token lacks the scope {} for alias \"{alias}\"", scope.name())
            }
        }
    }
}

fn bearer_token(headers: &HeaderMap) -> Result<&str, Denied> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Denied::Missing)?;
    let (scheme, token) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or(NOT_A_TOKEN)?;
    if values.next().is_some() || !scheme.eq_ignore_ascii_case("bearer") {
        return Err(NOT_A_TOKEN);
    }
    Ok(token.trim())
}
