//! The examples in `deploy/monitoring`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bsv_tests::build::workspace;
use bsv_tests::fetch::promtool;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::metrics::documented::{named_in, told};

fn file(name: &str) -> PathBuf {
    workspace().join("deploy/monitoring").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap()
}

/// Runs promtool, if it is installed. It must succeed.
fn check(arguments: &[&str]) {
    let Some(promtool) = promtool() else { return };
    let output = Command::new(promtool).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
}

/// The expressions of the dashboard. Values stand in for Grafana's variables.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(expression) = members.get("expr") {
                let expression = expression.as_str().unwrap().replace("$__rate_interval", "1m");
                found.push(expression.replace("$instance", ".*"));
            }
            members.values().for_each(|member| expressions(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|it| expressions(it, found)),
        _ => {}
    }
}

/// The names of metrics in a text, without the suffixes of the samples of histograms.
fn families(text: &str, told: &BTreeSet<String>) -> BTreeSet<String> {
    let family = |name: String| {
        let suffixes = ["_bucket", "_sum", "_count"].iter();
        let of_histogram = suffixes.filter_map(|suffix| name.strip_suffix(suffix));
        let family = of_histogram.map(str::to_owned).find(|family| told.contains(family));
        family.unwrap_or(name)
    };
    named_in(text).into_iter().map(family).collect()
}

#[test]
fn rules_and_dashboard_name_what_a_server_tells() {
    let told = told();
    let rules = families(&read("bsv-server.rules.yml"), &told);
    let unknown: Vec<_> = rules.difference(&told).collect();
    assert!(!rules.is_empty() && unknown.is_empty(), "{unknown:?}");
    let mut shown = Vec::new();
    let dashboard: Value = serde_json::from_str(&read("bsv-server.dashboard.json")).unwrap();
    expressions(&dashboard, &mut shown);
    let shown = families(&shown.join("\n"), &told);
    let unknown: Vec<_> = shown.difference(&told).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let missing = told.difference(&shown).filter(|name| name.starts_with("bsv_"));
    let missing: Vec<_> = missing.filter(|name| *name != "bsv_events_last_number").collect();
    assert!(missing.is_empty(), "the dashboard does not show {missing:?}");
}

#[test]
fn each_rule_is_raised_by_what_it_is_for() {
    let [rules, tests] = ["bsv-server.rules.yml", "bsv-server.rules.test.yml"].map(file);
    check(&["check", "rules", rules.to_str().unwrap()]);
    check(&["test", "rules", tests.to_str().unwrap()]);
    let of = |text: &str, before: &str| -> BTreeSet<String> {
        let names = text.split(before).skip(1);
        let is_of_name = |c: char| c.is_ascii_alphanumeric();
        names.map(|rest| rest.chars().take_while(|c| is_of_name(*c)).collect()).collect()
    };
    let alerts = of(&read("bsv-server.rules.yml"), "alert: ");
    assert_eq!(of(&read("bsv-server.rules.test.yml"), "alertname=\""), alerts);
}

#[test]
fn prometheus_understands_the_dashboard() {
    let dashboard: Value = serde_json::from_str(&read("bsv-server.dashboard.json")).unwrap();
    let mut shown = Vec::new();
    expressions(&dashboard, &mut shown);
    assert!(shown.len() > 20, "{shown:?}");
    let rules: Vec<_> = shown
        .iter()
        .enumerate()
        .map(|(number, expr)| json!({"record": format!("panel:{number}"), "expr": expr}))
        .collect();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("rules.yml");
    // Every JSON text is also YAML.
    let groups = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    fs::write(&path, groups.to_string()).unwrap();
    check(&["check", "rules", path.to_str().unwrap()]);
    let ids: Vec<_> = dashboard["panels"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    let distinct: BTreeSet<_> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), ids.len(), "panels have ids of their own");
}
