//! Checking the services against the settings.

use bsv_server::{Config, Create, Verdicts, check_services};

use crate::context::{Stores, service_of};
use crate::error::CliError;

/// Asks the services, and adds the results.
pub(super) async fn check(verdicts: &mut Verdicts, config: &Config) -> Result<(), CliError> {
    match check_services(verdicts, config, own_height(config).await).await {
        true => Ok(()),
        false => Err(CliError::NoServices),
    }
}

/// The height of the server's headers, if it has any.
async fn own_height(config: &Config) -> Option<u32> {
    let mut service = service_of(config.clone(), Create::Nothing, Stores::All).await.ok()?;
    let status = service.get("/control/status").await.ok()?.value().ok()?;
    u32::try_from(status["headers"]["height"].as_u64()?).ok()
}
