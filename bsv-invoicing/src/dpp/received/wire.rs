//! The JSON of terms from payees, and of payments to payees.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bsv_tx::Script;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use crate::dpp::json::{HexBytes, parsed};
use crate::dpp::terms::NO_GO_TIME;
use crate::dpp::{FeeRate, Fees, Merchant};
use crate::model::invoice::MAX_SATOSHIS;
use crate::model::time::Timestamp;

/// The members that tell the dialects apart.
#[derive(Deserialize)]
pub(super) struct Keys<'a> {
    #[serde(borrow)]
    pub(super) modes: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) destinations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) outputs: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GoDppTerms<'a> {
    pub(super) network: String,
    #[serde(default)]
    pub(super) ancestry_required: bool,
    #[serde(default)]
    pub(super) spv_required: bool,
    pub(super) destinations: Outputs,
    #[serde(deserialize_with = "parsed")]
    pub(super) creation_timestamp: Timestamp,
    #[serde(default, deserialize_with = "go_time")]
    pub(super) expiration_timestamp: Option<Timestamp>,
    pub(super) payment_url: Option<String>,
    pub(super) memo: Option<String>,
    #[serde(borrow)]
    pub(super) merchant_data: Option<&'a RawValue>,
    pub(super) fees: FeeQuote,
}

#[derive(Deserialize)]
pub(super) struct Outputs {
    pub(super) outputs: Vec<Output>,
}

#[derive(Deserialize)]
pub(super) struct Output {
    #[serde(deserialize_with = "satoshis")]
    pub(super) amount: u64,
    #[serde(deserialize_with = "script")]
    pub(super) script: Script,
    pub(super) description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MerchantData {
    pub(super) name: Option<String>,
    pub(super) avatar: Option<String>,
    pub(super) email: Option<String>,
    pub(super) address: Option<String>,
    pub(super) payment_reference: Option<String>,
    pub(super) extended_data: Option<ExtendedData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExtendedData {
    pub(super) payment_reference: Option<String>,
}

impl From<MerchantData> for Merchant {
    fn from(data: MerchantData) -> Self {
        Self {
            name: data.name.unwrap_or_default(),
            avatar: data.avatar.unwrap_or_default(),
            email: data.email.unwrap_or_default(),
            address: data.address.unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct FeeQuote {
    pub(super) standard: Quote,
    pub(super) data: Quote,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Quote {
    pub(super) mining_fee: Rate,
}

#[derive(Deserialize)]
pub(super) struct Rate {
    #[serde(deserialize_with = "satoshis")]
    pub(super) satoshis: u64,
    #[serde(deserialize_with = "fee_bytes")]
    pub(super) bytes: u64,
}

impl From<Rate> for FeeRate {
    fn from(Rate { satoshis, bytes }: Rate) -> Self {
        Self { satoshis, bytes }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrcTerms<'a> {
    pub(super) network: String,
    pub(super) creation_timestamp: UnixSeconds,
    pub(super) expiration_timestamp: Option<UnixSeconds>,
    pub(super) payment_url: Option<String>,
    pub(super) memo: Option<String>,
    #[serde(borrow)]
    pub(super) beneficiary: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) modes: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct BrcOption<'a> {
    #[serde(borrow)]
    pub(super) transactions: Vec<BrcTransaction<'a>>,
}

#[derive(Deserialize)]
pub(super) struct BrcTransaction<'a> {
    #[serde(borrow)]
    pub(super) outputs: BTreeMap<Cow<'a, str>, &'a RawValue>,
    #[serde(borrow)]
    pub(super) inputs: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
    pub(super) policies: Option<Policies>,
}

#[derive(Default, Deserialize)]
pub(super) struct Policies {
    pub(super) fees: Option<BrcFees>,
    #[serde(rename = "SPVRequired", default)]
    pub(super) spv_required: bool,
    #[serde(rename = "lockTime")]
    pub(super) lock_time: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct BrcFees {
    pub(super) standard: Option<BrcRate>,
    pub(super) data: Option<BrcRate>,
}

impl BrcFees {
    pub(super) fn into_fees(self) -> Option<Fees> {
        let BrcRate(standard) = self.standard?;
        Some(Fees { standard, data: self.data.map_or(standard, |BrcRate(data)| data) })
    }
}

/// A rate. Some payees write it directly, and some as the mining fee beside a relay fee.
#[derive(Deserialize)]
#[serde(try_from = "AnyRate")]
pub(super) struct BrcRate(pub(super) FeeRate);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnyRate {
    #[serde(default, deserialize_with = "some_fee_satoshis")]
    pub(super) satoshis: Option<u64>,
    #[serde(default, deserialize_with = "some_fee_bytes")]
    pub(super) bytes: Option<u64>,
    pub(super) mining_fee: Option<Rate>,
}

impl TryFrom<AnyRate> for BrcRate {
    type Error = &'static str;

    fn try_from(rate: AnyRate) -> Result<Self, Self::Error> {
        match rate {
            AnyRate { mining_fee: Some(rate), .. } => Ok(Self(rate.into())),
            AnyRate { satoshis: Some(satoshis), bytes: Some(bytes), .. } => {
                Ok(Self(FeeRate { satoshis, bytes }))
            }
            _ => Err("a fee has satoshis and bytes"),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bip270Terms<'a> {
    pub(super) network: String,
    pub(super) outputs: Vec<Output>,
    pub(super) creation_timestamp: UnixSeconds,
    pub(super) expiration_timestamp: Option<UnixSeconds>,
    pub(super) payment_url: Option<String>,
    pub(super) memo: Option<String>,
    #[serde(borrow)]
    pub(super) merchant_data: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) fee_rate: Option<&'a RawValue>,
}

/// The fee rate of BIP274. A rate in an unknown form counts as no rate.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bip274FeeRate {
    satoshis_per_byte: f64,
}

impl Bip274FeeRate {
    pub(super) fn into_fees(self) -> Option<Fees> {
        const BYTES: u64 = 1_000_000;
        let satoshis = (self.satoshis_per_byte * BYTES as f64).round();
        if !(0.0..=MAX_SATOSHIS as f64).contains(&satoshis) {
            return None;
        }
        let rate = FeeRate { satoshis: satoshis as u64, bytes: BYTES };
        Some(Fees { standard: rate, data: rate })
    }
}

/// A time in seconds since the beginning of 1970.
#[derive(Deserialize)]
#[serde(from = "u64")]
pub(super) struct UnixSeconds(pub(super) Timestamp);

impl From<u64> for UnixSeconds {
    fn from(seconds: u64) -> Self {
        Self(Timestamp::from_micros(seconds.saturating_mul(1_000_000)))
    }
}

fn go_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    match Option::<Cow<'_, str>>::deserialize(deserializer)?.as_deref() {
        None | Some(NO_GO_TIME) => Ok(None),
        Some(text) => text.parse().map(Some).map_err(de::Error::custom),
    }
}

fn satoshis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(0, deserializer)
}

fn fee_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    within(1, deserializer)
}

fn some_fee_satoshis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    satoshis(deserializer).map(Some)
}

fn some_fee_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    fee_bytes(deserializer).map(Some)
}

