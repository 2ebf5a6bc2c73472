use clap::{Args, Subcommand};
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{field, number};
use crate::service::Answer;

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user, and print it with its public key
    Create(CreateArguments),
    /// Show a user
    #[command(alias = "get")]
    Show(ShowArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// The name
    #[arg(long)]
    name: String,
    /// The email address
    #[arg(long, default_value = "")]
    email: String,
    /// The URL of an image
    #[arg(long, value_name = "URL", default_value = "")]
    avatar: String,
    /// The postal address
    #[arg(long, default_value = "")]
    address: String,
    /// The telephone number
    #[arg(long, default_value = "")]
    phone_number: String,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the user
    id: u64,
}

impl UserCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        let answer = match self {
            Self::Create(CreateArguments { name, email, avatar, address, phone_number }) => {
                let user = json!({
                    "name": name,
                    "email": email,
                    "avatar": avatar,
                    "address": address,
                    "phoneNumber": phone_number,
                });
                service.post("/api/v1/users", user).await?
            }
            Self::Show(ShowArguments { id }) => service.get(format!("/api/v1/users/{id}")).await?,
        };
        show(context, &answer)
    }
}

/// Shows a user, with a line for each field.
fn show(context: &Context, answer: &Answer) -> Result<(), CliError> {
    let user = answer.value()?;
    context.print(&answer.body, || {
        [
            format!("User {}\n", number(&user, "id")),
            field("name", &user["name"]),
            field("email", &user["email"]),
            field("avatar", &user["avatar"]),
            field("address", &user["address"]),
            field("phone number", &user["phoneNumber"]),
            field("public key", &user["extendedData"]["pki"]),
        ]
        .concat()
    })
}
