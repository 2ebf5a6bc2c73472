use bsv_tests::vectors;
use serde_json::{Value, json};

/// The measured identity. It was rotated and has a contact, so that its documents are rather long.
pub const ALIAS: &str = "contact";

/// How many hashes lead from the coinbase transaction to the Merkle root, in a block of up to 4096
/// transactions.
const MERKLE_BRANCHES: u8 = 12;

/// A mining job with the inputs of all extensions.
#[derive(Clone, Debug)]
pub struct Job {
    request: Value,
}

impl Job {
    /// The recorded request with all inputs, with more Merkle branches.
    pub fn recorded() -> Self {
        let vectors = vectors::minerid_0_2();
        let bodies = vectors["cases"].as_array().unwrap().iter().filter_map(|case| {
            let body = case["request"]["body"].as_str()?;
            Some(serde_json::from_str::<Value>(body).unwrap())
        });
        let mut request = bodies
            .into_iter()
            .find(|body| body["alias"] == ALIAS && body["jobData"]["feeSpec"].is_object())
            .unwrap();
        request["jobData"]["miningCandidate"]["merkleProof"] =
            (1..=MERKLE_BRANCHES).map(|byte| hex::encode([byte; 32])).collect();
        Self { request }
    }

    /// The end of the coinbase transaction.
    pub fn coinbase2(&self) -> Vec<u8> {
        hex::decode(self.request["coinbase2"].as_str().unwrap()).unwrap()
    }

    /// The job data, JSON.
    pub fn job_data(&self) -> String {
        self.request["jobData"].to_string()
    }

    /// The body of `POST /coinbase2` for the block at `height`. `height` is inserted as it stands.
    pub fn request(&self, height: &str) -> String {
        let mut request = self.request.clone();
        request["blockHeight"] = json!(0);
        request.to_string().replace(r#""blockHeight":0"#, &format!(r#""blockHeight":{height}"#))
    }
}
