// SPDX-License-Identifier: BSD-3-Clause
//! Voice both ways, of which each packet is known by its number, and bulk that fills the link.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::sites::Sites;
use super::{Ledger, Stop};
use crate::place::{set_tos, Namespace};
use crate::PATIENCE;

/// Time between packets of voice.
const VOICE_EVERY: Duration = Duration::from_millis(20);
/// Expedited forwarding.
const EF_TOS: u8 = 46 << 2;
const BULK_BYTES: usize = 1200;
/// Bulk between two pauses, packets; so the link is overloaded in each direction.
const BULK_PKTS: usize = 6;
const BULK_EVERY: Duration = Duration::from_millis(10);
/// Packets of voice that are lost and named in a message.
const NAMED: usize = 10;

/// The packets of voice in one direction: when each was sent, ns, and whether it came.
type Sent = Arc<Mutex<Vec<(u64, bool)>>>;

pub struct Traffic {
    voice: [Sent; 2],
    _stop: Stop,
}

/// What became of voice.
#[derive(Debug)]
pub struct Voice {
    pub sent: usize,
    /// Lost when an event had taken the only way away.
    pub excused: usize,
    /// Lost otherwise: the direction, and when, s. The first few.
    pub lost: Vec<(usize, f64)>,
}

impl Traffic {
    pub fn start(sites: &Sites, ledger: &Ledger) -> Traffic {
        let stop = Stop::default();
        let voice = [Sent::default(), Sent::default()];
        let ends = [&sites.here, &sites.there];
        for (at, sent) in voice.iter().enumerate() {
            let (from, to) = (ends[at], ends[1 - at]);
            let (last, other) = (at + 1, 2 - at);
            let sender = from.socket(&format!("10.77.0.{last}:5060"));
            set_tos(&sender, EF_TOS);
            let receiver = to.socket(&format!("10.77.0.{other}:5061"));
            let target = format!("10.77.0.{other}:5061");
            send_voice(sender.try_clone().unwrap(), target, ledger, sent, &stop);
            receive_voice(receiver.try_clone().unwrap(), sent, &stop);
            for (bound, targets) in bulk(at) {
                send_bulk(from, bound, targets, &stop);
            }
        }
        Traffic { voice, _stop: stop }
    }

    /// Waits until a packet of voice that was sent after a time has come in each direction. Returns when the later of the
    /// first two was sent, ns.
    pub fn wait_for_voice(&self, after_ns: u64, patience: Duration, when: &str) -> u64 {
        let begun = Instant::now();
        loop {
            let first = self.voice.each_ref().map(|sent| {
                let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                let came = sent.iter().rev().take_while(|(ns, _)| *ns > after_ns);
                came.filter(|(_, came)| *came).map(|(ns, _)| *ns).min()
            });
            if let [Some(one), Some(other)] = first {
                return one.max(other);
            }
            assert!(
                begun.elapsed() < patience,
                "no voice comes through {when}: {first:?}"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until all that was sent until now has come, apart from what an event excuses. Returns that time, ns, and what
    /// was lost: has not come within [`PATIENCE`].
    pub fn judge(&self, ledger: &Ledger) -> (u64, Voice) {
        let now_ns = ledger.now_ns();
        let begun = Instant::now();
        loop {
            let voice = self.sent_before(now_ns, ledger);
            if voice.lost.is_empty() || begun.elapsed() > PATIENCE {
                return (now_ns, voice);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// What has become so far of what was sent before a time.
    fn sent_before(&self, until_ns: u64, ledger: &Ledger) -> Voice {
        let mut voice = Voice {
            sent: 0,
            excused: 0,
            lost: Vec::new(),
        };
        for (direction, sent) in self.voice.iter().enumerate() {
            let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            // Before the first that came there was no session.
            let known = sent.iter().skip_while(|(_, came)| !came);
            for (ns, came) in known.take_while(|(ns, _)| *ns < until_ns) {
                voice.sent += 1;
                if *came {
                    continue;
                }
                if ledger.excuses(*ns) {
                    voice.excused += 1;
                } else if voice.lost.len() < NAMED {
                    voice.lost.push((direction, *ns as f64 * 1e-9));
                }
            }
        }
        voice
    }
}

/// Where bulk goes from, and to. The first site sends to all addresses through the tunnel.
fn bulk(at: usize) -> Vec<(&'static str, Vec<&'static str>)> {
    if at == 0 {
        vec![
            ("10.77.0.1:9000", vec!["10.78.2.1:9", "203.0.113.7:9"]),
            ("[fd77::1]:9000", vec!["[2001:db8:ffff::7]:9"]),
        ]
    } else {
        vec![("10.77.0.2:9000", vec!["10.78.1.1:9"])]
    }
}

fn send_voice(socket: UdpSocket, to: String, ledger: &Ledger, sent: &Sent, stop: &Stop) {
    let (ledger, sent, stop) = (ledger.clone(), sent.clone(), stopped(stop));
    thread::spawn(move || {
        let mut next = Instant::now();
        while !stop() {
            let number = {
                let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                sent.push((ledger.now_ns(), false));
                sent.len() - 1
            };
            let mut packet = [0; 160];
            packet[..8].copy_from_slice(&number.to_le_bytes());
            // One that the system refuses counts as lost.
            let _ = socket.send_to(&packet, &to);
            next += VOICE_EVERY;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
}

fn receive_voice(socket: UdpSocket, sent: &Sent, stop: &Stop) {
    let (sent, stop) = (sent.clone(), stopped(stop));
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    thread::spawn(move || {
        let mut packet = [0; 200];
        while !stop() {
            if socket.recv(&mut packet).is_ok_and(|bytes| bytes == 160) {
                let number = usize::from_le_bytes(packet[..8].try_into().expect("eight bytes"));
                let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                sent[number].1 = true;
            }
        }
    });
}

fn send_bulk(from: &Namespace, bound: &'static str, to: Vec<&'static str>, stop: &Stop) {
    let socket = from.socket(bound).try_clone().unwrap();
    let stop = stopped(stop);
    thread::spawn(move || {
        let packet = [7; BULK_BYTES];
        while !stop() {
            for at in 0..BULK_PKTS {
                let _ = socket.send_to(&packet, to[at % to.len()]);
            }
            thread::sleep(BULK_EVERY);
        }
    });
}

/// Whether a soak has ended, for one of its threads, which does not end it.
fn stopped(stop: &Stop) -> impl Fn() -> bool + Send + 'static {
    let flag = Arc::downgrade(&stop.0);
    move || {
        flag.upgrade()
            .is_none_or(|flag| flag.load(std::sync::atomic::Ordering::Relaxed))
    }
}
