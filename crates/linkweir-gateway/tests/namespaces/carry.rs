// SPDX-License-Identifier: BSD-3-Clause
//! What is carried, in which order and how fast.

use std::fs;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use linkweir_gateway::linux::tunnel_socket::TunnelSocket;
use linkweir_gateway::show::figures::Show;
use linkweir_plane::bytes::outbox::Source;
use linkweir_plane::feedback::Message;
use nix::sys::signal::Signal;

use crate::place::{
    cabled, config, pss, set_tos, Folder, Gateway, Namespace, Socket, Tunnel, STRICT,
};

/// Two classes by port, in shares of 3 to 1.
const DRR: &str = r#"[scheduler]
policy = "drr"
[[class]]
name = "three"
match = [{ port = 3000 }]
quantum = "4500B"
limit = "400p"
[[class]]
name = "one"
quantum = "1500B"
limit = "400p"
"#;

fn number(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(datagram[..8].try_into().unwrap())
}

/// Sends numbered datagrams of `bytes`.
fn send(socket: &UdpSocket, to: &str, numbers: std::ops::Range<u64>, bytes: usize) {
    let mut datagram = vec![0; bytes];
    for number in numbers {
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&datagram, to).unwrap();
    }
}

pub fn both_versions_of_ip_go_both_ways() {
    let tunnel = Tunnel::new(STRICT);
    for (one, two) in [("10.77.0.1", "10.77.0.2"), ("[fd77::1]", "[fd77::2]")] {
        let a = tunnel.here.socket(&format!("{one}:1000"));
        let b = tunnel.there.socket(&format!("{two}:2000"));
        let mut buffer = [0; 2000];
        for bytes in [8, 1000, 1400] {
            send(&a, &format!("{two}:2000"), 7..8, bytes);
            let (count, from) = b.recv_from(&mut buffer).unwrap();
            assert_eq!((count, number(&buffer)), (bytes, 7));
            b.send_to(&buffer[..count], from).unwrap();
            assert_eq!(a.recv(&mut buffer).unwrap(), bytes);
        }
    }
    let show = tunnel.gateways[1].show();
    let peer = &show.peers[0];
    // The kernel's own neighbour messages may come on top.
    assert!(peer.received_pkts >= 6, "{show:?}");
    assert_eq!(peer.endpoint, "192.0.2.1:51820".parse().ok());
}

pub fn the_tunnel_itself_may_be_ipv6() {
    let tunnel = Tunnel::changed(STRICT, |text| {
        text.replace("\"192.0.2.1:", "\"[2001:db8::1]:")
            .replace("\"192.0.2.2:", "\"[2001:db8::2]:")
    });
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    send(&a, "10.77.0.2:2000", 3..4, 1424 - 28);
    let mut buffer = [0; 2000];
    assert_eq!(
        b.recv(&mut buffer).unwrap(),
        1424 - 28,
        "1500 less 48 outside and 28 inside"
    );
}

pub fn the_urgent_class_goes_first_and_each_class_keeps_its_order() {
    let tunnel = Tunnel::new(STRICT);
    let gateway = &tunnel.gateways[0];
    gateway.set_capacity(0);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    send(&a, "10.77.0.2:2000", 0..100, 500);
    set_tos(&a, 46 << 2);
    send(&a, "10.77.0.2:2000", 100..200, 500);
    gateway.wait_until("all wait", |show| {
        let classes = &show.peers[0].classes;
        classes[0].backlog_pkts == 100 && classes[1].backlog_pkts >= 100
    });
    gateway.set_capacity(50_000_000);
    let mut buffer = [0; 2000];
    let received: Vec<u64> = (0..200)
        .map(|_| {
            b.recv(&mut buffer).unwrap();
            number(&buffer)
        })
        .collect();
    let expected: Vec<u64> = (100..200).chain(0..100).collect();
    assert_eq!(received, expected);
}

