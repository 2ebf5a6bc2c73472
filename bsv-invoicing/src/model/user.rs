use bsv_tx::PublicKey;
use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::model::fields::{BodyError, FieldErrors, Members};

/// The longest field of a user, in characters.
pub const MAX_USER_FIELD_LEN: usize = 1024;
/// The longest name of a user, in characters.
pub const MAX_NAME_LEN: usize = 256;

/// What the owner of the wallet says about a user, in the fields of the specification. All fields
/// except the name may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct UserDraft {
    /// The name, of 1 to [`MAX_NAME_LEN`] characters.
    #[n(0)]
    pub name: String,
    /// The email address. It is empty or has one `@`.
    #[n(1)]
    pub email: String,
    /// The URL of an image.
    #[n(2)]
    pub avatar: String,
    /// The postal address.
    #[n(3)]
    pub address: String,
    /// The telephone number.
    #[n(4)]
    pub phone_number: String,
}

impl UserDraft {
    /// Reads the body of `POST /api/v1/users`. The error names all invalid fields at once.
    pub fn from_json(body: &[u8]) -> Result<Self, BodyError> {
        let mut members = Members::parse(body)?;
        let name = members.text("name");
        let has_name = name.is_some();
        let draft = Self {
            name: name.unwrap_or_else(|| "unknown".to_owned()),
            email: members.text("email").unwrap_or_default(),
            avatar: members.text("avatar").unwrap_or_default(),
            address: members.text("address").unwrap_or_default(),
            phone_number: members.text("phoneNumber").unwrap_or_default(),
        };
        let mut errors = members.into_errors();
        if !has_name && !errors.has("name") {
            errors.add("name", "is required");
        }
        draft.check(&mut errors);
        errors.into_result()?;
        Ok(draft)
    }

    pub(crate) fn check(&self, errors: &mut FieldErrors) {
        if self.name.trim().is_empty() {
            errors.add("name", "must not be empty");
        }
        errors.check_len("name", &self.name, MAX_NAME_LEN);
        if !self.email.is_empty() && !is_email(&self.email) {
            errors.add("email", "must have one @, with something on both sides");
        }
        for (field, text) in [
            ("email", &self.email),
            ("avatar", &self.avatar),
            ("address", &self.address),
            ("phoneNumber", &self.phone_number),
        ] {
            errors.check_len(field, text, MAX_USER_FIELD_LEN);
        }
    }
}

fn is_email(text: &str) -> bool {
    let mut parts = text.split('@');
    let sides = [parts.next(), parts.next()];
    parts.next().is_none() && sides.iter().all(|side| side.is_some_and(|side| !side.is_empty()))
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The number, from 1 on.
    pub id: u64,
    /// What the owner of the wallet says about the user.
    pub details: UserDraft,
    /// The user's public key. The wallet derives it from its seed, so that it never changes.
    pub pki: PublicKey,
}

impl User {
    /// The user as the wallet specification writes it, in JSON.
    pub fn to_json(&self) -> String {
        let UserDraft { name, email, avatar, address, phone_number } = &self.details;
        let json = UserJson {
            id: self.id,
            name,
            email,
            avatar,
            address,
            phone_number,
            extended_data: ExtendedDataJson { pki: self.pki.to_string() },
        };
        serde_json::to_string(&json).expect("texts and a number always serialise")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UserJson<'a> {
    id: u64,
    name: &'a str,
    email: &'a str,
    avatar: &'a str,
    address: &'a str,
    phone_number: &'a str,
    extended_data: ExtendedDataJson,
}

#[derive(Serialize)]
struct ExtendedDataJson {
    pki: String,
}
