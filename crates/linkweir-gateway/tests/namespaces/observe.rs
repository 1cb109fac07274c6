// SPDX-License-Identifier: BSD-3-Clause
//! What a running gateway shows: at the control socket, as metrics, and before it starts.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command};
use std::time::Instant;

use linkweir_gateway::show::control::{Request, Response};
use linkweir_gateway::show::figures::{
    AcrossShow, PathShow, PromiseShow, RestoredShow, UnderlayShow,
};
use linkweir_gateway::show::metrics;
use nix::sys::signal::Signal;

use crate::carry::ASKS;
use crate::life::comes_through;
use crate::place::{
    cabled, config, http, keygen, program, pss, rests, sealed, Folder, Gateway, Tunnel, SLOW,
    STRICT,
};
use crate::PATIENCE;

pub fn the_control_socket_answers_right_and_wrong_questions() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let control = folder.path("control1");
    let gateway = Gateway::start(&here, &file, &control);
    let request = Request::SetCapacity {
        path: None,
        peer: Some("nobody".to_string()),
        capacity_bps: 5000,
    };
    assert_eq!(
        gateway.ask(&request),
        Response::Refused(
            "there is no peer nobody; `linkweir-gateway show` lists them".to_string()
        )
    );
    for question in ["", "{", "\"nonsense\"", "{\"set_capacity\":{}}", "\u{0}"] {
        let mut stream = UnixStream::connect(&control).unwrap();
        writeln!(stream, "{question}").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert!(
            answer.starts_with("{\"refused\":"),
            "{question:?}: {answer}"
        );
    }
    // A client that sends too much, and many that send nothing.
    let mut stream = UnixStream::connect(&control).unwrap();
    let _ = stream.write_all(&[b'x'; 10_000]);
    let silent: Vec<_> = (0..10)
        .map(|_| UnixStream::connect(&control).unwrap())
        .collect();
    assert_eq!(gateway.show().device, "lw0");
    drop(silent);

    let program = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"))
            .args(arguments)
            .arg("--control")
            .arg(&control)
            .output()
            .unwrap()
    };
    assert!(program(&["set", "capacity", "18Mbit"]).status.success());
    let json = program(&["show", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["peers"][0]["capacity_bps"], 18_000_000);
    assert_eq!(json["peers"][0]["told_bps"], 18_000_000);
    let text = String::from_utf8(program(&["show"]).stdout).unwrap();
    assert!(
        text.contains("peer other at 192.0.2.2:51820: 18Mbit"),
        "{text}"
    );
    let metrics = String::from_utf8(program(&["metrics"]).stdout).unwrap();
    assert!(
        metrics.contains(
            "linkweir_link_capacity_bytes_per_second{device=\"lw0\",peer=\"other\"} 2250000\n"
        ),
        "{metrics}"
    );
    let refused = program(&["set", "capacity", "18"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("needs a unit"));
}

/// However many clients say nothing, others are answered; silent ones are left after a while.
pub fn idle_clients_lock_nobody_out() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let control = folder.path("control1");
    let gateway = Gateway::start(&here, &file, &control);
    let connect = || {
        let stream = UnixStream::connect(&control).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let silent: Vec<_> = (0..40).map(|_| connect()).collect();
    let mut patient = connect();
    patient.write_all(b"\"sh").unwrap();
    assert_eq!(gateway.show().device, "lw0");
    // Several questions at once get as many answers, in their order.
    patient
        .write_all(b"ow\"\nnonsense\n\"show\"\n\"nonsense\"\n")
        .unwrap();
    let mut answers = BufReader::new(&patient).lines();
    for begins in ["{\"show\":", "{\"refused\":", "{\"show\":", "{\"refused\":"] {
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.starts_with(begins), "{answer}");
    }
    for mut stream in silent.into_iter().chain([connect()]) {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        assert!(said.is_empty(), "{said:?}");
    }
    assert_eq!(gateway.show().device, "lw0");
}

/// A capacity is what a link can have, whoever sets it.
pub fn capacities_out_of_range_are_refused() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let gateway = Gateway::start(&here, &file, &folder.path("control1"));
    let range = "the capacity must be 0bit, which is an outage, or 1kbit .. 400Gbit".to_string();
    for (capacity_bps, expected) in [
        (0, Response::Done),
        (1, Response::Refused(range.clone())),
        (999, Response::Refused(range.clone())),
        (1000, Response::Done),
        (400_000_000_000, Response::Done),
        (400_000_000_001, Response::Refused(range.clone())),
        (u64::MAX, Response::Refused(range)),
    ] {
        let request = Request::SetCapacity {
            peer: None,
            path: None,
            capacity_bps,
        };
        assert_eq!(gateway.ask(&request), expected, "{capacity_bps}");
    }
    assert_eq!(gateway.show().peers[0].capacity_bps, 400_000_000_000);
}

