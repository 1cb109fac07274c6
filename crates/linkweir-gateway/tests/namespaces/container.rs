// SPDX-License-Identifier: BSD-3-Clause
//! Containers: without IPv6, without capabilities, without a list of users.

use std::process::{Command, Output};

use linkweir_gateway::show::figures::Show;

use crate::clear::until;
use crate::life::comes_through;
use crate::place::{cabled, config, keygen, sealed, Folder, Gateway, Namespace, STRICT};

/// Runs the gateway with these words of `setpriv` in front.
fn with(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL"])
        .args(words)
        .arg(env!("CARGO_BIN_EXE_linkweir-gateway"));
    command
}

/// Runs what is to be refused.
fn ended(namespace: &Namespace, command: Command) -> (Option<i32>, String) {
    let mut bounded = Command::new("timeout");
    bounded
        .arg("20")
        .arg(command.get_program())
        .args(command.get_args());
    let output: Output = namespace.inside(move || bounded.output().unwrap());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), error)
}

fn sysctl(namespace: &Namespace, setting: &str) {
    assert!(namespace
        .run("sysctl", &["-q", "-w", setting])
        .status
        .success());
}

/// As docker's default network. Without IPv6 the tunnel carries IPv4; once IPv6 is enabled, it carries both.
pub fn without_ipv6_it_carries_ipv4_and_later_both() {
    let (here, there) = cabled();
    let folder = Folder::new();
    let publics = [1, 2].map(|last| keygen(&folder, last));
    for all in ["all", "default"] {
        sysctl(&here, &format!("net.ipv6.conf.{all}.disable_ipv6=1"));
    }
    let gateways = [(&here, 1), (&there, 2)].map(|(namespace, last)| {
        let text = config(&folder, last, STRICT).replace("user = \"root\"\n", "");
        let text = sealed(&text, last, &publics[usize::from(2 - last)]);
        let text = match last {
            1 => text
                .replace("listen = \"192.0.2.1:", "listen = \"[::]:")
                .replace(
                    "[\"10.77.0.2/32\", \"fd77::2/128\", \"10.78.2.0/24\"]",
                    "[\"0.0.0.0/0\", \"::/0\"]",
                ),
            _ => text,
        };
        let file = folder.write(&format!("{last}.toml"), &text);
        let mut command = with(&[]);
        command.arg("up").arg(file);
        command.stderr(std::fs::File::create(folder.path(&format!("log{last}"))).unwrap());
        Gateway::started(namespace, command, &folder.path(&format!("control{last}")))
    });
    let (a, b) = (
        here.socket("10.77.0.1:1000"),
        there.socket("10.77.0.2:2000"),
    );
    comes_through(&a, &b, "10.77.0.2:2000", b"IPv4");
    let missing = |show: &Show| show.network.missing;
    gateways[0].wait_until("it is shown", |show| missing(show) == 1);
    until("it is said", || {
        let log = std::fs::read_to_string(folder.path("log1")).unwrap();
        log.contains("IPv6 is disabled on the tunnel's device")
    });
    sysctl(&here, "net.ipv6.conf.all.disable_ipv6=0");
    gateways[0].wait_until("nothing is missing", |show| missing(show) == 0);
    let (a, b) = (
        here.socket("[fd77::1]:1000"),
        there.socket("[fd77::2]:2000"),
    );
    comes_through(&a, &b, "[fd77::2]:2000", b"IPv6");
}

/// `--cap-drop ALL --cap-add NET_ADMIN`, as is the advice for containers.
pub fn a_missing_capability_is_named() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let text = config(&folder, 1, STRICT);
    let nobody = text.replace("user = \"root\"\n", "");
    let bounded = |kept: &str| {
        let mut command = with(&["--bounding-set", kept, "--inh-caps=-all"]);
        command
            .args(["up", "--cleartext"])
            .arg(folder.path("1.toml"));
        command
    };
    folder.write("1.toml", &nobody);
    for (kept, named) in [
        ("-all,+net_admin", "CAP_SETUID and CAP_SETGID"),
        ("-all,+net_admin,+setuid", "CAP_SETGID"),
    ] {
        let (code, error) = ended(&here, bounded(kept));
        assert_eq!(code, Some(2), "{error}");
        for words in ["cannot become the user nobody", named, "user = \"root\""] {
            assert!(error.contains(words), "{words}: {error}");
        }
    }
    let (code, error) = ended(&here, bounded("-all,+setuid,+setgid"));
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.contains("run as root or with CAP_NET_ADMIN"),
        "{error}"
    );
    // The cure.
    folder.write("1.toml", &text);
    let gateway = Gateway::started(&here, bounded("-all,+net_admin"), &folder.path("control1"));
    assert_eq!(gateway.show().network.missing, 0);
}

/// An image with nothing in it but this program.
pub fn without_a_list_of_users_it_becomes_nobody_all_the_same() {
    let (here, _there) = cabled();
    let folder = Folder::new();
    let nobody = config(&folder, 1, STRICT).replace("user = \"root\"\n", "");
    let hidden = || {
        let mut command = Command::new("unshare");
        command.args([
            "-m",
            "bash",
            "-c",
            "mount -t tmpfs none /etc && exec setpriv --pdeathsig KILL \"$@\"",
            "hidden",
            env!("CARGO_BIN_EXE_linkweir-gateway"),
            "up",
            "--cleartext",
        ]);
        command.arg(folder.path("1.toml"));
        command
    };
    for (user, id) in [("", "65534"), ("user = \"4711\"\n", "4711")] {
        folder.write(
            "1.toml",
            &nobody.replace("device =", &format!("{user}device =")),
        );
        let gateway = Gateway::started(&here, hidden(), &folder.path("control1"));
        let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
        let ids = format!("Uid:\t{id}\t{id}\t{id}\t{id}\nGid:\t{id}\t{id}\t{id}\t{id}\n");
        assert!(status.contains(&ids), "{status}");
    }
    folder.write(
        "1.toml",
        &nobody.replace("device =", "user = \"gateway\"\ndevice ="),
    );
    let (code, error) = ended(&here, hidden());
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("there is no user gateway"), "{error}");
}
