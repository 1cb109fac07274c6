// SPDX-License-Identifier: BSD-3-Clause
//! Network namespaces, each held by a thread, and gateways in them. Everything goes with the test, even if it is killed.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::{Duration, Instant};

use linkweir_gateway::show::control::{self, Request, Response};
use linkweir_gateway::show::figures::Show;
use nix::sched::{unshare, CloneFlags};
use nix::sys::signal::{kill, Signal};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::ClockId;
use nix::unistd::{geteuid, gettid, Pid};

use crate::PATIENCE;

/// What a socket of a test may hold, bytes.
const RECEIVE_BYTES: usize = 4 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// What these tests need and this machine lacks; empty if they can run.
pub fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    if !geteuid().is_root() {
        missing.push("root".to_string());
    } else if let Err(error) = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET))
        .join()
        .expect("the thread ends")
    {
        missing.push(format!("network namespaces (unshare: {error})"));
    }
    if let Err(error) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
    {
        missing.push(format!("/dev/net/tun ({error})"));
    }
    for (program, package) in [("ip", "iproute2"), ("setpriv", "util-linux")] {
        let started = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if let Err(error) = started {
            missing.push(format!("{program} of {package} ({error})"));
        }
    }
    missing
}

/// Whether a program is in the path of programs.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A network namespace. Its thread holds it; whatever the thread starts dies with it.
pub struct Namespace {
    jobs: Sender<Job>,
    tid: i32,
}

impl Namespace {
    pub fn new() -> Namespace {
        let (jobs, todo) = channel::<Job>();
        let (sender, tid) = channel();
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace can be made");
            sender.send(gettid().as_raw()).unwrap();
            for job in todo {
                job();
            }
        });
        let namespace = Namespace {
            jobs,
            tid: tid.recv().expect("the namespace was made"),
        };
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace
    }

    /// Runs a job inside.
    pub fn inside<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = Box::new(move || drop(done.send(job())));
        self.jobs.send(job).expect("the namespace lives");
        result.recv().expect("the job was done")
    }

    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments);
        self.inside(move || command.output().expect("the program is installed"))
    }

    pub fn ip(&self, arguments: &[&str]) {
        let output = self.run("ip", arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {arguments:?}: {errors}");
    }

    /// A socket inside, whose receptions end after [`PATIENCE`].
    pub fn socket(&self, address: &str) -> Socket {
        let address: SocketAddr = address.parse().unwrap();
        let begun = Instant::now();
        let socket = self.inside(move || loop {
            match UdpSocket::bind(address) {
                // The kernel takes a moment to find that no other host has an IPv6 address. A process that another test
                // starts holds a copy of every socket, closed ones too, until it executes its program.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse
                    ) && begun.elapsed() < PATIENCE =>
                {
                    thread::sleep(Duration::from_millis(5));
                }
                bound => return bound.unwrap(),
            }
        });
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        // The buffer is large, so that packets are not lost here while the test does not run.
        setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES).unwrap();
        Socket(socket)
    }
}

impl Namespace {
    /// A cable from this device to the device `out` of another namespace.
    pub fn cable(&self, device: &str, other: &Namespace) {
        self.cable_named(device, other, "out");
    }

    /// A cable from this device to this device of another namespace.
    pub fn cable_named(&self, device: &str, other: &Namespace, there: &str) {
        let tid = other.tid.to_string();
        self.ip(&[
            "link", "add", device, "type", "veth", "peer", "name", there, "netns", &tid,
        ]);
    }

    /// Path of the namespace.
    pub fn path(&self) -> String {
        format!("/proc/{}/task/{}/ns/net", std::process::id(), self.tid)
    }
}

/// An emulated link between two namespaces.
pub struct Emulated {
    child: Child,
    pub here: Namespace,
    pub there: Namespace,
    _folder: Folder,
}