fn within<'de, D: Deserializer<'de>>(least: u64, deserializer: D) -> Result<u64, D::Error> {
    let number = u64::deserialize(deserializer)?;
    if (least..=MAX_SATOSHIS).contains(&number) {
        return Ok(number);
    }
    Err(de::Error::custom(format_args!("must be from {least} to {MAX_SATOSHIS}")))
}

fn script<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Script, D::Error> {
    let HexBytes(bytes) = HexBytes::deserialize(deserializer)?;
    if bytes.is_empty() {
        return Err(de::Error::custom("must not be empty"));
    }
    Ok(Script::from_bytes(bytes))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GoDppPayment<'a> {
    pub(super) merchant_data: Option<&'a RawValue>,
    pub(super) refund_to: Option<&'a str>,
    pub(super) memo: &'a str,
    pub(super) ancestry: &'a str,
    pub(super) raw_tx: &'a str,
    pub(super) proof_callbacks: NoCallbacks,
}

/// An empty map. Payees expect a map from URLs, but the wallet reads the proof from the peer
/// channel instead.
#[derive(Serialize)]
pub(super) struct NoCallbacks {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrcPayment<'a> {
    pub(super) mode_id: &'a str,
    pub(super) mode: BrcMode<'a>,
    pub(super) memo: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrcMode<'a> {
    pub(super) option_id: &'a str,
    pub(super) transactions: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ancestors: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bip270Payment<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) merchant_data: Option<&'a RawValue>,
    pub(super) transaction: &'a str,
    pub(super) memo: &'a str,
}
