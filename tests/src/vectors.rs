//! The recorded answers of the older generator, in `tests/vectors/`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::build::workspace;

/// Generation 0.2.
pub fn minerid_0_2() -> Value {
    read("minerid-0.2.json")
}

/// Generation 1.0.
pub fn minerid_1_0() -> Value {
    read("minerid-1.0.json")
}

fn read(name: &str) -> Value {
    let path = workspace().join("tests/vectors").join(name);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Writes the older generator's home directory into `dir`. The `vectors` were recorded with it.
pub fn write_home(vectors: &Value, dir: &Path) -> PathBuf {
    let home = dir.join("home");
    for (path, content) in vectors["files"].as_object().unwrap() {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.as_str().unwrap()).unwrap();
    }
    home
}

/// The expected result of a case. If the reference printed large integers wrongly, `exact` counts.
pub fn expected<'a>(case: &'a Value, name: &str) -> Option<&'a str> {
    case["exact"].get(name).or_else(|| case.get(name)).and_then(Value::as_str)
}
