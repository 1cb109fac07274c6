// SPDX-License-Identifier: BSD-3-Clause
//! Sees every packet that leaves a namespace through its device `out`, and counts those that leave in the clear.

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    recvfrom, setsockopt, socket, sockopt, AddressFamily, LinkAddr, SockFlag, SockProtocol,
    SockType,
};
use nix::sys::time::TimeVal;

use crate::place::Namespace;
use crate::PATIENCE;

/// A word in the clear to a network of the host, by which the end of what came before is seen.
const MARKER: &[u8] = b"all before this was seen";
/// Headers of Ethernet, IPv4 and IPv6, bytes.
const ETHERNET: usize = 14;

/// What leaves through `out`.
pub struct Uplink {
    clear: Arc<AtomicUsize>,
    /// When the first and the last of them left.
    span: Arc<Mutex<Option<(Instant, Instant)>>>,
    markers: Arc<AtomicUsize>,
    runs: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Uplink {
    /// Counts packets to these addresses from now on.
    pub fn watch(namespace: &Namespace, far: &[&str]) -> Uplink {
        let far: Vec<IpAddr> = far.iter().map(|far| far.parse().unwrap()).collect();
        let (socket, index) = namespace.inside(|| {
            let all = SockProtocol::EthAll;
            let flags = SockFlag::SOCK_CLOEXEC;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, all).unwrap();
            setsockopt(&socket, sockopt::RcvBufForce, &(16 << 20)).unwrap();
            let soon = TimeVal::new(0, 20_000);
            setsockopt(&socket, sockopt::ReceiveTimeout, &soon).unwrap();
            (socket, if_nametoindex("out").unwrap() as usize)
        });
        let [clear, markers] = [0, 0].map(|zero| Arc::new(AtomicUsize::new(zero)));
        let runs = Arc::new(AtomicBool::new(true));
        let span = Arc::new(Mutex::new(None));
        let times = Arc::clone(&span);
        let (counts, until) = ((clear.clone(), markers.clone()), runs.clone());
        let thread = thread::spawn(move || {
            let mut room = [0; 2000];
            while until.load(Ordering::Relaxed) {
                let Ok((bytes, from)) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut room) else {
                    continue;
                };
                if from.is_none_or(|from| from.ifindex() != index) {
                    continue;
                }
                let frame = &room[..bytes.min(room.len())];
                if frame.ends_with(MARKER) {
                    counts.1.fetch_add(1, Ordering::Relaxed);
                } else if destination(frame).is_some_and(|to| far.contains(&to)) {
                    counts.0.fetch_add(1, Ordering::Relaxed);
                    let now = Instant::now();
                    let mut span = times.lock().unwrap();
                    *span = Some((span.map_or(now, |(first, _)| first), now));
                }
            }
        });
        Uplink {
            clear,
            span,
            markers,
            runs,
            thread: Some(thread),
        }
    }

    /// How many packets to those addresses have left in the clear so far.
    pub fn in_the_clear(&self, namespace: &Namespace) -> usize {
        let socket = namespace.socket("192.0.2.1:0");
        let before = self.markers.load(Ordering::Relaxed);
        let begun = Instant::now();
        while self.markers.load(Ordering::Relaxed) == before {
            let _ = socket.send_to(MARKER, "192.0.2.2:9");
            assert!(begun.elapsed() < PATIENCE, "the capture sees nothing");
            thread::sleep(Duration::from_millis(5));
        }
        self.clear.load(Ordering::Relaxed)
    }
}

impl Uplink {
    /// The time between the first and the last packet that left in the clear since this was called.
    pub fn take_span(&self) -> Duration {
        let span = self.span.lock().unwrap().take();
        span.map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        self.runs.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where the packet in a frame of Ethernet goes.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    let packet = frame.get(ETHERNET..)?;
    match frame.get(12..14)? {
        [0x08, 0x00] => Some(IpAddr::from(*packet.get(16..)?.first_chunk::<4>()?)),
        [0x86, 0xdd] => Some(IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Sends to these places all the time, with whatever address the system chooses.
pub struct Traffic {
    runs: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    pub fn start(namespace: &Namespace, to: &[&str]) -> Traffic {
        let to: Vec<std::net::SocketAddr> = to.iter().map(|to| to.parse().unwrap()).collect();
        let sockets =
            namespace.inside(|| ["0.0.0.0:0", "[::]:0"].map(|any| UdpSocket::bind(any).unwrap()));
        let runs = Arc::new(AtomicBool::new(true));
        let until = runs.clone();
        let thread = thread::spawn(move || {
            while until.load(Ordering::Relaxed) {
                for to in &to {
                    let _ = sockets[usize::from(to.is_ipv6())].send_to(b"to the internet", to);
                }
                thread::sleep(Duration::from_micros(100));
            }
        });
        Traffic {
            runs,
            thread: Some(thread),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.runs.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