/// Fills both classes, the first of port 3000, in an outage that has begun.
fn fill(tunnel: &Tunnel, classes: [usize; 2], each: u64) {
    let gateway = &tunnel.gateways[0];
    for port in [3000, 4000] {
        let a = tunnel.here.socket(&format!("10.77.0.1:{port}"));
        // In portions: the device's own queue holds 500.
        for first in (0..each).step_by(100) {
            send(&a, "10.77.0.2:2000", first..first + 100, 1400);
            let at = classes[usize::from(port == 4000)];
            gateway.wait_until("the portion waits", |show| {
                u64::from(show.peers[0].classes[at].backlog_pkts) >= first + 100
            });
        }
    }
}

/// Fills both classes in an outage, ends it, and counts the packets of each until one class is nearly empty.
fn shares(
    tunnel: &Tunnel,
    classes: [usize; 2],
    each: u64,
    counted: usize,
    capacity_bps: u64,
) -> [u64; 2] {
    let gateway = &tunnel.gateways[0];
    gateway.set_capacity(0);
    let b = tunnel.there.socket("10.77.0.2:2000");
    fill(tunnel, classes, each);
    gateway.set_capacity(capacity_bps);
    let mut received = [0, 0];
    let mut buffer = [0; 2000];
    for _ in 0..counted {
        let (_, from) = b.recv_from(&mut buffer).unwrap();
        received[usize::from(from.port() == 4000)] += 1;
    }
    received
}

pub fn backlogged_classes_share_by_their_quanta() {
    let tunnel = Tunnel::new(DRR);
    let [three, one] = shares(&tunnel, [0, 1], 400, 400, 20_000_000);
    // A round lets leave 4500 and 1500 bytes, so 12 packets of 1428 + 28 bytes are within a round of 9 to 3.
    assert!((297..=303).contains(&three), "{three} to {one}");
}

pub fn a_reserved_rate_is_kept() {
    // A quarter of the link for the class in the middle.
    let tunnel = Tunnel::new(&pss("rate = \"5Mbit\""));
    let [af, rest] = shares(&tunnel, [1, 2], 900, 1000, 20_000_000);
    // 5 of 20 Mbit/s. The rate is one of time: where the machine stops for a while, the share is larger.
    assert!(af >= 230, "{af} to {rest}");
}

/// The packets of each class among the next 500, which keep their order.
fn next_500(b: &Socket, last: &mut [Option<u64>; 2]) -> [u64; 2] {
    let mut received = [0, 0];
    let mut buffer = [0; 2000];
    for _ in 0..500 {
        let (_, from) = b.recv_from(&mut buffer).unwrap();
        let class = usize::from(from.port() == 4000);
        let number = number(&buffer);
        assert!(last[class].is_none_or(|last| last < number), "reordered");
        last[class] = Some(number);
        received[class] += 1;
    }
    received
}

/// A reload that raises a rate or a memory makes no debt, and one that lowers them none that the class has to pay.
pub fn a_reload_gives_a_class_its_new_rate_at_once() {
    // At 10 kbit/s the class is owed next to nothing while the packets arrive.
    let tunnel = Tunnel::new(&pss("rate = \"10kbit\"\nmemory = \"5s\""));
    let gateway = &tunnel.gateways[0];
    let file = tunnel.folder.path("1.toml");
    let reload = |old: &str, new: &str, key: &str, value: u64| {
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(old, new)).unwrap();
        gateway.signal(Signal::SIGHUP);
        gateway.wait_until("the new value", |show| {
            show.peers[0].classes[1].parameters[key] == value
        });
    };
    let b = tunnel.there.socket("10.77.0.2:2000");
    gateway.set_capacity(0);
    fill(&tunnel, [1, 2], 900);
    let begun = Instant::now();
    // The rate is one of time: where the machine stops, the link carries less in it, and the share is larger. So the most that
    // the class may get follows from the time since it has the rate: packets of 1456 bytes, and 25 for what it was owed.
    let most = || 5e6 * begun.elapsed().as_secs_f64() / (1456.0 * 8.0) + 25.0;
    reload("10kbit", "5Mbit", "rate_bps", 5_000_000);
    gateway.set_capacity(20_000_000);
    let mut last = [None, None];
    // 5 of 20 Mbit/s are 125 of 500 packets.
    let [first, rest] = next_500(&b, &mut last);
    let allowed = most();
    assert!(
        first >= 110 && first as f64 <= allowed,
        "a rate raised: {first} to {rest}, at most {allowed}"
    );
    reload("\"5s\"", "\"1s\"", "memory_ns", 1_000_000_000);
    let [second, rest] = next_500(&b, &mut last);
    let allowed = most();
    assert!(
        second >= 110 && (first + second) as f64 <= allowed,
        "a memory lowered: {second} to {rest} after {first}, at most {allowed} together"
    );
    let classes = &gateway.show().peers[0].classes;
    assert!(classes.iter().all(|class| class.dropped_limit_pkts == 0));
}