impl Emulated {
    /// A link with what `a_to_b` says there and `b_to_a` back; its ends have the addresses of a cable's.
    pub fn new(a_to_b: &str, b_to_a: &str) -> Emulated {
        let (here, there) = (Namespace::new(), Namespace::new());
        let folder = Folder::new();
        let end = |name: &str, namespace: &Namespace, last: u8| {
            format!(
                "[{name}]\ndevice = \"out\"\nnetns = \"{}\"\naddress = [\"192.0.2.{last}/24\", \"2001:db8::{last}/64\"]\n",
                namespace.path()
            )
        };
        let text = format!(
            "{}{}[a_to_b]\n{a_to_b}\n[b_to_a]\n{b_to_a}\n",
            end("a", &here, 1),
            end("b", &there, 2)
        );
        let file = folder.write("link.toml", &text);
        let mut command = program();
        command
            .args(["emulate", "--json"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child =
            here.inside(move || command.spawn().expect("setpriv of util-linux is installed"));
        let begun = Instant::now();
        while !there
            .run("ip", &["link", "show", "up", "dev", "out"])
            .stdout
            .starts_with(b"2:")
        {
            assert_eq!(child.try_wait().unwrap(), None, "the emulator ended");
            assert!(begun.elapsed() < PATIENCE, "the emulator makes no device");
            thread::sleep(Duration::from_millis(5));
        }
        Emulated {
            child,
            here,
            there,
            _folder: folder,
        }
    }

    /// Stops it and reads its report.
    pub fn report(mut self) -> serde_json::Value {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        let mut text = String::new();
        let mut output = self.child.stdout.take().unwrap();
        output.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A UDP socket whose receptions continue when a signal interrupts them.
pub struct Socket(UdpSocket);

impl Socket {
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            match self.0.recv_from(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                received => return received,
            }
        }
    }

    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv_from(buffer).map(|(count, _)| count)
    }
}

impl Deref for Socket {
    type Target = UdpSocket;

    fn deref(&self) -> &UdpSocket {
        &self.0
    }
}

/// Two namespaces with a cable between their devices `out`.
pub fn cabled() -> (Namespace, Namespace) {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.cable("out", &there);
    for (namespace, last) in [(&here, 1), (&there, 2)] {
        namespace.ip(&[
            "address",
            "add",
            &format!("192.0.2.{last}/24"),
            "dev",
            "out",
        ]);
        namespace.ip(&[
            "address",
            "add",
            &format!("2001:db8::{last}/64"),
            "dev",
            "out",
            "nodad",
        ]);
        namespace.ip(&["link", "set", "out", "up"]);
    }
    (here, there)
}

/// Files of one test, gone with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "linkweir-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running gateway.
pub struct Gateway {
    child: Child,
    control: PathBuf,
}

impl Gateway {
    /// Starts one and waits until it answers.
    pub fn start(namespace: &Namespace, config: &Path, control: &Path) -> Gateway {
        let mut command = program();
        command.arg("up").arg(config).arg("--cleartext");
        Gateway::started(namespace, command, control)
    }

    /// The same with a command of one's own.
    pub fn started(namespace: &Namespace, command: Command, control: &Path) -> Gateway {
        Gateway::logged(namespace, command, control).0
    }

    /// Starts the one whose configuration has this last number by this command; its log goes into a file.
    pub fn with_log(
        namespace: &Namespace,
        folder: &Folder,
        last: usize,
        mut command: Command,
        log: &Path,
    ) -> Gateway {
        command
            .args(["up", "--cleartext"])
            .arg(folder.path(&format!("{last}.toml")))
            .stderr(fs::File::create(log).unwrap());
        Gateway::started(namespace, command, &folder.path(&format!("control{last}")))
    }

