//! A terminal on which a program runs as for a person.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::site::Site;

/// The person's end of a pseudo-terminal: for input, and for what is shown.
#[derive(Debug)]
pub struct Terminal {
    keyboard: File,
    /// The program's end. It is kept so that its state can be checked afterwards.
    line: OwnedFd,
    shown: Receiver<Vec<u8>>,
    screen: String,
    /// Everything that was shown before `screen`.
    passed: String,
    program: Child,
}

/// How long a program may take until it shows the expected text or ends.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Terminal {
    /// Starts the command line of a site, with `setsid` of util-linux and `env` of coreutils. The
    /// process that runs the tests may ignore the signal of Ctrl-C, and children would inherit
    /// that.
    pub fn start(site: &Site, arguments: &[&str]) -> Self {
        Self::start_of_width(site, arguments, 0)
    }

    /// Starts the command line on a terminal with this many columns. 0 stands for an unknown width.
    pub fn start_of_width(site: &Site, arguments: &[&str], columns: u16) -> Self {
        Self::run(&site.cli_command(arguments), columns)
    }

    /// Starts any command on a terminal with this many columns.
    pub fn run(command: &Command, columns: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let keyboard = openpt(flags).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let line = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).unwrap();
        let end = || line.try_clone().unwrap();
        // The program has its own session with this terminal.
        let mut session = Command::new("setsid");
        session.args(["--ctty", "--wait", "env", "--default-signal=INT"]);
        session.arg(command.get_program()).args(command.get_args());
        session.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        let program = session.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let keyboard = File::from(keyboard);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // This fails once the other end is closed.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { keyboard, line, shown, screen: String::new(), passed: String::new(), program }
    }

    /// Waits until the program shows a text, and drops everything that was shown up to there.
    ///
    /// # Panics
    /// If it does not.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(place) = self.screen.find(text) {
                self.passed.extend(self.screen.drain(..place + text.len()));
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.shown.recv_timeout(left) else {
                panic!("{text:?} is not shown, but {:?}", self.screen);
            };
            self.screen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Waits until the program asks for a secret: it shows a text, and does not show what is typed.
    ///
    /// # Panics
    /// If it does not.
    pub fn wait_for_secret_prompt(&mut self, text: &str) {
        self.wait_for(text);
        let deadline = Instant::now() + TIMEOUT;
        while self.echoes() {
            assert!(Instant::now() < deadline, "what is typed after {text:?} would be seen");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types something; `\r` is the enter key.
    pub fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether the terminal shows what is typed, works line by line, and handles keys such as
    /// Ctrl-C.
    pub fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    /// Waits until the program ends. Returns its exit code (-1 if a signal ended it) and everything
    /// that it has shown.
    ///
    /// # Panics
    /// If it does not.
    pub fn end_with_all(mut self) -> (i32, String) {
        let passed = std::mem::take(&mut self.passed);
        let (code, rest, _) = self.end();
        (code, passed + &rest)
    }

    /// Waits until the program ends. Returns its exit code (-1 if a signal ended it), what it has
    /// shown since the last expected text, and whether the terminal echoes afterwards.
    ///
    /// # Panics
    /// If it does not.
    pub fn end(mut self) -> (i32, String, bool) {
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.program.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.program.kill().unwrap();
                panic!("the program does not end");
            }
            thread::sleep(Duration::from_millis(5));
        };
        let echoes = self.echoes();
        drop(self.line);
        self.shown.iter().for_each(|bytes| self.screen.push_str(&String::from_utf8_lossy(&bytes)));
        (status.code().unwrap_or(-1), self.screen, echoes)
    }
}