pub fn no_more_leaves_than_the_capacity() {
    let tunnel = Tunnel::new(STRICT);
    let gateway = &tunnel.gateways[0];
    gateway.set_capacity(0);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    send(&a, "10.77.0.2:2000", 0..300, 1000);
    gateway.wait_until("all wait", |show| {
        show.peers[0].classes[1].backlog_pkts >= 300
    });
    let begun = Instant::now();
    gateway.set_capacity(10_000_000);
    let mut buffer = [0; 2000];
    let mut number = 0;
    // A stalled machine may lose packets between the gateways, so the last ones are not waited for.
    while number < 250 {
        b.recv(&mut buffer).unwrap();
        let took_s = begun.elapsed().as_secs_f64();
        number = u64::from_be_bytes(buffer[..8].try_into().unwrap());
        // 1028 bytes inside and 28 outside; a packet goes when those before it are through, and 1 ms and 1 % may be made
        // good.
        let least_s = 0.99 * (number as f64 * 1056.0 * 8.0) / 10e6 - 0.001;
        assert!(
            took_s >= least_s,
            "packet {number}: {took_s} s, and {least_s} s are the least"
        );
    }
}

pub fn fragments_follow_their_first() {
    let tunnel = Tunnel::new(STRICT);
    let a = tunnel.here.socket("10.77.0.1:5060");
    let b = tunnel.there.socket("10.77.0.2:2000");
    send(&a, "10.77.0.2:2000", 5..6, 4000);
    let mut buffer = [0; 5000];
    assert_eq!(b.recv(&mut buffer).unwrap(), 4000);
    let show = tunnel.gateways[0].show();
    // 4008 bytes of UDP in fragments of 1448 bytes.
    assert_eq!(show.peers[0].classes[0].sent_pkts, 3, "{show:?}");
}

pub fn tcp_uses_segments_that_fit() {
    use nix::sys::socket::{getsockopt, sockopt};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    // The ends of the connection assume an MTU of 1500 bytes, as hosts behind a gateway do.
    let tunnel = Tunnel::new(STRICT);
    for end in [&tunnel.here, &tunnel.there] {
        end.ip(&[
            "route",
            "change",
            "10.77.0.0/24",
            "dev",
            "lw0",
            "advmss",
            "1460",
        ]);
    }
    let listener = tunnel
        .there
        .inside(|| TcpListener::bind("10.77.0.2:80").unwrap());
    let sender = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[7; 100_000]).unwrap();
        getsockopt(&stream, sockopt::TcpMaxSeg).unwrap()
    });
    let mut stream = tunnel
        .here
        .inside(|| TcpStream::connect("10.77.0.2:80").unwrap());
    let mut received = Vec::new();
    stream.set_read_timeout(Some(crate::PATIENCE)).unwrap();
    stream.read_to_end(&mut received).unwrap();
    assert_eq!(received, vec![7; 100_000]);
    // 1472 of the tunnel less 40, and the kernel less 12 for its timestamps.
    assert!(sender.join().unwrap() <= 1432);
}

/// Packets that the kernel has given to the device of a namespace; a super-packet counts once.
fn handed_out(namespace: &Namespace) -> u64 {
    let table = namespace.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let row = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("lw0:"));
    // Eight columns of what it received, then bytes and packets of what it sent.
    let packets = row.and_then(|row| row.split_whitespace().nth(9)?.parse().ok());
    packets.expect("the device is there")
}