    /// As [`Gateway::started`], and its standard error if that is a pipe.
    pub fn logged(
        namespace: &Namespace,
        mut command: Command,
        control: &Path,
    ) -> (Gateway, Option<ChildStderr>) {
        command.stdin(Stdio::null());
        let mut child =
            namespace.inside(move || command.spawn().expect("setpriv of util-linux is installed"));
        let error = child.stderr.take();
        let mut gateway = Gateway {
            child,
            control: control.to_path_buf(),
        };
        let begun = Instant::now();
        while control::ask(control, &Request::Show).is_err() {
            if let Some(status) = gateway.child.try_wait().unwrap() {
                panic!("the gateway ended: {status}");
            }
            assert!(begun.elapsed() < PATIENCE, "the gateway does not answer");
            thread::sleep(Duration::from_millis(5));
        }
        (gateway, error)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the gateway does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn ask(&self, request: &Request) -> Response {
        control::ask(&self.control, request).unwrap()
    }

    pub fn show(&self) -> Show {
        match self.ask(&Request::Show) {
            Response::Show(show) => *show,
            other => panic!("{other:?}"),
        }
    }

    /// Sets the capacity towards every peer, bit/s.
    pub fn set_capacity(&self, capacity_bps: u64) {
        let request = Request::SetCapacity {
            peer: None,
            path: None,
            capacity_bps,
        };
        assert_eq!(self.ask(&request), Response::Done);
    }

    /// Waits until what it shows fulfils a condition.
    pub fn wait_until(&self, what: &str, fulfilled: impl Fn(&Show) -> bool) -> Show {
        let begun = Instant::now();
        loop {
            let show = self.show();
            if fulfilled(&show) {
                return show;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}; {show:?}");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The configuration `text` of an end, with the key that `keygen` made, for a peer with this public key.
pub fn sealed(text: &str, last: u8, public: &str) -> String {
    text.replace(
        "mode = \"cleartext\"",
        &format!("mode = \"wireguard\"\nprivate_key_file = \"key{last}\""),
    )
    .replace(
        "allowed_ips",
        &format!("public_key = \"{public}\"\nallowed_ips"),
    )
}

/// The program, which ends with the thread that starts it.
pub fn program() -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        "--pdeathsig",
        "KILL",
        env!("CARGO_BIN_EXE_linkweir-gateway"),
    ]);
    command
}

/// Makes the key of an end; returns the public one.
pub fn keygen(folder: &Folder, last: u8) -> String {
    let file = folder.path(&format!("key{last}"));
    let output = Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"))
        .arg("keygen")
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// A configuration of the end with this last number, towards the other.
pub fn config(folder: &Folder, last: u8, scheduler: &str) -> String {
    let other = 3 - last;
    format!(
        r#"[gateway]
device = "lw0"
address = ["10.77.0.{last}/24", "fd77::{last}/64"]
listen = "192.0.2.{last}:51820"
mode = "cleartext"
user = "root"
control = "{}"
[link]
rate = "1Gbit"
{scheduler}
[[peer]]
name = "other"
endpoint = "192.0.2.{other}:51820"
allowed_ips = ["10.77.0.{other}/32", "fd77::{other}/128", "10.78.{other}.0/24"]
"#,
        folder.path(&format!("control{last}")).display()
    )
}

/// Voice before the rest; what waits in an outage stays.
pub const STRICT: &str = r#"[scheduler]
policy = "strict"
[[class]]
name = "ef"
match = [{ dscp = "EF" }, { port = 5060 }]
limit = "1000p"
max_age = "3600s"
full = "tail"
[[class]]
name = "rest"
limit = "1000p"
"#;

/// Both ends of a tunnel.
pub struct Tunnel {
    // Gateways end before their namespaces, namespaces before the folder.
    pub gateways: [Gateway; 2],
    pub here: Namespace,
    pub there: Namespace,
    pub folder: Folder,
}

impl Tunnel {
    pub fn new(scheduler: &str) -> Tunnel {
        Tunnel::changed(scheduler, |text| text)
    }

    /// A tunnel whose configurations are changed before it starts.
    pub fn changed(scheduler: &str, change: impl Fn(String) -> String) -> Tunnel {
        Tunnel::between(cabled(), Folder::new(), scheduler, |text, _| change(text))
    }

    /// The same; `change` also learns which end the configuration is for.
    pub fn clear(scheduler: &str, change: impl Fn(String, u8) -> String) -> Tunnel {
        Tunnel::clear_on(cabled(), scheduler, change)
    }

    /// The same between two namespaces that the caller has set up.
    pub fn clear_on(
        ends: (Namespace, Namespace),
        scheduler: &str,
        change: impl Fn(String, u8) -> String,
    ) -> Tunnel {
        Tunnel::between(ends, Folder::new(), scheduler, change)
    }

    /// A tunnel with the WireGuard protocol; `change` also learns which end the configuration is for.
    pub fn sealed(scheduler: &str, change: impl Fn(String, u8) -> String) -> Tunnel {
        Tunnel::sealed_on(cabled(), scheduler, change)
    }

    /// The same between two namespaces that the caller has set up.
    pub fn sealed_on(
        ends: (Namespace, Namespace),
        scheduler: &str,
        change: impl Fn(String, u8) -> String,
    ) -> Tunnel {
        let folder = Folder::new();
        let publics = [1, 2].map(|last| keygen(&folder, last));
        Tunnel::between(ends, folder, scheduler, |text, last| {
            let public = &publics[usize::from(2 - last)];
            change(sealed(&text, last, public), last)
        })
    }

    fn between(
        (here, there): (Namespace, Namespace),
        folder: Folder,
        scheduler: &str,
        change: impl Fn(String, u8) -> String,
    ) -> Tunnel {
        let gateways = [(&here, 1), (&there, 2)].map(|(namespace, last)| {
            let text = change(config(&folder, last, scheduler), last);
            let file = folder.write(&format!("{last}.toml"), &text);
            Gateway::start(namespace, &file, &folder.path(&format!("control{last}")))
        });
        Tunnel {
            gateways,
            here,
            there,
            folder,
        }
    }

    /// Ends the end with this last number by a signal, and starts it again by this command, whose log goes into a file.
    pub fn restart_logged(&mut self, last: usize, signal: Signal, command: Command) -> PathBuf {
        let log = self.folder.path("log");
        self.gateways[last - 1].signal(signal);
        self.gateways[last - 1].ended();
        let namespace = if last == 1 { &self.here } else { &self.there };
        self.gateways[last - 1] = Gateway::with_log(namespace, &self.folder, last, command, &log);
        log
    }

    /// Starts the end with this last number again.
    pub fn restart(&mut self, last: usize) {
        let namespace = if last == 1 { &self.here } else { &self.there };
        let file = self.folder.path(&format!("{last}.toml"));
        let control = self.folder.path(&format!("control{last}"));
        self.gateways[last - 1] = Gateway::start(namespace, &file, &control);
    }
}

/// Processor time and resident memory of a process: seconds, kB.
pub fn cost(pid: u32) -> (f64, u64) {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid as i32)).unwrap();
    let time = clock.now().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kb = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    (time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9, kb)
}

/// Head and body of what a server says, once it is there.
pub fn http(namespace: &Namespace, address: &'static str, request: &str) -> (String, String) {
    let begun = Instant::now();
    let mut stream = namespace.inside(move || loop {
        match TcpStream::connect(address) {
            Err(_) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
            stream => return stream.unwrap(),
        }
    });
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_string(), body.to_string())
}

