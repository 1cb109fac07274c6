// SPDX-License-Identifier: BSD-3-Clause
//! The web page: which clients may read it, and what a browser shows while a tunnel carries traffic.
//!
//! The browser is controlled by its own protocol over two pipes. With `LINKWEIR_SCREENSHOTS=FOLDER` its screenshots are
//! kept there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde_json::{json, Value};

use crate::life::comes_through;
use crate::place::{http, program, pss, Namespace, Tunnel, SLOW, STRICT};

const ADDRESS: &str = "127.0.0.1:9706";
/// A browser on a busy machine needs longer than a gateway.
const BROWSER_PATIENCE: Duration = Duration::from_secs(120);

/// What is drawn in the chart.
const CHART: &str = "document.querySelector('#chart canvas').toDataURL()";
/// Least contrast of a text with what is behind it (WCAG 2.1, contrast ratio).
const CONTRAST: &str = "(() => {
    const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (rgb) => {
        const [r, g, b] = rgb.map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const over = ([r, g, b, a = 1], under) => [r, g, b].map((c, at) => a * c + (1 - a) * under[at]);
    const ground = (element) => {
        const own = channels(getComputedStyle(element).backgroundColor);
        const { parentElement } = element;
        return own[3] === 0 && parentElement ? ground(parentElement) : over(own, parentElement ? ground(parentElement) : [255, 255, 255]);
    };
    const ratios = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('script, option')) continue;
        const style = getComputedStyle(element);
        const [r, g, b] = channels(style.color);
        const behind = ground(element);
        const ink = over([r, g, b, Number(style.opacity)], behind);
        const [bright, dark] = [light(ink), light(behind)].sort((one, two) => two - one);
        ratios.push((bright + 0.05) / (dark + 0.05));
    }
    return ratios.length < 20 ? 0 : Math.min(...ratios);
})()";

/// The process that serves the page.
struct Server(Child);