/// Bytes that show where they belong.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u64)
        .map(|at| (((at * at) >> 9) ^ at) as u8)
        .collect()
}

/// A connection through a tunnel, from here to there.
pub fn connected(tunnel: &Tunnel, address: &'static str) -> [std::net::TcpStream; 2] {
    use std::net::{TcpListener, TcpStream};
    let begun = Instant::now();
    let listener = tunnel.there.inside(move || loop {
        match TcpListener::bind(address) {
            Ok(listener) => return listener,
            // The kernel takes a moment to find that no other host has an IPv6 address.
            Err(error) => assert!(begun.elapsed() < crate::PATIENCE, "{error}"),
        }
    });
    let accepted = std::thread::spawn(move || listener.accept().unwrap().0);
    let here = tunnel
        .here
        .inside(move || TcpStream::connect(address).unwrap());
    [here, accepted.join().unwrap()]
}

pub fn super_packets_carry_the_same_bytes() {
    use std::io::{Read, Write};
    const BYTES: usize = 3_000_000;
    // With the kernel's segmentation here, there, or nowhere; whole on the way through the queues, or cut: 64 kB take
    // 0.5 ms of 1 Gbit/s and 2.6 ms of 200 Mbit/s.
    let cases = [
        (true, [true, true], "1Gbit"),
        (false, [true, true], "1Gbit"),
        (true, [true, true], "200Mbit"),
        (false, [true, false], "200Mbit"),
        (false, [false, true], "1Gbit"),
    ];
    for (sealed, offload, rate) in cases {
        let scheduler = STRICT.replace("\"1000p\"", "\"4000p\"");
        let change = |text: String, last: u8| {
            let offload = offload[usize::from(last) - 1];
            text.replace("[link]", &format!("offload = {offload}\n[link]"))
                .replace("\"1Gbit\"", &format!("\"{rate}\""))
        };
        let tunnel = if sealed {
            Tunnel::sealed(&scheduler, change)
        } else {
            Tunnel::clear(&scheduler, change)
        };
        for address in ["10.77.0.2:80", "[fd77::2]:80"] {
            let before = [handed_out(&tunnel.here), handed_out(&tunnel.there)];
            let sent_before: u64 = sent_pkts(&tunnel.gateways[0]);
            let ends = connected(&tunnel, address);
            let mut sends = Vec::new();
            for stream in &ends {
                let mut stream = stream.try_clone().unwrap();
                sends.push(std::thread::spawn(move || {
                    stream.write_all(&pattern(BYTES)).unwrap();
                    stream.shutdown(std::net::Shutdown::Write).unwrap();
                }));
            }
            for mut stream in ends {
                let mut received = Vec::new();
                stream.set_read_timeout(Some(crate::PATIENCE)).unwrap();
                stream.read_to_end(&mut received).unwrap();
                assert!(
                    received == pattern(BYTES),
                    "{sealed}, {offload:?}, {rate}, {address}"
                );
            }
            sends.into_iter().for_each(|send| send.join().unwrap());
            let handed = handed_out(&tunnel.here) - before[0];
            let sent = sent_pkts(&tunnel.gateways[0]) - sent_before;
            if offload[0] {
                assert!(
                    handed < sent / 2,
                    "{handed} super-packets for {sent} packets"
                );
            } else {
                assert!(handed >= sent, "{handed} packets handed out, {sent} sent");
            }
        }
    }
}

pub fn packets_wait_in_the_device_while_the_gateway_is_stalled() {
    // Four times what a device holds by itself.
    const PACKETS: u32 = 2000;
    let tunnel = Tunnel::changed(STRICT, |text| text.replace("\"1Gbit\"", "\"100Gbit\""));
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket("10.77.0.2:2000"),
    );
    tunnel.gateways[0].signal(Signal::SIGSTOP);
    for number in 0..PACKETS {
        a.send_to(&number.to_be_bytes(), "10.77.0.2:2000").unwrap();
    }
    tunnel.gateways[0].signal(Signal::SIGCONT);
    let mut buffer = [0; 2000];
    for number in 0..PACKETS {
        let count = b.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..count], number.to_be_bytes());
    }
}

