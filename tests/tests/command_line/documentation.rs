//! The documentation does what it says: its commands answer as shown, and its links lead somewhere.

mod links;
mod markdown;
mod pattern;
mod scene;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};

use bsv_tests::build::{cli_program, workspace};
use bsv_tests::fetch::try_bitcoind;
use bsv_tests::{Done, Site, free_port};
use markdown::{Block, Page};
use scene::{Scene, is_in_background};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The pages whose commands are run.
const RUN: [&str; 5] =
    ["docs/api.md", "docs/livenet.md", "docs/operate.md", "docs/pool.md", "docs/shop.md"];

/// Pages with commands that are not run. Each block gives the reason.
const NOT_RUN: [&str; 3] = ["docs/cli.md", "docs/embed.md", "docs/node.md"];

/// The README and the pages of `docs`, without the decisions.
fn pages() -> Vec<Page> {
    let docs = fs::read_dir(workspace().join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut paths: Vec<_> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    paths.push("README.md".to_owned());
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

/// Runs the commands of a page in their order, and compares their output.
fn run(path: &str) {
    run_in(Scene::new(), &Page::read(path));
}

fn run_in(mut scene: Scene, page: &Page) {
    let path = &page.path;
    let mut is_begun = false;
    let mut failures = Vec::new();
    for (index, block) in page.blocks().iter().enumerate() {
        match block {
            Block::Settings { text, file } => scene.save(file, text),
            Block::Node(_) => {}
            Block::Commands { not_run: Some(reason), line, .. } => {
                eprintln!("{path}:{line}: NOT RUN: {reason}");
            }
            Block::Commands { commands, anew, first, line, .. } => {
                if *anew || !is_begun {
                    scene.begin(shows_start_of_server(&page.blocks()[index..]));
                    is_begun = true;
                }
                first.iter().for_each(|command| scene.run_first(command));
                for command in commands {
                    eprintln!("{path}:{line}: $ {}", command.text);
                    if let Err(problem) = scene.run(command) {
                        eprintln!("{problem}");
                        failures.push(format!("{path}:{line}: $ {}", command.text));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "do not do what is shown:\n{}", failures.join("\n"));
}

/// Whether the commands start a server themselves before others are run anew.
fn shows_start_of_server(blocks: &[Block]) -> bool {
    for (index, block) in blocks.iter().enumerate() {
        let Block::Commands { commands, not_run: None, anew, first, .. } = block else { continue };
        if *anew && index > 0 {
            break;
        }
        let mut texts = first.iter().chain(commands.iter().map(|command| &command.text));
        if texts.any(|text| is_in_background(text)) {
            return true;
        }
    }
    false
}

/// Walks a page from its beginning to its end on a machine that has nothing but the programs. The section "From nothing"
/// begins with the files that its reader saves in the directory `name` of the home. `arrival` is a part of the command
/// that the reader wants to arrive at.
fn walk(path: &str, name: &'static str, arrival: &str) {
    const MOST_COMMANDS: usize = 8;
    let page = Page::read(path);
    for file in ["bitcoin.conf", "settings.toml"] {
        let file = format!("`~/{name}/{file}`");
        assert!(page.text.contains(&file), "{path} does not have its reader save {file}");
    }
    let begin = page.text.lines().position(|line| line.starts_with("## From nothing"));
    let begin = begin.expect("the page has the section");
    let mut typed = Vec::new();
    for block in page.blocks() {
        let Block::Commands { commands, first, line, .. } = block else { continue };
        if *line < begin {
            continue;
        }
        assert!(first.is_empty(), "{path}: the walk has steps that are not shown: {first:?}");
        typed.extend(commands.iter().map(|command| command.text.as_str()));
        if let Some(last) = typed.iter().position(|command| command.contains(arrival)) {
            typed.truncate(last + 1);
            break;
        }
    }
    let steps = |command: &&str| command.split("&&").flat_map(|part| part.split(';')).count();
    let count: usize = typed.iter().map(steps).sum();
    assert!(typed.last().is_some_and(|last| last.contains(arrival)), "{path}: {arrival}");
    assert!(count <= MOST_COMMANDS, "{path}: {count} commands: {typed:#?}");
    run_in(Scene::without_node(name, &regtest_configuration(name == "pool")), &page);
}

/// The configuration of a node on regtest that `docs/node.md` shows, for a shop or for a pool.
fn regtest_configuration(is_of_pool: bool) -> String {
    let page = Page::read("docs/node.md");
    let mut shown = page.blocks().iter().filter_map(|block| match block {
        Block::Node(configuration) => Some(configuration),
        _ => None,
    });
    let fits = |configuration: &&String| {
        let has = |line: &str| configuration.lines().any(|shown| shown == line);
        has("regtest=1") && has("minerid=1") == is_of_pool
    };
    shown.find(fits).expect("the page shows both").clone()
}

#[test]
fn the_commands_of_the_api_reference_answer_as_shown() {
    run("docs/api.md");
}

#[test]
fn the_lines_of_the_checklist_for_livenet_are_proved_as_shown() {
    run("docs/livenet.md");
}

#[test]
fn the_commands_for_operators_answer_as_shown() {
    run("docs/operate.md");
}

#[test]
fn a_pool_gets_from_nothing_to_the_end_of_its_page_as_shown() {
    walk("docs/pool.md", "pool", "docs/examples/mine.py");
}

#[test]
fn a_shop_gets_from_nothing_to_the_end_of_its_page_as_shown() {
    walk("docs/shop.md", "shop", "bsv-cli wallet faucet");
}

#[test]
fn every_page_with_commands_is_run_or_says_why_not() {
    for page in pages() {
        let mut commands = page.blocks().iter().filter_map(|block| match block {
            Block::Commands { not_run, line, .. } => Some((not_run, line)),
            Block::Settings { .. } | Block::Node(_) => None,
        });
        if RUN.contains(&page.path.as_str()) {
            assert!(
                commands.any(|(not_run, _)| not_run.is_none()),
                "{}: the page has no command that is run",
                page.path
            );
        } else if NOT_RUN.contains(&page.path.as_str()) {
            for (reason, line) in commands {
                let reason = reason.as_ref();
                let reason = reason.unwrap_or_else(|| {
                    panic!("{}:{line}: give the reason why this is not run", page.path)
                });
                eprintln!("{}:{line}: NOT RUN: {reason}", page.path);
            }
        } else {
            assert!(commands.next().is_none(), "{}: list it in RUN or NOT_RUN", page.path);
        }
    }
}

#[test]
fn the_settings_that_are_shown_are_settings() {
    let site = Site::new();
    let dir = site.data_dir().to_str().unwrap();
    fs::write(site.data_dir().join("passphrase"), "correct horse").unwrap();
    let mut count = 0;
    for page in pages() {
        for block in page.blocks() {
            let Block::Settings { text, .. } = block else { continue };
            let file = site.data_dir().join("shown.toml");
            fs::write(&file, text.replace("/etc/bsv-server", dir)).unwrap();
            let mut command = std::process::Command::new(cli_program());
            command.args(["config", "show", "--config", file.to_str().unwrap()]);
            command.env_remove("BSV_CONFIG").env("BSV_DATA_DIR", site.data_dir());
            let done = Done::of(&mut command);
            assert_eq!(done.code, 0, "{}: {}\n{text}", page.path, done.stderr);
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} examples of settings");
}

/// A node that runs on a configuration that is shown, killed when dropped.
struct ShownNode {
    dir: TempDir,
    child: Child,
}

impl ShownNode {
    fn start(configuration: &str, rpc_port: u16) -> Self {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("bitcoin.conf"), configuration).unwrap();
        let mut command = std::process::Command::new(try_bitcoind().unwrap());
        command.arg(format!("-datadir={}", dir.path().display()));
        // Other tests may have these ports, and there is nobody to connect to.
        command.arg(format!("-rpcport={rpc_port}")).arg(format!("-port={}", free_port()));
        command.arg(format!("-zmqpubrawtx2=tcp://127.0.0.1:{}", free_port())).arg("-connect=0");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { dir, child }
    }
}

impl Drop for ShownNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_configuration_of_a_node_that_is_shown_suits_the_settings_beside_it() {
    let page = Page::read("docs/node.md");
    let shown = page.blocks().iter().filter_map(|block| match block {
        Block::Node(configuration) => Some(configuration),
        _ => None,
    });
    let mut checked = Vec::new();
    for configuration in shown {
        let has = |line: &str| configuration.lines().any(|shown| shown == line);
        let (network, cookie) = match (has("testnet=1"), has("regtest=1")) {
            (true, _) => ("testnet", "testnet3/.cookie"),
            (_, true) => ("regtest", "regtest/.cookie"),
            _ => ("livenet", ".cookie"),
        };
        let (port, is_of_pool) = (free_port(), has("minerid=1"));
        let mut node = ShownNode::start(configuration, port);
        let cookie = node.dir.path().join(cookie);
        let mut site = Site::with(json!({
            "network": network, "rpcPort": port, "rpcCookieFile": cookie,
            "allowPlainKeystore": true,
        }));
        site.set(if is_of_pool { "wallet" } else { "minerid" }, json!({ "enabled": false }));
        let check = loop {
            let check = site.cli(&["config", "check", "--node", "--json"]);
            let ended = node.child.try_wait().unwrap();
            assert!(ended.is_none(), "{configuration}: the node ended with {ended:?}");
            if check.stdout.contains("it answers") {
                break check;
            }
        };
        assert_eq!(check.code, 0, "{configuration}: {}", check.stdout);
        if is_of_pool && network == "regtest" {
            // A chain whose last block is old gives no work.
            for call in [&["generate", "1"][..], &["getminingcandidate"]] {
                let program = try_bitcoind().unwrap().with_file_name("bitcoin-cli");
                let mut bitcoin_cli = std::process::Command::new(program);
                bitcoin_cli.arg(format!("-datadir={}", node.dir.path().display()));
                let done = Done::of(bitcoin_cli.arg(format!("-rpcport={port}")).args(call));
                assert_eq!(done.code, 0, "{configuration}: {}", done.stderr);
            }
        }
        checked.push((network, is_of_pool));
    }
    let expected = [false, true]
        .map(|is_of_pool| ["livenet", "testnet", "regtest"].map(|network| (network, is_of_pool)));
    assert_eq!(checked, expected.concat());
}

/// The error codes in an OpenAPI file.
fn codes(value: &Value, found: &mut BTreeSet<String>) {
    if let Some(listed) = value["code"]["enum"].as_array() {
        found.extend(listed.iter().map(|code| code.as_str().unwrap().to_owned()));
    }
    match value {
        Value::Object(members) => members.values().for_each(|member| codes(member, found)),
        Value::Array(elements) => elements.iter().for_each(|element| codes(element, found)),
        _ => {}
    }
}

#[test]
fn the_api_reference_names_every_path_and_error() {
    let page = Page::read("docs/api.md").text;
    let mut names = BTreeSet::new();
    for file in ["wallet", "payments", "minerid"] {
        let file = workspace().join(format!("bsv-server/openapi/{file}.json"));
        let description: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        names.extend(description["paths"].as_object().unwrap().keys().cloned());
        codes(&description, &mut names);
    }
    assert!(names.len() > 100, "{names:?}");
    // Paths for pools have the form of the older generator.
    let former = |name: &str| {
        let name = name.replace("{height}", "{blockHeight}").replace("{txid}", "{dataRefsTxId}");
        name.replace('{', ":").replace('}', "")
    };
    let is_named = |name: &str| page.contains(name) || page.contains(&former(name));
    names.retain(|name| !is_named(name));
    assert!(names.is_empty(), "docs/api.md lacks {names:?}");
}
