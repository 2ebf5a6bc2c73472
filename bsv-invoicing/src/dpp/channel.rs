use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::ProofError;
use super::json::{self, parsed};
use crate::model::time::Timestamp;

/// A message in a peer channel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ChannelMessage {
    /// Its number in the channel, from 1.
    pub sequence: u64,
    /// When it was stored in the channel.
    #[serde(deserialize_with = "parsed")]
    pub received: Timestamp,
    /// The media type of the payload.
    pub content_type: String,
    /// The message itself, such as a [`MerkleProof`](super::MerkleProof) in its envelope.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub payload: Vec<u8>,
}

impl ChannelMessage {
    /// A list of messages as a channel sends it: a JSON array with payloads in base64.
    pub fn list_to_json(messages: &[Self]) -> Vec<u8> {
        json::write(&messages)
    }

    /// Reads a channel's answer.
    pub fn list_from_json(body: &[u8]) -> Result<Vec<Self>, ProofError> {
        json::read_list(body).map_err(ProofError::Malformed)
    }
}

fn to_base64<S: Serializer>(payload: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(payload))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map_err(de::Error::custom)
}