/// Packets a gateway has sent to its only peer.
fn sent_pkts(gateway: &Gateway) -> u64 {
    let show = gateway.show();
    show.peers[0]
        .classes
        .iter()
        .map(|class| class.sent_pkts)
        .sum()
}

pub fn datagrams_sent_together_come_one_by_one() {
    use nix::sys::socket::{setsockopt, sockopt};
    for sealed in [false, true] {
        let tunnel = if sealed {
            Tunnel::sealed(STRICT, |text, _| text)
        } else {
            Tunnel::new(STRICT)
        };
        for (one, two) in [("10.77.0.1", "10.77.0.2"), ("[fd77::1]", "[fd77::2]")] {
            let a = tunnel.here.socket(&format!("{one}:1000"));
            let b = tunnel.there.socket(&format!("{two}:2000"));
            let all = pattern(30 * 700 + 33);
            setsockopt(&*a, sockopt::UdpGsoSegment, &700).unwrap();
            a.send_to(&all, format!("{two}:2000")).unwrap();
            let mut buffer = [0; 2000];
            for expected in all.chunks(700) {
                let bytes = b.recv(&mut buffer).unwrap();
                assert_eq!(&buffer[..bytes], expected, "{sealed}, {two}");
            }
        }
    }
}

pub fn code_points_and_congestion_are_seen_outside_and_inside() {
    let (here, there) = cabled();
    let folder = Folder::new();
    let file = folder.write("1.toml", &config(&folder, 1, STRICT));
    let _gateway = Gateway::start(&here, &file, &folder.path("control1"));
    let bare = there.inside(|| TunnelSocket::bind("192.0.2.2:51820".parse().unwrap()));
    let mut bare = bare.unwrap();
    let a = here.socket("10.77.0.1:1000");
    set_tos(&a, 46 << 2 | 2);
    a.send_to(b"question", "10.77.0.2:2000").unwrap();
    let mut buffer = [0; 2000];
    // The kernel's own messages are passed over.
    let begun = Instant::now();
    let (bytes, outer) = loop {
        match bare.receive(&mut buffer) {
            Ok(received) if buffer[..received.bytes].ends_with(b"question") => {
                break (received.bytes, received.tos)
            }
            _ => assert!(begun.elapsed() < crate::PATIENCE),
        }
    };
    assert_eq!(outer, 46 << 2 | 2, "outside");
    assert_eq!((bytes, buffer[1]), (20 + 8 + 8, 46 << 2 | 2), "inside");

    // The answer met congestion on its way: addresses and ports change places, which leaves the checksums true.
    let mut answer = buffer[..bytes].to_vec();
    for (one, two, length) in [(12, 16, 4), (20, 22, 2)] {
        for at in 0..length {
            answer.swap(one + at, two + at);
        }
    }
    let mut a = Receiver::new(a);
    bare.send(
        &answer,
        "192.0.2.1:51820".parse().unwrap(),
        Source::default(),
        3,
    )
    .unwrap();
    assert_eq!(
        a.tos(),
        46 << 2 | 3,
        "the code point inside, the mark from outside"
    );
}

/// A socket that also reads the services field.
pub struct Receiver(Socket);

impl Receiver {
    pub fn new(socket: Socket) -> Receiver {
        use nix::sys::socket::{setsockopt, sockopt};
        setsockopt(&*socket, sockopt::IpRecvTos, &true).unwrap();
        Receiver(socket)
    }