/// Its members may use the control socket, and others may not.
pub fn a_group_may_use_the_control_socket() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let (here, _there) = cabled();
    let folder = Folder::new();
    let group = nix::unistd::Group::from_name("daemon").unwrap().unwrap();
    let unit = include_str!("../../debian/linkweir-gateway@.service");
    let bounding = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let bounding = bounding.unwrap().to_lowercase().replace("cap_", "+");
    let start = |group: &str| {
        let line = format!("user = \"nobody\"\ncontrol_group = \"{group}\"\n");
        let text = config(&folder, 1, STRICT).replace("user = \"root\"\n", &line);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--bounding-set"]);
        command.arg(format!("-all,{}", bounding.replace(' ', ",")));
        command
            .arg(env!("CARGO_BIN_EXE_linkweir-gateway"))
            .arg("up");
        command
            .arg(folder.write("1.toml", &text))
            .arg("--cleartext");
        command
    };
    let refused = start("nobody-is-here").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(
        why.contains("there is no group nobody-is-here; make it with"),
        "{why}"
    );
    let control = folder.path("control1");
    let _gateway = Gateway::started(&here, start("daemon"), &control);
    let meta = fs::metadata(&control).unwrap();
    assert_eq!(
        (meta.gid(), meta.permissions().mode() & 0o777),
        (group.gid.as_raw(), 0o660)
    );
    let program = folder.path("gateway");
    // Copied by a process of its own: one that another test starts meanwhile would hold the copy open for writing.
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_linkweir-gateway"));
    assert!(copy.arg(&program).status().unwrap().success());
    for (groups, code) in [(group.gid.to_string(), 0), ("65533".to_string(), 1)] {
        let mut show = Command::new("setpriv");
        show.args(["--reuid", "65534", "--regid", "65534", "--groups", &groups]);
        show.arg(&program).args(["show", "--control"]).arg(&control);
        let shown = show.output().unwrap();
        assert_eq!(shown.status.code(), Some(code), "{groups}: {shown:?}");
    }
}

/// Clients wait for a descriptor without costing time.
pub fn it_rests_without_descriptors() {
    use std::os::unix::net::UnixStream;
    let (here, _there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let control = folder.path("control1");
    let gateway = Gateway::start(&here, &file, &control);
    let pid = gateway.pid().to_string();
    let open = || fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    // The last client may not be gone yet.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let limit = |files: usize| {
        let arguments = ["--pid", &pid, &format!("--nofile={files}:")];
        let limited = Command::new("prlimit").args(arguments).status().unwrap();
        assert!(limited.success());
    };
    limit(open());
    let waiting: Vec<_> = (0..3)
        .map(|_| UnixStream::connect(&control).unwrap())
        .collect();
    rests(&gateway);
    limit(1024);
    assert_eq!(gateway.show().device, "lw0");
    drop(waiting);
}

const EXPORTER: &str = "127.0.0.1:9705";

/// The process that serves the metrics of the first end.
pub fn exporter(tunnel: &Tunnel) -> Child {
    let mut command = program();
    command
        .args(["metrics", "--listen", EXPORTER])
        .args(["--name", "gateway.example", "--control"])
        .arg(tunnel.folder.path("control1"));
    tunnel.here.inside(move || command.spawn().unwrap())
}

