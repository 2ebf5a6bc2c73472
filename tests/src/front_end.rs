//! Programs between payers and servers, set up as `docs/operate.md` shows.

use std::fs::{self, File};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::build::workspace;
use crate::fetch::{caddy, nginx};
use crate::tls::file;

/// How long a front end may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The payments listener in the examples.
const LISTENER: &str = "127.0.0.1:8445";

/// Where the servers listen in the example with several servers.
const SEVERAL: [&str; 2] = ["shop1.example.com:8445", "shop2.example.com:8445"];

/// A program that passes requests on to payments listeners. It runs until this is dropped.
#[derive(Debug)]
pub struct FrontEnd {
    program: Child,
    _dir: TempDir,
}

impl FrontEnd {
    /// nginx with TLS at this port of 127.0.0.1, before the payments listener at this address.
    ///
    /// # Panics
    /// If it does not start, or the example has changed.
    pub fn nginx(port: u16, payments: &str) -> Self {
        let server = with(
            &example("nginx:"),
            &[
                ("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl")),
                ("/etc/nginx/pay.pem", file("shop.pem").to_str().unwrap()),
                ("/etc/nginx/pay.key", file("shop.key").to_str().unwrap()),
                (LISTENER, payments),
            ],
        );
        let dir = TempDir::new().unwrap();
        let kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let kept = kept.map(|name| format!("{name}_temp_path {name};\n")).concat();
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid pid;\nerror_log stderr;\n\
             events {{}}\nhttp {{\naccess_log off;\n{kept}{server}}}\n"
        );
        fs::write(dir.path().join("nginx.conf"), configuration).unwrap();
        let mut command = nginx();
        command.arg("-p").arg(dir.path()).args(["-c", "nginx.conf", "-e", "stderr"]);
        Self::start(&mut command, dir, port)
    }

    /// The same with Caddy.
    ///
    /// # Panics
    /// If it does not start, or the example has changed.
    pub fn caddy(port: u16, payments: &str) -> Self {
        Self::caddy_with(port, &with(&example("Caddy gets"), &[(LISTENER, payments)]))
    }

    /// Caddy with TLS at this port of 127.0.0.1, before the payments listeners at these addresses.
    ///
    /// # Panics
    /// If it does not start, or the example has changed.
    pub fn caddy_before(port: u16, payments: [&str; 2]) -> Self {
        let changes = [0, 1].map(|which| (SEVERAL[which], payments[which]));
        Self::caddy_with(port, &with(&example("### Several servers"), &changes))
    }

    fn caddy_with(port: u16, site: &str) -> Self {
        let [certificate, key] =
            ["shop.pem", "shop.key"].map(|name| file(name).display().to_string());
        let begun = format!("https://127.0.0.1:{port} {{\n    tls {certificate} {key}\n");
        let site = with(site, &[("pay.example.com {\n", &begun)]);
        let dir = TempDir::new().unwrap();
        // Without these options, Caddy also listens for its administration and for plain HTTP.
        let options = "{\n    admin off\n    auto_https disable_redirects\n}\n";
        fs::write(dir.path().join("Caddyfile"), format!("{options}{site}")).unwrap();
        let mut command = caddy();
        command.args(["run", "--config", "Caddyfile"]).current_dir(dir.path());
        command.env("HOME", dir.path()).env("XDG_DATA_HOME", dir.path());
        Self::start(&mut command, dir, port)
    }

    fn start(command: &mut Command, dir: TempDir, port: u16) -> Self {
        let log = dir.path().join("log");
        command.stdin(Stdio::null()).stderr(File::create(&log).unwrap());
        let program = command.stdout(Stdio::null()).spawn().unwrap();
        let mut front_end = Self { program, _dir: dir };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let has_ended = front_end.program.try_wait().unwrap().is_some();
            let is_late = begun.elapsed() > START_TIMEOUT;
            assert!(!has_ended && !is_late, "{command:?}: {}", fs::read_to_string(&log).unwrap());
            sleep(Duration::from_millis(20));
        }
        front_end
    }
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The first block of code after a line of `docs/operate.md` that begins so.
fn example(before: &str) -> String {
    let text = fs::read_to_string(workspace().join("docs/operate.md")).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with(before));
    let block = lines.skip_while(|line| !line.starts_with("```")).skip(1);
    block.take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect()
}

/// An example with what is different here.
fn with(example: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(example.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in\n{text}");
        text.replace(from, to)
    })
}
