use std::fmt;
use std::str::FromStr;

use bsv_minerid::Alias;
use thiserror::Error;

/// A permission that a token can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Read invoices, users, payments and the balance.
    WalletRead,
    /// Create and delete invoices, create users.
    WalletWrite,
    /// Declare invoices paid.
    WalletMark,
    /// Spend the wallet's money.
    WalletPay,
    /// Make, change and read webhooks.
    WalletWebhooks,
    /// Get the public key, output scripts and coinbase transactions of an identity.
    MinerIdRead,
    /// Make an identity sign any hash.
    MinerIdSign,
    /// Change an identity's later documents: rotate its key, or refer to data.
    MinerIdRotate,
    /// Read metrics.
    MetricsRead,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 9] = [
        Self::WalletRead,
        Self::WalletWrite,
        Self::WalletMark,
        Self::WalletPay,
        Self::WalletWebhooks,
        Self::MinerIdRead,
        Self::MinerIdSign,
        Self::MinerIdRotate,
        Self::MetricsRead,
    ];

    /// The name, such as `minerid:sign`.
    pub fn name(self) -> &'static str {
        match self {
            Self::WalletRead => "wallet:read",
            Self::WalletWrite => "wallet:write",
            Self::WalletMark => "wallet:mark",
            Self::WalletPay => "wallet:pay",
            Self::WalletWebhooks => "wallet:webhooks",
            Self::MinerIdRead => "minerid:read",
            Self::MinerIdSign => "minerid:sign",
            Self::MinerIdRotate => "minerid:rotate",
            Self::MetricsRead => "metrics:read",
        }
    }

    fn is_of_identities(self) -> bool {
        matches!(self, Self::MinerIdRead | Self::MinerIdSign | Self::MinerIdRotate)
    }
}

/// A scope of a token. A scope of the miner identity service may be limited to one alias.
///
/// Its text is `minerid:sign` or, for the alias `pool` only, `minerid:sign:pool`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    scope: Scope,
    alias: Option<Alias>,
}

/// The text is not a scope.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{0}\" is not a scope: use wallet:read, wallet:write, wallet:mark, wallet:pay, wallet:webhooks, \
     metrics:read, minerid:read, minerid:sign or minerid:rotate, the last three also for one alias, \
     such as minerid:sign:ALIAS"
)]
pub struct GrantParseError(String);

impl Grant {
    /// A scope for all aliases.
    pub(crate) fn of_all(scope: Scope) -> Self {
        Self { scope, alias: None }
    }

    /// Parses scopes. Reports the first mistake.
    pub(crate) fn parse_all(texts: &[String]) -> Result<Vec<Self>, GrantParseError> {
        texts.iter().map(|text| text.parse()).collect()
    }

    /// Whether this grant allows `scope`, for at least one alias if the scope concerns aliases.
    pub(crate) fn is_about(&self, scope: Scope) -> bool {
        self.scope == scope
    }

    /// Whether this grant allows `scope`, for this alias if the scope concerns aliases.
    pub(crate) fn allows(&self, scope: Scope, alias: Option<&str>) -> bool {
        self.scope == scope
            && self.alias.as_ref().is_none_or(|allowed| alias == Some(allowed.as_str()))
    }
}

impl FromStr for Grant {
    type Err = GrantParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || GrantParseError(text.to_owned());
        let (scope, rest) = Scope::ALL
            .into_iter()
            .find_map(|scope| Some((scope, text.strip_prefix(scope.name())?)))
            .ok_or_else(wrong)?;
        let alias = match rest.strip_prefix(':') {
            Some(alias) if scope.is_of_identities() => Some(alias.parse().map_err(|_| wrong())?),
            None if rest.is_empty() => None,
            _ => return Err(wrong()),
        };
        Ok(Self { scope, alias })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scope.name())?;
        self.alias.iter().try_for_each(|alias| write!(f, ":{alias}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_read_as_they_are_written() {
        let scopes = Scope::ALL.map(Scope::name);
        for text in scopes.into_iter().chain(["minerid:read:a", "minerid:sign:a"]) {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "wallet",
            "wallet:",
            "wallet:reads",
            "wallet:read:",
            "wallet:read:a",
            "metrics:read:a",
            "minerid:sign:",
            "minerid:sign:a/b",
            "minerid:sign:a:b",
            "minerid:signs",
            "*",
            "Wallet:read",
            " wallet:read",
        ] {
            assert!(text.parse::<Grant>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_grant_allows_its_scope_for_its_alias_only() {
        let allows =
            |grant: &str, scope, alias| grant.parse::<Grant>().unwrap().allows(scope, alias);
        assert!(allows("minerid:sign", Scope::MinerIdSign, Some("a")));
        assert!(allows("minerid:sign:a", Scope::MinerIdSign, Some("a")));
        assert!(allows("wallet:read", Scope::WalletRead, None));
        assert!(!allows("minerid:sign:a", Scope::MinerIdSign, Some("b")));
        assert!(!allows("minerid:sign:a", Scope::MinerIdSign, Some("A")));
        assert!(!allows("minerid:sign:a", Scope::MinerIdSign, None));
        assert!(!allows("minerid:sign:a", Scope::MinerIdRotate, Some("a")));
        assert!(!allows("wallet:write", Scope::WalletPay, None));
        for scope in Scope::ALL.into_iter().filter(|scope| *scope != Scope::WalletMark) {
            assert!(!allows(scope.name(), Scope::WalletMark, None), "{}", scope.name());
        }
    }
}
