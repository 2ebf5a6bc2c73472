use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use bsv_tests::{Server, Site};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The messages that a service manager gets, up to the message `until`.
fn messages(socket: &UnixDatagram, until: &str) -> Vec<String> {
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut messages: Vec<String> = Vec::new();
    while messages.last().is_none_or(|last| last != until) {
        let mut buffer = [0; 1024];
        let len = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("{messages:?}: {error}"));
        messages.push(String::from_utf8_lossy(&buffer[..len]).trim().to_owned());
    }
    messages
}

fn site_with_manager(dir: &TempDir) -> (Site, UnixDatagram) {
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut site = Site::new();
    site.set_env("NOTIFY_SOCKET", &path);
    (site, socket)
}

fn stop(server: Server) {
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_service_manager_is_told_that_the_server_is_ready_and_that_it_stops() {
    let dir = TempDir::new().unwrap();
    let (site, socket) = site_with_manager(&dir);
    let server = site.server();
    assert_eq!(messages(&socket, "READY=1"), ["READY=1"]);
    stop(server);
    assert_eq!(
        messages(&socket, "STOPPING=1"),
        ["STOPPING=1"],
        "no message for the watchdog comes before"
    );
}

#[test]
fn a_server_that_does_not_start_is_not_ready() {
    let dir = TempDir::new().unwrap();
    let (mut site, socket) = site_with_manager(&dir);
    site.set("network", serde_json::json!("livenet"));
    assert!(site.try_server().is_err(), "its keys are not sealed");
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut [0; 1]).is_err());
}

#[test]
fn the_watchdog_gets_messages_until_the_process_hangs() {
    let dir = TempDir::new().unwrap();
    let (mut site, socket) = site_with_manager(&dir);
    site.set_env("WATCHDOG_USEC", "300000");
    let server = site.server();
    messages(&socket, "READY=1");
    for _ in 0..5 {
        messages(&socket, "WATCHDOG=1");
    }
    let process = Pid::from_raw(server.id().try_into().unwrap()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.recv(&mut [0; 64]).is_ok() {}
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(900))).unwrap();
    assert!(socket.recv(&mut [0; 64]).is_err(), "a process that hangs tells nothing");
    kill_process(process, Signal::CONT).unwrap();
    messages(&socket, "WATCHDOG=1");
    stop(server);
}

#[test]
fn the_watchdog_of_another_process_gets_no_message() {
    let dir = TempDir::new().unwrap();
    let (mut site, socket) = site_with_manager(&dir);
    site.set_env("WATCHDOG_USEC", "3000");
    site.set_env("WATCHDOG_PID", "1");
    let server = site.server();
    stop(server);
    assert_eq!(messages(&socket, "STOPPING=1"), ["READY=1", "STOPPING=1"]);
}

#[test]
fn a_server_works_although_its_service_manager_is_gone() {
    let mut site = Site::new();
    site.set_env("NOTIFY_SOCKET", "/nonexistent/notify");
    let server = site.server();
    assert_eq!(server.wallet().get("/healthz").status, 200);
    stop(server);
}
