//! Listening sockets that outlive the servers that they are handed to, like those of a service
//! manager.

use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use serde_json::json;

use crate::site::Site;

/// The listening sockets of a site: of the miner identity service, the wallet and payments.
#[derive(Debug)]
pub struct ListeningSockets {
    listeners: [TcpListener; 3],
    /// The descriptors that processes inherit.
    inherited: Vec<OwnedFd>,
}

/// Greater than the descriptors that are handed over, which begin at 3.
const FIRST_INHERITED: i32 = 100;

impl ListeningSockets {
    /// Sockets on free ports. The ports are set in the settings of `site`.
    pub fn of(site: &mut Site) -> Self {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let inherited = listeners.iter().map(|listener| {
            let copy = fcntl_dupfd_cloexec(listener, FIRST_INHERITED).unwrap();
            fcntl_setfd(&copy, FdFlags::empty()).unwrap();
            copy
        });
        let inherited = inherited.collect();
        let ports = listeners.each_ref().map(|it| it.local_addr().unwrap().port());
        site.set("port", json!(ports[0]));
        site.set("wallet", json!({"port": ports[1]}));
        site.set("payments", json!({"port": ports[2]}));
        Self { listeners, inherited }
    }

    /// The address of the miner identity service.
    pub fn minerid(&self) -> String {
        self.listeners[0].local_addr().unwrap().to_string()
    }

    /// A command that runs `program` with the sockets, as systemd would.
    pub fn hand_over(&self, program: &Command) -> Command {
        let mut script = String::new();
        for (place, socket) in self.inherited.iter().enumerate() {
            let inherited = socket.as_raw_fd();
            script.push_str(&format!("exec {}<&{inherited} {inherited}<&-; ", 3 + place));
        }
        let count = self.inherited.len();
        script.push_str(&format!("export LISTEN_FDS={count} LISTEN_PID=$$; exec \"$0\" \"$@\""));
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}
