// SPDX-License-Identifier: BSD-3-Clause
//! The board for Grafana and the alerts for Prometheus, with a real Prometheus and the metrics of a gateway that works.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::observe::exporter;
use crate::ordinary::absent;
use crate::place::{http, pss, set_tos, Tunnel, SLOW};
use crate::PATIENCE;

const BOARD: &str = include_str!("../../monitoring/grafana.json");
const RULES: &str = include_str!("../../monitoring/alerts.yml");
const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/monitoring/alerts.yml");
const PROMETHEUS: &str = "127.0.0.1:9090";
/// Scrapes often, so that rates are there soon.
const SETTINGS: &str = "global: { scrape_interval: 500ms, evaluation_interval: 500ms }
scrape_configs: [{ job_name: linkweir, static_configs: [{ targets: [\"127.0.0.1:9705\"] }] }]
rule_files: [RULES]
";
const UNDERLAYS: &str = "underlays = [
  { name = \"starlink\", endpoint = \"192.0.2.2:51820\" },
  { name = \"lte\", endpoint = \"192.0.2.12:51820\" },
]
rate = \"20Mbit\"
stale = \"60s\"
floor = \"1Mbit\"
feedback = { ceiling = \"40Mbit\" }
probe_mtu = true
";

/// Of a peer that is away: that its paths do not answer is what the alert watches.
const PATHS: &str = "[[peer.path]]
name = \"lte\"
endpoint = \"192.0.2.2:20001\"
rate = \"20Mbit\"
";
/// Alerts of which nothing is there to be watched: the gateway answers, and it has no reservation that its paths cannot carry.
const UNWATCHED: [&str; 2] = ["LinkweirNotScraped", "LinkweirPromiseBroken"];

/// A process that ends with its test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What Prometheus answers to a question, once it has started.
fn ask(tunnel: &Tunnel, path: &str) -> Value {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {PROMETHEUS}\r\n\r\n");
    let begun = Instant::now();
    let body = loop {
        let (head, body) = http(&tunnel.here, PROMETHEUS, &request);
        if !head.contains(" 503 ") {
            break body;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not start: {body}");
        thread::sleep(Duration::from_millis(50));
    };
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The board's queries with the title of their panel, as Grafana asks them when everything is chosen.
fn queries() -> Vec<(String, String)> {
    let board: Value = serde_json::from_str(BOARD).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let panels = board["panels"].as_array().unwrap().iter();
    let with_targets = panels.filter_map(|panel| Some((panel, panel.get("targets")?.as_array()?)));
    let all = with_targets.flat_map(|(panel, targets)| {
        targets.iter().map(|target| {
            let query = text(&target["expr"])
                .replace("$instance", ".*")
                .replace("$device", ".*")
                .replace("$peer", ".*")
                .replace("$__rate_interval", "5s");
            (text(&panel["title"]), query)
        })
    });
    all.collect()
}

/// The metrics that a text names.
fn metrics_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("linkweir_"))
}

/// Whether an answer has a series with a number in it.
fn has_number(answer: &Value) -> bool {
    let series = answer["data"]["result"].as_array();
    let value = |one: &Value| one["value"][1].as_str().and_then(|text| text.parse().ok());
    series.is_some_and(|all| all.iter().filter_map(value).any(f64::is_finite))
}

/// Two hosts have gateways whose devices and peers have the same names.
pub fn alerts_tell_hosts_apart() {
    let output = Command::new("promtool")
        .args(["test", "rules", "alerts_test.yml"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/monitoring"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub fn each_query_of_the_board_has_an_answer_and_each_alert_is_evaluated() {
    let tunnel = Tunnel::sealed(&pss(SLOW), |text, last| {
        let text = text.replace(&format!("\"192.0.2.{last}:51820\""), "\"0.0.0.0:51820\"");
        match last {
            1 => {
                let text = text.replace("endpoint = \"192.0.2.2:51820\"\n", UNDERLAYS);
                let program = "rate = \"20Mbit\"\ncommand = [\"sleep\", \"100\"]\nallowed_ips";
                let other = absent(0, true).replace("allowed_ips", program);
                let paths = absent(1, false) + PATHS;
                format!("{text}{other}{paths}[record]\nfolder = \"rec\"\n")
            }
            _ => text.replace("allowed_ips", "report = true\nallowed_ips"),
        }
    });
    let mut metrics = Ends(exporter(&tunnel));
    let settings = SETTINGS.replace("RULES", &format!("\"{ALERTS}\""));
    let settings = tunnel.folder.write("prometheus.yml", &settings);
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "prometheus", "--log.level=error"])
        .arg(format!("--web.listen-address={PROMETHEUS}"))
        .arg(format!("--config.file={}", settings.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            tunnel.folder.path("data").display()
        ))
        .stdout(Stdio::null());
    let _prometheus = Ends(tunnel.here.inside(move || command.spawn().unwrap()));

    // Traffic of two classes, packets that belong to no peer, and one with an address that the peer may not use.
    let voice = tunnel.here.socket("10.77.0.1:1000");
    set_tos(&voice, 184);
    let rest = tunnel.here.socket("10.77.0.1:3000");
    tunnel
        .there
        .ip(&["address", "add", "10.99.0.1/32", "dev", "lo"]);
    let (back, forged) = (
        tunnel.there.socket("10.77.0.2:2000"),
        tunnel.there.socket("10.99.0.1:5"),
    );
    let runs = Arc::new(AtomicBool::new(true));
    let until = Arc::clone(&runs);
    let traffic = thread::spawn(move || {
        while until.load(Ordering::Relaxed) {
            for socket in [&voice, &rest] {
                let _ = socket.send_to(&[7; 500], "10.77.0.2:9");
                let _ = socket.send_to(&[7; 500], "10.77.0.200:9");
            }
            let _ = back.send_to(&[7; 500], "10.77.0.1:9");
            let _ = forged.send_to(&[7; 500], "10.77.0.1:9");
            thread::sleep(Duration::from_millis(10));
        }
    });

    let begun = Instant::now();
    let mut left = queries();
    assert!(left.len() > 15, "{left:?}");
    while !left.is_empty() {
        let mut last = Value::Null;
        left.retain(|(_, query)| {
            last = ask(&tunnel, &format!("/api/v1/query?query={}", escaped(query)));
            assert_eq!(last["status"], "success", "{query}: {last}");
            !has_number(&last)
        });
        assert!(begun.elapsed() < PATIENCE, "no answer to {left:?}; {last}");
        thread::sleep(Duration::from_millis(200));
    }
    let rules = loop {
        let answer = ask(&tunnel, "/api/v1/rules");
        let rules = answer["data"]["groups"][0]["rules"]
            .as_array()
            .unwrap()
            .clone();
        if rules.iter().all(|rule| rule["health"] != "unknown") {
            break rules;
        }
        assert!(begun.elapsed() < PATIENCE, "{rules:?}");
        thread::sleep(Duration::from_millis(200));
    };
    assert!(rules.len() > 5);
    for rule in &rules {
        assert_eq!(
            (&rule["health"], rule.get("lastError")),
            (&Value::from("ok"), None),
            "{rule}"
        );
    }
    let (_, exported) = http(
        &tunnel.here,
        "127.0.0.1:9705",
        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9705\r\n\r\n",
    );
    for name in metrics_of(BOARD).chain(metrics_of(RULES)) {
        let name = name.trim_end_matches("_bucket");
        let declared = format!("# TYPE {name} ");
        assert!(exported.contains(&declared), "no metric {name}");
    }
    // What the alerts watch is there, too: without a limit each finds something.
    for rule in &rules {
        if UNWATCHED.iter().any(|name| rule["name"] == *name) {
            continue;
        }
        let query = rule["query"].as_str().unwrap();
        let (watched, _) = query.rsplit_once(['>', '=']).unwrap();
        let watched = watched.trim_end_matches(['=', ' ']).replace("[5m]", "[5s]");
        let answer = ask(
            &tunnel,
            &format!("/api/v1/query?query={}", escaped(&watched)),
        );
        assert!(has_number(&answer), "{watched}: {answer}");
    }
    runs.store(false, Ordering::Relaxed);
    traffic.join().unwrap();
    assert!(metrics.0.try_wait().unwrap().is_none(), "the exporter runs");
}