/// A gateway with nothing to do sleeps: one that does not use up a processor as far as it can have it.
pub fn rests(gateway: &Gateway) {
    let (before_s, _) = cost(gateway.pid());
    thread::sleep(Duration::from_millis(500));
    let (after_s, _) = cost(gateway.pid());
    assert!(
        after_s - before_s < 0.1,
        "{} s of 0.5 s",
        after_s - before_s
    );
}

/// A number from the environment, for the long forms of tests.
pub fn environment(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} = {text}: must be a whole number")),
        Err(_) => otherwise,
    }
}

/// Gives a socket's packets this field.
pub fn set_tos(socket: &UdpSocket, tos: u8) {
    if socket.local_addr().unwrap().is_ipv4() {
        setsockopt(socket, sockopt::Ipv4Tos, &i32::from(tos)).unwrap();
    } else {
        setsockopt(socket, sockopt::Ipv6TClass, &i32::from(tos)).unwrap();
    }
}

/// The published scheduler, and what it promises the class in the middle.
pub fn pss(promise: &str) -> String {
    format!(
        r#"[scheduler]
policy = "pss"
[[class]]
name = "ef"
match = [{{ dscp = "EF" }}]
level = 0
max_age = "3600s"
full = "tail"
[[class]]
name = "af"
match = [{{ port = 3000 }}]
level = 1
low_level = 3
{promise}
limit = "900p"
[[class]]
name = "rest"
level = 2
limit = "900p"
"#
    )
}

/// So little that credit falls slowly.
pub const SLOW: &str = "rate = \"10kbit\"\nburst = \"100p\"";
