use std::net::SocketAddr;

use super::{Config, TlsFiles, WalletConfig};

impl Config {
    /// Names the listeners that other machines reach in the clear, where the settings tell of no front end
    /// that encrypts, and says what to set.
    pub(crate) fn clear_text_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut check = |section: &str, address: SocketAddr, tls: &Option<TlsFiles>, hint: &str| {
            if !address.ip().is_loopback() && tls.is_none() {
                warnings.push(format!(
                    "{section}host {} is reachable from other machines, and whoever is on the way reads \
                     what is sent: set {section}tls, or {hint}",
                    address.ip()
                ));
            }
        };
        // Without tokens these are on this machine, or `allowUnauthenticated` says that there is one.
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