    /// That of the next packet.
    pub fn tos(&mut self) -> u8 {
        use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags, SockaddrStorage};
        use std::os::fd::AsRawFd;
        let mut buffer = [0; 2000];
        let mut beside = nix::cmsg_space!(i32);
        let fd = self.0.as_raw_fd();
        let received = loop {
            let mut slices = [std::io::IoSliceMut::new(&mut buffer)];
            let room = Some(&mut beside[..]);
            match recvmsg::<SockaddrStorage>(fd, &mut slices, room, MsgFlags::empty()) {
                Err(nix::errno::Errno::EINTR) => {}
                received => break received.unwrap().cmsgs().unwrap().collect::<Vec<_>>(),
            }
        };
        let field = received.into_iter().find_map(|message| match message {
            ControlMessageOwned::Ipv4Tos(field) => Some(field),
            _ => None,
        });
        field.unwrap()
    }
}

/// A peer that is asked for reports.
pub const ASKS: &str =
    "rate = \"20Mbit\"\nstale = \"3s\"\nfloor = \"1Mbit\"\nfeedback = { ceiling = \"40Mbit\" }";

pub fn reports_need_both_ends() {
    for answers in [true, false] {
        let tunnel = Tunnel::clear(STRICT, |text, last| {
            let says = match last {
                1 => ASKS.to_string(),
                _ => format!("report = {answers}"),
            };
            text.replace("allowed_ips", &format!("{says}\nallowed_ips"))
        });
        let [one, two] = &tunnel.gateways;
        let reports = |show: &Show| show.peers[0].feedback.as_ref().unwrap().reports;
        if answers {
            one.wait_until("reports come", |show| reports(show) >= 2);
            assert_eq!(two.show().peers[0].dropped_pkts, Default::default());
        } else {
            two.wait_until("marks are refused", |show| {
                show.peers[0].dropped_pkts.get("unasked") >= Some(&2)
            });
            let show = one.wait_until("the floor holds", |show| {
                show.peers[0].capacity_bps == 1_000_000
            });
            assert_eq!(reports(&show), 0);
        }
        assert_eq!(two.show().peers[0].feedback, None);
    }
}

/// A mark leaves when the link is free, as a packet does.
pub fn no_marks_are_sent_in_an_outage() {
    let tunnel = Tunnel::clear(STRICT, |text, last| match last {
        1 => {
            let asks = ASKS.replace("3s", "60s");
            text.replace("allowed_ips", &format!("{asks}\nallowed_ips"))
        }
        _ => text,
    });
    let [one, two] = &tunnel.gateways;
    let marks = |show: &Show| {
        let dropped = &show.peers[0].dropped_pkts;
        dropped.get("unasked").copied().unwrap_or(0)
    };
    two.wait_until("a mark comes", |show| marks(show) > 0);
    one.set_capacity(0);
    let before = marks(&two.show());
    // One is due every second.
    std::thread::sleep(Duration::from_millis(3500));
    let after = marks(&two.show());
    assert!(after <= before + 1, "{before} and {after} marks");
    one.set_capacity(1_000_000);
    two.wait_until("they come again", |show| marks(show) > after);
}

/// Hosts behind the gateway cannot send messages in its name.
pub fn forged_messages_from_hosts_are_dropped() {
    use nix::sys::socket::{
        sendto, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6,
    };
    use std::net::SocketAddrV6;
    use std::os::fd::AsRawFd;
    // The peer may have what is sent to there.
    let tunnel = Tunnel::changed(STRICT, |text| {
        text.replace("\"10.78.", "\"fe80::/64\", \"10.78.")
    });
    tunnel.here.inside(|| {
        let raw = socket(
            AddressFamily::Inet6,
            SockType::Raw,
            SockFlag::empty(),
            SockProtocol::Raw,
        )
        .unwrap();
        let device = nix::net::if_::if_nametoindex("lw0").unwrap();
        let to = SocketAddrV6::new("fe80::2".parse().unwrap(), 0, 0, device);
        let message = Message::Mark { sent_ns: 1 }.packet();
        let to = SockaddrIn6::from(to);
        for _ in 0..3 {
            sendto(raw.as_raw_fd(), &message, &to, MsgFlags::empty()).unwrap();
        }
    });
    let [one, two] = &tunnel.gateways;
    one.wait_until("they are refused", |show| {
        show.dropped_pkts.get("unasked") == Some(&3)
    });
    assert_eq!(two.show().peers[0].dropped_pkts.get("unasked"), None);
}
