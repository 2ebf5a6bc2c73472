//! Checks of single settings.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::error::ConfigError;

pub(super) fn in_range(
    setting: &'static str,
    value: u32,
    allowed: RangeInclusive<u32>,
) -> Result<u32, ConfigError> {
    if allowed.contains(&value) {
        Ok(value)
    } else {
        Err(ConfigError::OutOfRange { setting, allowed })
    }
}

/// Whether payment URLs can begin with this text, and headers can hold it unchanged.
pub(super) fn is_public_url(url: &str) -> bool {
    let uri: Option<hyper::Uri> = url.parse().ok();
    uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.query().is_none()
    }) && url.is_ascii()
        && !url.contains(['#', '<', '>', '"', '@'])
}

/// Whether a host of a URL is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback())
}
