use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

/// A format of JSON documents: its name, and the migrations from each version to the next. The
/// first version is 1, and the newest is one more than the number of migrations.
///
/// A document is an object whose members `format` and `version` tell these.
#[derive(Clone, Copy, Debug)]
pub struct JsonFormat {
    /// The name of the format.
    pub name: &'static str,
    /// The migrations. Each changes the members of a document.
    pub migrations: &'static [fn(&mut Value)],
}

/// Why a document cannot be read.
#[derive(Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonFormatError {
    /// The text is not JSON, has another format or no version, or a member is missing, unknown or
    /// of a wrong type.
    #[error("{0}")]
    Malformed(String),
    /// The document tells a version but no format, as builds before the first release wrote it.
    #[error("it was made by an unreleased build; make a new one")]
    Unreleased,
    /// A newer version of this software wrote the document.
    #[error("it has version {found}, but this program knows versions up to {known}")]
    Newer {
        /// The version of the document.
        found: u64,
        /// The newest version that this program knows.
        known: u64,
    },
}

#[derive(Serialize)]
struct Written<'a, T> {
    format: &'a str,
    version: u64,
    #[serde(flatten)]
    members: &'a T,
}

impl JsonFormat {
    /// The newest version.
    pub const fn version(&self) -> u64 {
        self.migrations.len() as u64 + 1
    }

    /// Reads a document, and brings it to the newest version.
    pub fn read<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T, JsonFormatError> {
        let malformed = |error: serde_json::Error| JsonFormatError::Malformed(error.to_string());
        let no_version = || JsonFormatError::Malformed("it has no version".to_owned());
        let mut document: Value = serde_json::from_slice(text).map_err(malformed)?;
        let members = document.as_object_mut().ok_or_else(no_version)?;
        let told = [members.remove("format"), members.remove("version")];
        let [format, version] = told.map(Option::unwrap_or_default);
        let found = version.as_u64().ok_or_else(no_version)?;
        let format = format.as_str().ok_or(JsonFormatError::Unreleased)?;
        if format != self.name {
            return Err(JsonFormatError::Malformed(format!("its format is \"{format}\"")));
        }
        let known = self.version();
        let migrations = usize::try_from(found.wrapping_sub(1)).ok();
        let migrations = migrations.and_then(|done| self.migrations.get(done..));
        for migrate in migrations.ok_or(JsonFormatError::Newer { found, known })? {
            migrate(&mut document);
        }
        serde_json::from_value(document).map_err(malformed)
    }

    /// Writes a document of the newest version, whose members are those of `members`.
    pub fn write<T: Serialize>(&self, members: &T) -> Vec<u8> {
        let written = Written { format: self.name, version: self.version(), members };
        serde_json::to_vec_pretty(&written).expect("the members are JSON")
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Names {
        names: Vec<String>,
    }

    const V1: JsonFormat = JsonFormat { name: "bsv-names", migrations: &[] };
    /// The second version has a list where the first had a name.
    const V2: JsonFormat = JsonFormat {
        name: "bsv-names",
        migrations: &[|document| document["names"] = json!([document["names"]])],
    };

    fn read(format: &JsonFormat, document: &Value) -> Result<Names, JsonFormatError> {
        format.read(document.to_string().as_bytes())
    }

    #[test]
    fn a_document_of_an_older_version_is_brought_to_the_newest() {
        let names = || Names { names: vec!["one".to_owned()] };
        let first = json!({"format": "bsv-names", "version": 1, "names": "one"});
        assert_eq!(read(&V2, &first), Ok(names()));
        assert_eq!(V2.read(&V2.write(&names())), Ok(names()));
        let written: Value = serde_json::from_slice(&V2.write(&names())).unwrap();
        assert_eq!(written, json!({"format": "bsv-names", "version": 2, "names": ["one"]}));
        let newer = read(&V1, &written).unwrap_err();
        assert_eq!(newer, JsonFormatError::Newer { found: 2, known: 1 });
    }

    #[test]
    fn other_documents_are_told_apart() {
        for (document, expected) in [
            (json!([]), "it has no version"),
            (json!({"format": "bsv-names", "names": []}), "it has no version"),
            (json!({"version": 1, "names": []}), "made by an unreleased build; make a new one"),
            (json!({"version": 9, "names": []}), "made by an unreleased build; make a new one"),
            (json!({"format": "bsv-coins", "version": 1}), "its format is \"bsv-coins\""),
            (json!({"format": "bsv-names", "version": 0, "names": []}), "it has version 0"),
            (json!({"format": "bsv-names", "version": 3, "names": []}), "knows versions up to 2"),
            (json!({"format": "bsv-names", "version": 2, "x": 1}), "unknown field `x`"),
        ] {
            let error = read(&V2, &document).unwrap_err().to_string();
            assert!(error.contains(expected), "{document}: {error}");
        }
    }
}
