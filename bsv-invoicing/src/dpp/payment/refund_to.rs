use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The longest destination for refunds that a payer can name, in characters (go-dpp, BIP270).
pub const MAX_REFUND_TO_LEN: usize = 100;

/// How many outputs of a list are looked at.
const MAX_OUTPUTS: usize = 16;

/// Where a payer wants refunds: a text, or the first script in a list of outputs (BIP270) that is
/// short enough. Invalid outputs are ignored, because the payment does not need them.
pub(super) struct RefundTo(pub(super) Option<String>);

#[derive(serde::Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    script: Cow<'a, str>,
}

impl<'de> Deserialize<'de> for RefundTo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlaceVisitor;

        impl<'de> Visitor<'de> for PlaceVisitor {
            type Value = RefundTo;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of outputs")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RefundTo, E> {
                Ok(RefundTo(Some(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RefundTo, A::Error> {
                let mut place = None;
                for _ in 0..MAX_OUTPUTS {
                    let Some(output) = list.next_element()? else { return Ok(RefundTo(place)) };
                    place = place.or_else(|| script(output));
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(RefundTo(place))
            }
        }

        deserializer.deserialize_any(PlaceVisitor)
    }
}

/// The script of an output, if it has one that can be kept.
fn script(output: &RawValue) -> Option<String> {
    let Output { script } = serde_json::from_str(output.get()).ok()?;
    if script.is_empty() || script.len() > MAX_REFUND_TO_LEN {
        return None;
    }
    hex::decode(&*script).ok().map(hex::encode)
}
