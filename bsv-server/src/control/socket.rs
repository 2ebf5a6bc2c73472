use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

const FILE_NAME: &str = "control.sock";
/// The longest path that the operating system allows for a socket.
const MAX_PATH_LEN: usize = 107;

/// The path of the control socket of a data directory.
pub fn socket_path(network_dir: &Path) -> PathBuf {
    network_dir.join(FILE_NAME)
}

/// Connects to the control socket of a running server.
pub async fn connect(network_dir: &Path) -> io::Result<UnixStream> {
    let (path, _dir) = short_path(network_dir)?;
    UnixStream::connect(path).await
}

/// Listens on the control socket. Replaces a socket that is left over. Only the holder of the
/// directory's lock may do so.
pub(crate) fn bind(network_dir: &Path) -> io::Result<UnixListener> {
    let (path, _dir) = short_path(network_dir)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Only the owner can enter the directory, so nobody connects before this restricts the socket.
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A path to the socket that is short enough, and the open directory that the path may lead
/// through.
fn short_path(network_dir: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let path = socket_path(network_dir);
    if path.as_os_str().len() <= MAX_PATH_LEN {
        return Ok((path, None));
    }
    let dir = File::open(network_dir)?;
    let path = format!("/proc/self/fd/{}/{FILE_NAME}", dir.as_raw_fd()).into();
    Ok((path, Some(dir)))
}