impl Server {
    fn start(tunnel: &Tunnel) -> Server {
        let mut command = program();
        command
            .args(["page", "--control"])
            .arg(tunnel.folder.path("control1"));
        let server = Server(tunnel.here.inside(move || command.spawn().unwrap()));
        get(&tunnel.here, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Head and body of the answer.
fn get(namespace: &Namespace, request: &str) -> (String, String) {
    http(namespace, ADDRESS, request)
}

pub fn it_is_for_this_host_alone() {
    let mut tunnel = Tunnel::new(STRICT);
    let _server = Server::start(&tunnel);
    let ask = |path: &str, host: &str| {
        get(
            &tunnel.here,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
    };
    let (head, body) = ask("/", "127.0.0.1:9706");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(body.contains("<title>Linkweir gateway</title>"), "{body}");
    for line in [
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Cross-Origin-Resource-Policy: same-origin",
    ] {
        assert!(head.contains(line), "{head}");
    }
    let (head, body) = ask("/show.json", "localhost:9706");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let show: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(show["device"], "lw0");
    // A name that another site made resolve to this host.
    for path in ["/", "/show.json"] {
        let (head, body) = ask(path, "evil.example:9706");
        assert!(head.starts_with("HTTP/1.1 421 "), "{head}");
        assert!(!body.contains("lw0"), "{body}");
    }
    let (head, _) = get(&tunnel.here, "GET /show.json HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 421 "), "{head}");
    let (head, _) = get(
        &tunnel.here,
        "POST /show.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    for path in ["/nothing", "/../page.js", "//page.js"] {
        let (head, _) = ask(path, "localhost");
        assert!(head.starts_with("HTTP/1.1 404 "), "{path}: {head}");
    }
    // A silent client delays no other.
    let silent: Vec<TcpStream> = (0..10)
        .map(|_| tunnel.here.inside(|| TcpStream::connect(ADDRESS).unwrap()))
        .collect();
    assert!(ask("/", "localhost").0.starts_with("HTTP/1.1 200 "));
    drop(silent);
    tunnel.gateways[0].signal(nix::sys::signal::Signal::SIGKILL);
    tunnel.gateways[0].ended();
    let (head, body) = get(
        &tunnel.here,
        "GET /show.json HTTP/1.1\r\nHost: [::1]\r\n\r\n",
    );
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    assert!(body.contains("no gateway runs there"), "{body}");

    let output = Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"))
        .args(["page", "--listen", "0.0.0.0:9706", "--control", "/nowhere"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// A browser without a screen.
struct Browser {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    /// All its messages that were no answers.
    events: Vec<Value>,
    profile: PathBuf,
}

impl Browser {
    fn start(namespace: &Namespace, profile: &Path) -> Browser {
        let mut command = Command::new("setpriv");
        // It speaks its protocol on descriptors 3 and 4.
        command
            .args(["--pdeathsig", "KILL", "sh", "-c"])
            .arg("exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1")
            .args(["sh", "--headless", "--no-sandbox", "--disable-gpu"])
            .args([
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .env("HOME", profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = namespace.inside(move || command.spawn().unwrap());
        let (questions, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut browser = Browser {
            child,
            questions,
            answers: BufReader::new(answers),
            session: None,
            last_id: 0,
            events: Vec::new(),
            profile: profile.to_path_buf(),
        };
        let made = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": made["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_string);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut question = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            question["sessionId"] = json!(session);
        }
        write!(self.questions, "{question}\0").unwrap();
        loop {
            let mut message = Vec::new();
            self.answers.read_until(0, &mut message).unwrap();
            assert_eq!(message.pop(), Some(0), "the browser ended");
            let message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// The value of an expression on the page.
    fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.ask("Runtime.evaluate", parameters);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    fn wait_until(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != true {
            if begun.elapsed() > BROWSER_PATIENCE {
                let page = self.value("document.body.innerText");
                panic!("never: {expression}; {page}; {:?}", self.events);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn press(&mut self, key: &str, code: &str, number: u32) {
        let text = if key.len() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            self.ask(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number,
                       "text": if kind == "keyDown" { text } else { "" }}),
            );
        }
    }

    /// Every text has the contrast that WCAG 2.1 requires of small text (1.4.3).
    fn readable(&mut self) {
        let least = self.value(CONTRAST).as_f64().unwrap();
        assert!(least >= 4.5, "a contrast of {least}");
    }

    /// A picture, as PNG, kept where the environment says.
    fn picture(&mut self, name: &str) -> Vec<u8> {
        let shot = self.ask("Page.captureScreenshot", json!({"format": "png"}));
        let png = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        if let Some(folder) = std::env::var_os("LINKWEIR_SCREENSHOTS") {
            fs::create_dir_all(&folder).unwrap();
            fs::write(Path::new(&folder).join(format!("{name}.png")), &png).unwrap();
        }
        png
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

/// A preference of the system for light or dark.
fn light(scheme: &str) -> Value {
    json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]})
}

/// Figures are there, and live ones.
fn check_figures(browser: &mut Browser) {
    let cell = |class: &str, at: usize| {
        format!("document.querySelector('tr[data-class=\"{class}\"]')?.cells[{at}].textContent")
    };
    browser.wait_until(&format!("/bit\\/s$/.test({})", cell("af", 3)));
    browser.wait_until(&format!("parseFloat({}) > 0", cell("af", 3)));
    browser.wait_until(&format!("parseFloat({}) > 0", cell("rest", 3)));
    assert_eq!(
        browser.value("document.getElementById('capacity').textContent"),
        "20.0 Mbit/s"
    );
    assert_eq!(
        browser.value("document.getElementById('device').textContent"),
        "lw0"
    );
    assert_eq!(
        browser.value("document.getElementById('endpoint').textContent"),
        "192.0.2.2:51820"
    );
    assert_eq!(browser.value(&cell("ef", 1)), "1", "the most urgent");
    assert_eq!(
        browser.value(&format!(
            "/^(1 \\(high\\)|3 \\(low\\))$/.test({})",
            cell("af", 2)
        )),
        true
    );
    assert_eq!(
        browser.value(&format!("/^[\\d.]+ (ns|µs|ms|s)$/.test({})", cell("af", 6))),
        true
    );
    assert_eq!(
        browser.value(&format!("/credit_bits -?\\d+/.test({})", cell("af", 9))),
        true
    );
    assert_eq!(
        browser.value("document.querySelectorAll('#chart canvas').length"),
        1
    );
    let drawn = browser.value(CHART);
    browser.wait_until(&format!("{CHART} !== {drawn}"));
    let uptime = "document.getElementById('about').textContent";
    let first = browser.value(uptime).to_string();
    browser.wait_until(&format!("{uptime} !== {first}"));
}

/// Dark and light: as the system is, and by key.
fn check_schemes(browser: &mut Browser) {
    let ground = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.value(ground), "rgb(251, 251, 250)");
    browser.readable();
    let bright = browser.picture("page-light");
    browser.ask("Emulation.setEmulatedMedia", light("dark"));
    browser.wait_until(&format!("{ground} === 'rgb(20, 23, 26)'"));
    browser.readable();
    let dark = browser.picture("page-dark");
    assert!(bright.starts_with(b"\x89PNG") && dark.starts_with(b"\x89PNG") && bright != dark);
    browser.press("t", "KeyT", 84);
    assert_eq!(browser.value(ground), "rgb(251, 251, 250)");
}

/// Every control by the keyboard.
fn check_keys(browser: &mut Browser) {
    let pressed = "document.getElementById('pause').getAttribute('aria-pressed')";
    browser.press("p", "KeyP", 80);
    assert_eq!(browser.value(pressed), "true");
    let reached: Vec<Value> = (0..4)
        .map(|_| {
            browser.press("Tab", "Tab", 9);
            browser.value("document.activeElement.id")
        })
        .collect();
    assert_eq!(reached, ["peer", "span", "pause", "theme"]);
    assert_eq!(
        browser.value("getComputedStyle(document.activeElement).outlineStyle"),
        "solid"
    );
    browser.value("document.getElementById('span').focus()");
    browser.press("ArrowUp", "ArrowUp", 38);
    assert_eq!(browser.value("document.activeElement.value"), "60");
    let first = "document.querySelector('.u-axis') && state.chart.scales.x.min";
    browser.wait_until(&format!("{first} === -60"));
    browser.value("document.getElementById('pause').focus()");
    browser.press(" ", "Space", 32);
    assert_eq!(browser.value(pressed), "false");
}

/// No other host was asked, and nothing went wrong.
fn check_requests(browser: &Browser) {
    let mut asked = 0;
    for event in &browser.events {
        match event["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str().unwrap();
                assert!(url.starts_with(&format!("http://{ADDRESS}/")), "{url}");
                asked += 1;
            }
            Some("Runtime.exceptionThrown") => panic!("{event}"),
            // Besides the answers 502 of a gateway that was gone, such as what the security policy refused.
            Some("Log.entryAdded") => {
                let text = event["params"]["entry"]["text"].as_str().unwrap();
                assert!(text.contains("502"), "{event}");
            }
            _ => {}
        }
    }
    assert!(asked > 6, "the page, its files and its figures: {asked}");
}

/// What reaches beyond the window, but for the table, which has a scroll bar of its own.
const BEYOND: &str = "[...document.querySelectorAll('body *')]
    .filter((element) => !element.closest('.wide table') && element.checkVisibility())
    .filter((element) => { const place = element.getBoundingClientRect(); return place.right > innerWidth + 0.5 || place.left < 0; })
    .map((element) => element.tagName + ' ' + element.id + ' ' + element.textContent.slice(0, 40))";
/// Texts of which a part is hidden.
const CUT: &str = "[...document.querySelectorAll('h1, p, dt, dd, label, button, th, td')]
    .filter((element) => element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== 'visible')
    .map((element) => element.textContent)";

/// Long names and addresses, at the width of a phone and of a desk.
pub fn it_fits_a_phone() {
    let long = "a-ship-with-a-name-that-is-as-long-as-names-of-ships-are-at-times";
    let tunnel = Tunnel::changed(&pss(SLOW), |text| {
        text.replace("\"other\"", &format!("\"{long}\""))
            .replace("\"af\"", "\"readings-of-machines-in-the-engine-room\"")
            .replace("192.0.2.1:", "[2001:db8:1111:2222:3333:4444:5555:6661]:")
            .replace("192.0.2.2:", "[2001:db8:1111:2222:3333:4444:5555:6662]:")
            .replace(
                "listen = \"[2001:db8:1111:2222:3333:4444:5555:6661]:",
                "listen = \"[::]:",
            )
            .replace(
                "listen = \"[2001:db8:1111:2222:3333:4444:5555:6662]:",
                "listen = \"[::]:",
            )
    });
    let _server = Server::start(&tunnel);
    let profile = tunnel.folder.path("profile");
    let mut browser = Browser::start(&tunnel.here, &profile);
    for (width, height) in [(390, 844), (1280, 800)] {
        browser.ask(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}),
        );
        browser.ask(
            "Page.navigate",
            json!({"url": format!("http://{ADDRESS}/")}),
        );
        browser.wait_until("document.querySelectorAll('#classes tr').length === 3");
        browser.wait_until("document.querySelector('#chart canvas') !== null");
        for scheme in ["light", "dark"] {
            browser.ask("Emulation.setEmulatedMedia", light(scheme));
            browser.picture(&format!("page-{width}-{scheme}"));
            assert_eq!(browser.value("innerWidth"), width);
            for beyond in [BEYOND, CUT] {
                assert_eq!(browser.value(beyond), json!([]), "{width} {scheme}");
            }
        }
    }
}

pub fn it_shows_live_figures_and_asks_no_other_host() {
    let tunnel = Tunnel::changed(&pss(SLOW), |text| {
        text.replace("rate = \"1Gbit\"", "rate = \"20Mbit\"")
    });
    let _server = Server::start(&tunnel);
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:3000"),
        tunnel.there.socket("10.77.0.2:2000"),
    );
    comes_through(&a, &b, "10.77.0.2:2000", b"at first");
    let over = Arc::new(AtomicBool::new(false));
    let traffic = {
        let over = Arc::clone(&over);
        let rest = tunnel.here.socket("10.77.0.1:4000");
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                for socket in [&a, &rest] {
                    let _ = socket.send_to(&[7; 1000], "10.77.0.2:2000");
                }
                thread::sleep(Duration::from_millis(2));
            }
        })
    };
    let mut browser = Browser::start(&tunnel.here, &tunnel.folder.path("profile"));
    let size = json!({"width": 1200, "height": 800, "deviceScaleFactor": 1, "mobile": false});
    browser.ask("Emulation.setDeviceMetricsOverride", size);
    browser.ask("Emulation.setEmulatedMedia", light("light"));
    browser.ask(
        "Page.navigate",
        json!({"url": format!("http://{ADDRESS}/")}),
    );

    check_figures(&mut browser);
    check_schemes(&mut browser);
    check_keys(&mut browser);

    // The gateway is killed and started again.
    over.store(true, Ordering::Relaxed);
    traffic.join().unwrap();
    let mut tunnel = tunnel;
    tunnel.gateways[0].signal(nix::sys::signal::Signal::SIGKILL);
    tunnel.gateways[0].ended();
    browser.wait_until("document.getElementById('state').textContent.startsWith('No figures: ')");
    tunnel.restart(1);
    browser.wait_until("document.getElementById('state').textContent === ''");

    check_requests(&browser);
}