pub fn metrics_are_served_by_a_process_of_their_own() {
    let mut tunnel = Tunnel::new(STRICT);
    let mut exporter = exporter(&tunnel);
    let ask = |request: &str| {
        let (head, body) = http(&tunnel.here, EXPORTER, request);
        head + "\r\n\r\n" + &body
    };
    // Another site's name that resolves to this host is refused.
    for host in ["Host: evil.example:9705\r\n", ""] {
        let refused = ask(&format!("GET /metrics HTTP/1.1\r\n{host}\r\n"));
        assert!(refused.starts_with("HTTP/1.1 421 "), "{refused}");
    }
    for host in [
        "127.0.0.1:9705",
        "localhost:9705",
        "192.0.2.1",
        "Gateway.example",
    ] {
        let answer = ask(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9705\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with("# HELP linkweir_build_info "), "{body}");
    assert!(answer.contains(&format!("Content-Length: {}\r\n", body.len())));
    assert!(ask("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    tunnel.gateways[0].signal(Signal::SIGKILL);
    tunnel.gateways[0].ended();
    let ended = ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9705\r\n\r\n");
    assert!(ended.starts_with("HTTP/1.1 502 "), "{ended}");
    exporter.kill().unwrap();
    exporter.wait().unwrap();
}

/// As systemd starts them: without any capability.
pub fn its_units_serve_figures_without_capabilities() {
    let tunnel = Tunnel::new(STRICT);
    for (unit, listen, path) in [
        (
            include_str!("../../debian/linkweir-gateway-metrics@.service"),
            "127.0.0.1:9705",
            "/metrics",
        ),
        (
            include_str!("../../debian/linkweir-gateway-page@.service"),
            "127.0.0.1:9706",
            "/show.json",
        ),
    ] {
        let value = |key: &str| {
            let mut lines = unit.lines();
            lines.find_map(|line| line.strip_prefix(key)).unwrap()
        };
        assert_eq!(value("CapabilityBoundingSet="), "");
        assert_eq!(value("Environment=LISTEN="), listen);
        let control = tunnel.folder.path("control1");
        let started = value("ExecStart=/usr/bin/linkweir-gateway ")
            .replace("${LISTEN}", listen)
            .replace("/run/linkweir/%i.sock", control.to_str().unwrap());
        let mut command = Command::new("setpriv");
        command.args([
            "--pdeathsig",
            "KILL",
            "--no-new-privs",
            "--bounding-set=-all",
        ]);
        command.arg(env!("CARGO_BIN_EXE_linkweir-gateway"));
        command.args(started.split(' '));
        let mut child = tunnel.here.inside(move || command.spawn().unwrap());
        let request = format!("GET {path} HTTP/1.1\r\nHost: {listen}\r\n\r\n");
        let (head, body) = http(&tunnel.here, listen, &request);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}\n{body}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

pub fn up_dry_run_reports_what_it_would_set_up() {
    let folder = Folder::new();
    let public = keygen(&folder, 1);
    let text = sealed(&config(&folder, 1, STRICT), 1, &public);
    let file = folder.write("1.toml", &text);
    let dry_run = || {
        Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"))
            .args(["up", "--dry-run"])
            .arg(&file)
            .output()
            .unwrap()
    };
    let output = dry_run();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        // 1500 less 28 outside and 32 of the seal.
        "device lw0: MTU 1440 bytes, 10.77.0.1/24, fd77::1/64",
        &format!("listens on 192.0.2.1:51820 as {public}"),
        "then becomes user root",
        // What is inside the device's own network needs no route.
        "peer other: at 192.0.2.2:51820, 1Gbit at first, routes: 10.78.2.0/24\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!folder.path("control1").exists());
    // Faults that only set-up finds are found, too.
    fs::remove_file(folder.path("key1")).unwrap();
    let output = dry_run();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("key1: cannot be read"));
}

pub fn show_watch_repeats_the_figures() {
    use std::io::{BufRead, BufReader};
    let tunnel = Tunnel::new(STRICT);
    let watch = |json: &[&str]| {
        let mut command = program();
        command
            .args(["show", "--watch"])
            .args(json)
            .arg("--control")
            .arg(tunnel.folder.path("control1"))
            .stdout(std::process::Stdio::piped());
        // Started by a thread that stays alive, so that the program is not ended as an orphan.
        tunnel.here.inside(move || command.spawn().unwrap())
    };
    let mut json = watch(&["--json"]);
    let lines = BufReader::new(json.stdout.take().unwrap()).lines().take(3);
    let uptimes: Vec<f64> = lines
        .map(|line| {
            let show: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            show["uptime_s"].as_f64().unwrap()
        })
        .collect();
    assert!(
        uptimes[0] < uptimes[1] && uptimes[1] < uptimes[2],
        "{uptimes:?}"
    );

    let mut text = watch(&[]);
    let mut lines = BufReader::new(text.stdout.take().unwrap()).lines();
    let mut next_rate = || {
        let row = lines.find(|line| line.as_ref().unwrap().starts_with("  ef "));
        let row = row.unwrap().unwrap();
        row.split_whitespace().nth(1).unwrap().to_string()
    };
    assert_eq!(next_rate(), "-", "nothing to compare with yet");
    let a = tunnel.here.socket("10.77.0.1:5060");
    let begun = Instant::now();
    for _ in 0..100 {
        a.send_to(&[7; 1000], "10.77.0.2:2000").unwrap();
    }
    // Exactly one row compares figures from before these packets with figures from after them.
    let mut rates = Vec::new();
    let shown = |rate: &String| rate.ends_with("bit") && !rate.starts_with('0');
    while !rates.last().is_some_and(shown) {
        assert!(begun.elapsed() < PATIENCE, "{rates:?}");
        rates.push(next_rate());
    }
    for mut child in [json, text] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

pub fn metrics_pass_promtool() {
    use std::io::Write;
    use std::process::Stdio;
    // Everything that can be exported at once; the rest is put in below.
    let tunnel = Tunnel::sealed(&pss(SLOW), |text, last| match last {
        1 => text
            .replace("[link]\n", "[link]\nbelow = \"16kB\"\n")
            .replace("allowed_ips", &format!("{ASKS}\nallowed_ips")),
        _ => text.replace("allowed_ips", "report = true\nallowed_ips"),
    });
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:3000"),
        tunnel.there.socket("10.77.0.2:2000"),
    );
    comes_through(&a, &b, "10.77.0.2:2000", b"something to count");
    let stranger = tunnel.there.socket("192.0.2.2:4000");
    stranger.send_to(b"rubbish", "192.0.2.1:51820").unwrap();
    let mut show = tunnel.gateways[0].wait_until("reports come", |show| {
        let feedback = show.peers[0].feedback.as_ref().unwrap();
        feedback.reports > 0 && show.dropped_pkts.contains_key("forged")
    });
    let promtool = |metrics: &[u8]| {
        let mut child = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(metrics).unwrap();
        child.wait_with_output().unwrap()
    };
    let passes = |metrics: &str| {
        let checked = promtool(metrics.as_bytes());
        assert!(checked.status.success(), "{checked:?}");
        assert!(
            checked.stderr.is_empty() && checked.stdout.is_empty(),
            "{checked:?}"
        );
    };
    let mut exporter = exporter(&tunnel);
    let (head, scraped) = http(
        &tunnel.here,
        EXPORTER,
        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9705\r\n\r\n",
    );
    assert!(
        head.contains("Content-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    passes(&scraped);
    exporter.kill().unwrap();
    exporter.wait().unwrap();
    // Peers that share a link have no reports, this interface had room, no path was probed, and no class
    // has `flows`.
    show.peers[0].path_mtu_bytes = Some(1300);
    show.peers[0].program_unlogged_lines = Some(0);
    show.peers[0].classes[0].flows = Some("drr".to_string());
    show.peers[0].across = Some(AcrossShow {
        airtime_ns: 1,
        state: BTreeMap::from([("mean_bps".to_string(), 5)]),
    });
    show.peers[0].dropped_pkts.insert("too_big".to_string(), 1);
    show.below.as_mut().unwrap().capacity_bps = Some(8000);
    show.peers[0].underlays = vec![UnderlayShow {
        name: "lte".to_string(),
        endpoint: "192.0.2.1:51820".parse().unwrap(),
        in_use: true,
        answers_now: true,
        answers: 7,
        rtt_ns: Some(40_000_000),
    }];
    show.peers[0].paths_agreed = Some(true);
    show.peers[0].paths = vec![PathShow {
        name: "lte".to_string(),
        endpoint: None,
        in_use: true,
        answers_now: true,
        broken: false,
        too_far: false,
        rtt_ns: Some(40_000_000),
        capacity_bps: 8000,
        capacity_expired: false,
        cost: 1,
        sent_pkts: 6,
        sent_bytes: 600,
        copied_pkts: 2,
        resent_pkts: 1,
        dropped_copies_pkts: 1,
        received_pkts: 4,
        received_bytes: 400,
        feedback: None,
    }];
    show.peers[0].classes[0].restored = Some(RestoredShow {
        delivered_pkts: 9,
        duplicate_pkts: 2,
        late_pkts: 1,
        given_up_pkts: 1,
        reordered_pkts: 3,
        held_pkts: 1,
        held_bytes: 100,
    });
    show.peers[0].classes[0].promise = Some(PromiseShow {
        reserved_bps: 8000,
        kept_bps: 4000,
    });
    let whole = metrics::text(&show);
    for family in whole
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
    {
        let (name, kind) = family.split_once(' ').unwrap();
        let part = if kind == "histogram" { "_bucket" } else { "" };
        assert!(
            whole.contains(&format!("\n{name}{part}{{")),
            "{name} has no sample"
        );
    }
    passes(&whole);
    // promtool would have reported it.
    assert!(!promtool(b"linkweir_x{ 1\n").status.success());
}
