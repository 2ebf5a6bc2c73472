use bsv_network::headers::HeaderFollower;

use super::exposition::{Exposition, Number};
use crate::headers::seconds_since;

/// Writes the newest block.
pub(super) fn write(exposition: &mut Exposition, headers: &HeaderFollower) {
    let tip = headers.file().chain().tip();
    let help = "Height of the newest block whose header is validated here.";
    exposition.gauge("bsv_headers_height", help).add(&[], u64::from(tip.height));
    if let Some(time) = tip.time {
        let help = "Age of that block, by the time in its header, in seconds.";
        let age = Number::Whole(seconds_since(time.into()));
        exposition.gauge("bsv_headers_tip_age_seconds", help).add(&[], age);
    }
    let help = "Whether blocks of the network may lack.";
    let is_behind = u64::from(headers.behind().is_some());
    exposition.gauge("bsv_headers_behind", help).add(&[], is_behind);
    let help = "Number of blocks that have left the best chain at the deepest reorganisation since the start.";
    let deepest = u64::from(headers.file().deepest_reorganisation());
    exposition.gauge("bsv_headers_deepest_reorganisation", help).add(&[], deepest);
}
