//! Help, shell completion and the environment.

use std::io::Write;
use std::process::{Command, Stdio};

use bsv_tests::build::{cli_program, server_program};
use bsv_tests::terminal::Terminal;
use bsv_tests::{Done, Site};

const NOUNS: [(&str, &[&str]); 22] = [
    ("init", &[]),
    ("status", &[]),
    ("invoice", &["create", "show", "list", "payments", "settlement", "mark", "delete", "refund"]),
    ("user", &["create", "show"]),
    ("pay", &[]),
    ("send", &[]),
    ("outgoing", &["list", "show", "cancel"]),
    ("event", &["list"]),
    (
        "webhook",
        &[
            "create",
            "list",
            "show",
            "enable",
            "disable",
            "delete",
            "secret",
            "test",
            "trigger",
            "deliveries",
            "redeliver",
            "replay",
        ],
    ),
    ("export", &[]),
    (
        "wallet",
        &["balance", "receipts", "words", "accept-clock", "consolidate", "rescan", "faucet"],
    ),
    (
        "miner",
        &[
            "create",
            "list",
            "show",
            "id",
            "vctx",
            "script",
            "contact",
            "rotate",
            "revocation-key",
            "revoke",
            "delete",
            "confirm",
            "upgrade",
            "blind-signing",
            "extensions",
            "data-refs",
            "import",
            "verify",
            "scan",
        ],
    ),
    ("keystore", &["passphrase", "verify"]),
    ("token", &["create", "list", "revoke"]),
    ("backup", &[]),
    ("restore", &[]),
    ("audit", &["list", "verify"]),
    ("books", &["verify", "rows"]),
    ("store", &["move", "accept-loss"]),
    ("headers", &["status", "verify", "sync"]),
    ("config", &["show", "check", "example"]),
    ("completions", &[]),
];

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // Other lines continue a description.
    lines
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .map(|line| line.split_whitespace().next().unwrap())
        .filter(|name| *name != "help")
        .collect()
}

#[test]
fn the_help_lists_the_nouns_and_nothing_else() {
    let site = Site::new();
    let help = site.cli_ok(&["--help"]);
    assert_eq!(listed(&help), NOUNS.map(|(noun, _)| noun));
    let exit_codes = "Exit codes: 0 success, 1 refused, failed or not valid, 2 wrong usage.";
    assert!(help.contains(exit_codes), "{help}");
    for (noun, below) in NOUNS {
        let own = site.cli_ok(&[noun, "--help"]);
        assert_eq!(listed(&own), below, "{noun}");
        for flag in ["--data-dir", "--config", "--json", "--quiet", "--verbose", "--color"] {
            assert!(own.contains(flag), "{noun} {flag}: {own}");
        }
        for name in below {
            assert!(site.cli_ok(&[noun, name, "--help"]).contains("--json"), "{noun} {name}");
        }
    }
    assert_eq!(site.cli_ok(&["--version"]), concat!("bsv-cli ", env!("CARGO_PKG_VERSION")));
    // Without a command it prints the help, and the exit code is that of wrong usage.
    let alone = Done::of(&mut Command::new(cli_program()));
    assert_eq!((alone.code, listed(&alone.stderr).len()), (2, NOUNS.len()));
    assert!(!site.network_dir().exists());
}

#[test]
fn the_help_fits_the_terminal_and_is_not_wider_than_100_columns() {
    let site = Site::new();
    let widest = |text: &str| text.lines().map(|line| line.trim_end().chars().count()).max();
    let mut server = site.server_command();
    server.arg("--help");
    for mut command in [site.cli_command(&["invoice", "create", "--help"]), server] {
        command.env("NO_COLOR", "1");
        let shown = [80, 200].map(|columns| Terminal::run(&command, columns).end_with_all().1);
        let piped = Done::of(&mut command).stdout;
        assert!(widest(&shown[0]) <= Some(80), "{}", shown[0]);
        for wide in [&shown[1], &piped] {
            assert!((Some(81)..=Some(100)).contains(&widest(wide)), "{wide}");
        }
    }
}

#[test]
fn environment_variables_set_directory_and_settings_of_both_programs() {
    let site = Site::new();
    let settings = site.data_dir().join("settings.toml");
    std::fs::write(&settings, "allowedHosts = [\"pool.internal\"]\n").unwrap();
    let run = |program: &std::path::Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).env_remove("BSV_CONFIG").env("BSV_DATA_DIR", site.data_dir());
        Done::of(command.env("BSV_CONFIG_FILE", &settings))
    };
    let shown = run(cli_program(), &["config", "show"]);
    for part in ["pool.internal", site.network_dir().to_str().unwrap()] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    // An option overrides the variable.
    let elsewhere = site.data_dir().join("elsewhere");
    let shown = run(cli_program(), &["config", "show", "--data-dir", elsewhere.to_str().unwrap()]);
    assert!(shown.stdout.contains("elsewhere/regtest"), "{shown:?}");
    for program in [cli_program(), server_program()] {
        let help = run(program, &["--help"]).stdout;
        for name in ["BSV_DATA_DIR", "BSV_CONFIG_FILE"] {
            assert!(help.contains(name), "{name}: {help}");
        }
    }
    std::fs::write(&settings, "prot = 1\n").unwrap();
    let refused = run(server_program(), &[]);
    assert_eq!((refused.code, refused.stderr.contains("prot")), (1, true), "{refused:?}");
}

/// Whether a shell accepts a script. The shell reads it without running it.
fn is_taken_by(shell: &str, script: &str) -> bool {
    let mut command = Command::new(shell);
    let mut child = command.arg("-n").stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child.wait().unwrap().success()
}

#[test]
fn completion_scripts_list_the_visible_commands() {
    let site = Site::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = site.cli_ok(&["completions", shell]);
        for name in ["invoice", "revocation-key", "blind-signing", "--expires-in", "--data-dir"] {
            // The script for fish lists options without their hyphens.
            assert!(script.contains(name.trim_start_matches('-')), "{shell}, {name}");
        }
        for older in ["generateminerid", "rotateminerid", "getcurrentminerid"] {
            assert!(!script.contains(older), "{shell}, {older}");
        }
    }
    let script = site.cli_ok(&["completions", "bash"]);
    assert!(is_taken_by("bash", &script));
    assert!(!is_taken_by("bash", &script[..script.len() / 2]), "bash accepts half a script");
    // The script really completes.
    let file = site.data_dir().join("completions");
    let complete =
        "COMP_WORDS=(bsv-cli mi); COMP_CWORD=1; _bsv__cli bsv-cli mi bsv-cli; echo ${COMPREPLY[@]}";
    std::fs::write(&file, format!("{script}\n{complete}\n")).unwrap();
    let done = Done::of(Command::new("bash").arg(&file));
    assert_eq!(done.stdout.trim(), "miner", "{done:?}");
    assert_eq!(site.cli(&["completions", "cmd"]).code, 2);
    assert!(!site.network_dir().exists());
}
