//! The documentation does what it says: its commands answer as shown, and its links lead somewhere.

mod links;
mod markdown;
mod pattern;
mod scene;

use std::collections::BTreeSet;
use std::fs;

use bsv_tests::build::{cli_program, workspace};
use bsv_tests::{Done, Site};
use markdown::{Block, Page};
use scene::Scene;
use serde_json::Value;

/// The pages whose commands are run.
const RUN: [&str; 4] = ["docs/api.md", "docs/operate.md", "docs/pool.md", "docs/shop.md"];

/// Pages with commands that are not run. Each block gives the reason.
const NOT_RUN: [&str; 2] = ["docs/cli.md", "docs/embed.md"];

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
    let page = Page::read(path);
    let mut scene = Scene::new();
    let mut is_begun = false;
    let mut failures = Vec::new();
    for block in page.blocks() {
        match block {
            Block::Settings(text) => scene.settings = text.clone(),
            Block::Commands { not_run: Some(reason), line, .. } => {
                eprintln!("{path}:{line}: NOT RUN: {reason}");
            }
            Block::Commands { commands, anew, first, line, .. } => {
                if *anew || !is_begun {
                    scene.begin(commands);
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

#[test]
fn the_commands_of_the_api_reference_answer_as_shown() {
    run("docs/api.md");
}

#[test]
fn the_commands_for_operators_answer_as_shown() {
    run("docs/operate.md");
}

#[test]
fn the_commands_for_pools_answer_as_shown() {
    run("docs/pool.md");
}

#[test]
fn the_commands_for_shops_answer_as_shown() {
    run("docs/shop.md");
}

#[test]
fn every_page_with_commands_is_run_or_says_why_not() {
    for page in pages() {
        let mut commands = page.blocks().iter().filter_map(|block| match block {
            Block::Commands { not_run, line, .. } => Some((not_run, line)),
            Block::Settings(_) => None,
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
    let mut count = 0;
    for page in pages() {
        for block in page.blocks() {
            let Block::Settings(text) = block else { continue };
            let file = site.data_dir().join("shown.toml");
            fs::write(&file, text).unwrap();
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
