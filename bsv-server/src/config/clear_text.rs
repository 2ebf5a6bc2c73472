use std::net::SocketAddr;

use super::{Config, TlsFiles, WalletConfig};

impl Config {
    /// Warnings about the listeners that other machines reach without encryption, unless the
    /// settings name a front end that encrypts. Each warning says what to set.
    pub(crate) fn clear_text_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut check = |section: &str, address: SocketAddr, tls: &Option<TlsFiles>, hint: &str| {
            if !address.ip().is_loopback() && tls.is_none() {
                warnings.push(format!(
                    "{section}host {} is reachable from other machines, and anybody on the way can read the \
                     traffic: set {section}tls, or {hint}",
                    address.ip()
                ));
            }
        };
        // Without tokens, these listeners are either local or behind a front end, by
        // `allowUnauthenticated`.
        if self.access.require_token {
            let hint = "listen on 127.0.0.1 behind a front end that encrypts";
            if let Some(minerid) = &self.minerid {
                check("", minerid.address, &minerid.tls, hint);
            }
            if let Some(wallet) = &self.wallet {
                check("wallet.", wallet.address, &wallet.tls, hint);
            }
        }
        if let Some(WalletConfig { payments, .. }) = &self.wallet
            && payments.peers.trusted_proxies.is_empty()
            && !payments.public_url().starts_with("https://")
        {
            let hint = "name the front end that encrypts in payments.trustedProxies";
            check("payments.", payments.address, &payments.tls, hint);
        }
        warnings
    }
}
