//! Generation 1.0, against what the older generator wrote.

#![allow(clippy::unwrap_used)]

mod formats;
mod replay;

use std::fs;
use std::path::Path;

use serde_json::Value;

fn scenarios() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/minerid-1.0.json");
    let vectors: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    vectors["scenarios"].as_array().unwrap().clone()
}

fn steps(scenario: &Value) -> &[Value] {
    scenario["steps"].as_array().unwrap()
}
