use std::io::Write;
use std::process::{Command, Stdio};

use bsv_tests::fetch::{prometheus_client, promtool};
use bsv_tests::{Client, Node, Purse, Reply, Site};
use serde_json::Value;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Reads metrics with the strict parsers of Python's `prometheus_client`, and writes their
/// families: name, type, and each sample with its labels.
const READER: &str = r#"
import json, sys
from prometheus_client.parser import text_string_to_metric_families as text
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
families = (openmetrics if sys.argv[1] == "openmetrics" else text)(sys.stdin.read())
print(json.dumps([
    [f.name, f.type, f.documentation, [[s.name, sorted(s.labels.items()), s.value] for s in f.samples]]
    for f in families
]))
"#;

/// Runs a program on a text. The program must succeed. Answers its output.
fn run(command: &mut Command, text: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let [out, complaint] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{complaint}{out}\n{text}");
    assert_eq!(complaint, "", "{text}");
    out
}

fn read(format: &str, text: &str) -> Vec<Value> {
    let mut python = Command::new("python3");
    python.args(["-c", READER, format]).env("PYTHONPATH", prometheus_client());
    serde_json::from_str::<Vec<Value>>(&run(&mut python, text)).unwrap()
}

fn ask(client: &Client, accept: &str) -> Reply {
    let reply = client.send("GET", "/metrics", &[("Accept", accept)], b"");
    assert_eq!(reply.status, 200);
    reply
}

/// The names of the families, their types, and the names and labels of their samples.
fn shape(families: &[Value]) -> Vec<String> {
    let shape = families.iter().map(|family| {
        let samples = family[3].as_array().unwrap().iter();
        let samples: Vec<_> = samples.map(|sample| format!("{}{}", sample[0], sample[1])).collect();
        format!("{} {} {samples:?}", family[0], family[1])
    });
    shape.collect()
}

/// A site and its server, with at least one sample in every metric.
fn used_site(node: &Node) -> (Site, bsv_tests::Server) {
    node.mine(101);
    let mut site = Site::on(node);
    site.set("metrics", serde_json::json!({"balance": true}));
    site.cli_ok(&["generateminerid", "--name", "pool", "--protocol", "1.0"]);
    let server = site.server();
    let purse = Purse::filled(node, 1, 100_000);
    let reply = server.wallet().post("/api/v1/invoices", r#"{"satoshis":5000}"#);
    let invoice: Value = serde_json::from_str(&reply.body).unwrap();
    let path = format!("/api/v1/payment/{}", invoice["id"].as_str().unwrap());
    let url = format!("http://{}{path}", server.payments().address());
    let bill = bsv_tests::Bill::at(&url);
    assert_eq!(bill.post(&purse.transaction_for(&bill)).status, 201);
    server.text("/opreturn/pool/1000");
    for listener in [server.wallet(), server.minerid()] {
        crate::metrics::wait_for(listener, "bsv_node_reachable", 1.0);
        // This request lets both formats count the path.
        ask(listener, TEXT);
    }
    (site, server)
}

#[test]
fn other_programs_read_both_formats() {
    let node = Node::start();
    let (_site, server) = used_site(&node);
    let promtool = promtool();
    for listener in [server.wallet(), server.minerid()] {
        let text = ask(listener, TEXT);
        assert_eq!(text.header("content-type"), Some(TEXT));
        let open_metrics = ask(listener, OPEN_METRICS);
        assert_eq!(open_metrics.header("content-type"), Some(OPEN_METRICS));
        let of_text = read("text", &text.body);
        assert!(of_text.len() > 15, "{of_text:?}");
        assert!(of_text.iter().all(|family| family[2] != "" && family[1] != "unknown"));
        assert_eq!(shape(&of_text), shape(&read("openmetrics", &open_metrics.body)));
        if let Some(promtool) = &promtool {
            run(Command::new(promtool).args(["check", "metrics"]), &text.body);
        }
    }
}

#[test]
fn who_names_no_format_gets_text_and_head_gets_the_same_without_a_body() {
    let site = Site::new();
    let server = site.server();
    let minerid = server.minerid();
    for accept in ["*/*", "text/html", "application/openmetrics-text;version=0.0.1"] {
        assert_eq!(ask(minerid, accept).header("content-type"), Some(TEXT), "{accept}");
    }
    assert_eq!(minerid.get("/metrics").header("content-type"), Some(TEXT));
    let head = minerid.send("HEAD", "/metrics", &[("Accept", OPEN_METRICS)], b"");
    assert_eq!((head.status, head.header("content-type")), (200, Some(OPEN_METRICS)));
    assert_eq!(head.body, "");
    assert_eq!(minerid.post("/metrics", "").status, 405);
}
