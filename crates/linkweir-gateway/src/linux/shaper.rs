// SPDX-License-Identifier: BSD-3-Clause
//! A class of HTB whose rate this program sets, and the queueing discipline in it.

use std::fmt;
use std::fs;
use std::io;

use netlink_packet_core::{DefaultNla, NetlinkPayload, Nla, NlasIterator, NLM_F_ACK, NLM_F_ECHO};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use netlink_packet_route::RouteNetlinkMessage;
use nix::net::if_::if_nametoindex;

use super::netlink::ask;

/// HTB's options (linux/pkt_sched.h): rates and bursts, and the rates again if 32 bits do not hold them.
const PARMS: u16 = 1;
const RATE64: u16 = 6;
const CEIL64: u16 = 7;
/// Places in `struct tc_htb_opt`, of two `struct tc_ratespec` of 12 bytes, then the bursts.
const PARMS_BYTES: usize = 44;
const LINK_LAYER: [usize; 2] = [1, 13];
const RATES: [usize; 2] = [8, 20];
const BURSTS: [usize; 2] = [24, 28];
/// The link layer for which the kernel needs no table.
const ETHERNET: u8 = 1;
/// Options of this project's queueing disciplines: how many classes, and the capacity reported, bit/s.
const CLASSES: u16 = 2;
const LINK: u16 = 3;

/// A class such as 1:1, by its major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassId {
    major: u16,
    minor: u16,
}

impl ClassId {
    /// Reads two hexadecimal numbers, as tc does.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<ClassId, String> {
        let number = |text: &str| u16::from_str_radix(text, 16).ok().filter(|n| *n > 0);
        let numbers = text.split_once(':');
        let numbers = numbers.and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
        let (major, minor) = numbers.ok_or("is no class; write it as tc does, such as 1:1")?;
        Ok(ClassId { major, minor })
    }

    /// The priority of packets that HTB sends at once, past all of its classes.
    pub(crate) fn direct(self) -> u32 {
        u32::from(self.major) << 16
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.major, self.minor)
    }
}

/// A class and what it was set to when it was found.
pub(crate) struct Shaper {
    device: String,
    class: ClassId,
    index: i32,
    /// What the kernel said about it.
    found: TcMessage,
    parms: [u8; PARMS_BYTES],
    /// The queueing discipline of this project in it, if there is one, as it was found.
    leaf: Option<TcMessage>,
    /// The rate and the capacity that were set last, bit/s.
    set_bps: (u64, u64),
}

impl Shaper {
    /// Finds the class. `is_ours` knows the names of this project's queueing disciplines.
    ///
    /// # Errors
    /// `NotFound` when the device or the class does not exist, with what makes it.
    pub(crate) fn find(
        device: &str,
        class: ClassId,
        is_ours: impl Fn(&str) -> bool,
    ) -> io::Result<Shaper> {
        let missing = |what: String| io::Error::new(io::ErrorKind::NotFound, what);
        let index = if_nametoindex(device).map_err(|_| {
            missing(format!(
                "there is no device {device}; `ip link` lists those there are"
            ))
        })? as i32;
        let major = class.major;
        let cure = format!(
            "make it with\n  tc qdisc replace dev {device} root handle {major:x}: htb default {:x}\n  \
             tc class add dev {device} parent {major:x}: classid {class} htb rate 10mbit\n  \
             tc qdisc add dev {device} parent {class} fq_codel\n\
             or name another class with --class",
            class.minor
        );
        let found = get_class(index, class).map_err(|error| match error.raw_os_error() {
            Some(nix::libc::ENOENT | nix::libc::EINVAL | nix::libc::EOPNOTSUPP) => {
                missing(format!("{device} has no class {class}; {cure}"))
            }
            _ => error,
        })?;
        let is_htb = |attribute: &TcAttribute| *attribute == TcAttribute::Kind("htb".to_string());
        let parms = option(&found, PARMS).and_then(|bytes| bytes.try_into().ok());
        let Some(parms) = parms.filter(|_| found.attributes.iter().any(is_htb)) else {
            return Err(missing(format!(
                "class {class} of {device} is not one of HTB; {cure}"
            )));
        };
        let leaf = get_leaf(index, found.header.info, is_ours).ok().flatten();
        Ok(Shaper {
            device: device.to_string(),
            class,
            index,
            found,
            parms,
            leaf,
            set_bps: (0, 0),
        })
    }

    /// The rate it had when it was found, bit/s.
    pub(crate) fn rate_bps(&self) -> u64 {
        let wide = option(&self.found, RATE64).and_then(|bytes| bytes.try_into().ok());
        8 * wide.map_or(u64::from(self.number(RATES[0])), u64::from_ne_bytes)
    }

    /// The queueing discipline of this project in it.
    pub(crate) fn leaf(&self) -> Option<&str> {
        let leaf = self.leaf.as_ref()?;
        leaf.attributes
            .iter()
            .find_map(|attribute| match attribute {
                TcAttribute::Kind(kind) => Some(kind.as_str()),
                _ => None,
            })
    }

    fn number(&self, at: usize) -> u32 {
        let bytes: [u8; 4] = [0, 1, 2, 3].map(|byte| self.parms[at + byte]);
        u32::from_ne_bytes(bytes)
    }

    /// What the class has sent so far: packets and bytes.
    ///
    /// # Errors
    /// Those of the kernel, such as that the class is gone.
    pub(crate) fn sent(&self) -> io::Result<(u64, u64)> {
        let class = get_class(self.index, self.class)?;
        let stats = class
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                TcAttribute::Stats2(stats) => Some(stats),
                _ => None,
            });
        let basic = stats.into_iter().flatten().find_map(|stats| match stats {
            TcStats2::Basic(basic) => Some(*basic),
            _ => None,
        });
        let basic = basic.ok_or_else(|| {
            let Shaper { device, class, .. } = self;
            io::Error::other(format!("class {class} of {device} has no counters"))
        })?;
        Ok((u64::from(basic.packets), basic.bytes))
    }

    /// Packets that the device has received.
    pub(crate) fn received_pkts(&self) -> u64 {
        let table = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
        let row = table.lines().find_map(|line| {
            line.trim_start()
                .strip_prefix(&self.device)?
                .strip_prefix(':')
        });
        // Bytes come before packets.
        let pkts = row.and_then(|row| row.split_whitespace().nth(1)?.parse().ok());
        pkts.unwrap_or(0)
    }

    /// Sets the rate of the class, and reports the capacity to the queueing discipline in it, both bit/s. Changes below one
    /// hundredth are left out.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(crate) fn set(&mut self, rate_bps: u64, capacity_bps: u64) -> io::Result<()> {
        let near = |one: u64, other: u64| one.abs_diff(other) < other / 100;
        if !near(rate_bps, self.set_bps.0) {
            change(RouteNetlinkMessage::NewTrafficClass(
                self.with_rate(rate_bps),
            ))?;
            self.set_bps.0 = rate_bps;
        }
        if !near(capacity_bps, self.set_bps.1) {
            if let Some(leaf) = &self.leaf {
                let bytes = capacity_bps.to_ne_bytes().to_vec();
                change(RouteNetlinkMessage::NewQueueDiscipline(with_link(
                    leaf, bytes,
                )))?;
            }
            self.set_bps.1 = capacity_bps;
        }
        Ok(())
    }

    /// The class with another rate, and bursts of as many bytes.
    fn with_rate(&self, rate_bps: u64) -> TcMessage {
        let bytes_per_s = (rate_bps / 8).max(1);
        let narrow = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
        let mut parms = self.parms;
        for at in 0..2 {
            // A burst is given as the time that it takes at the rate.
            let was_bytes_per_s = (self.rate_bps() / 8).max(1);
            let burst = u64::from(self.number(BURSTS[at])).saturating_mul(was_bytes_per_s);
            let burst = u32::try_from(burst / bytes_per_s)
                .unwrap_or(u32::MAX)
                .max(1);
            parms[LINK_LAYER[at]] = self.parms[LINK_LAYER[at]].max(ETHERNET);
            parms[RATES[at]..RATES[at] + 4].copy_from_slice(&narrow.to_ne_bytes());
            parms[BURSTS[at]..BURSTS[at] + 4].copy_from_slice(&burst.to_ne_bytes());
        }
        let mut options = vec![(PARMS, parms.to_vec())];
        if narrow == u32::MAX {
            let wide = bytes_per_s.to_ne_bytes().to_vec();
            options.extend([(RATE64, wide.clone()), (CEIL64, wide)]);
        }
        self.class_message(options)
    }

    fn class_message(&self, options: Vec<(u16, Vec<u8>)>) -> TcMessage {
        let mut message = TcMessage::with_index(self.index);
        message.header.handle = self.found.header.handle;
        message.header.parent = self.found.header.parent;
        message.attributes = vec![TcAttribute::Kind("htb".to_string()), nest(options)];
        message
    }

    /// Sets everything as it was found.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(crate) fn restore(&mut self) -> io::Result<()> {
        let mut options = vec![(PARMS, self.parms.to_vec())];
        for at in LINK_LAYER {
            options[0].1[at] = self.parms[at].max(ETHERNET);
        }
        for kind in [RATE64, CEIL64] {
            options.extend(option(&self.found, kind).map(|bytes| (kind, bytes)));
        }
        let class = self.class_message(options);
        change(RouteNetlinkMessage::NewTrafficClass(class))?;
        if let Some(leaf) = &self.leaf {
            if let Some(bytes) = option(leaf, LINK) {
                change(RouteNetlinkMessage::NewQueueDiscipline(with_link(
                    leaf, bytes,
                )))?;
            }
        }
        self.set_bps = (0, 0);
        Ok(())
    }
}

fn nest(options: Vec<(u16, Vec<u8>)>) -> TcAttribute {
    let options = options.into_iter();
    TcAttribute::Options(
        options
            .map(|(kind, bytes)| TcOption::Other(DefaultNla::new(kind, bytes)))
            .collect(),
    )
}

/// The queueing discipline with this reported capacity; what is not named stays.
fn with_link(leaf: &TcMessage, link: Vec<u8>) -> TcMessage {
    let mut message = TcMessage::default();
    message.header = leaf.header.clone();
    message.header.info = 0;
    let kind = leaf.attributes.iter();
    message.attributes = kind
        .filter(|attribute| matches!(attribute, TcAttribute::Kind(_)))
        .cloned()
        .chain([nest(vec![(LINK, link)])])
        .collect();
    message
}

/// The bytes of an option in a message of the kernel. The crate leaves the options of kinds that it does not know in one piece.
fn option(message: &TcMessage, kind: u16) -> Option<Vec<u8>> {
    let whole = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            TcAttribute::Options(options) => options.first(),
            _ => None,
        })?;
    let TcOption::Other(whole) = whole else {
        return None;
    };
    let mut bytes = vec![0; whole.value_len()];
    whole.emit_value(&mut bytes);
    let mut options = NlasIterator::new(&bytes[..]).map_while(Result::ok);
    let found = options.find(|option| option.kind() == kind)?;
    Some(found.value().to_vec())
}

fn get_class(index: i32, class: ClassId) -> io::Result<TcMessage> {
    let mut message = TcMessage::with_index(index);
    message.header.handle = TcHandle {
        major: class.major,
        minor: class.minor,
    };
    // The kernel answers who asks for an echo, and acknowledges in any case.
    match ask(
        RouteNetlinkMessage::GetTrafficClass(message),
        NLM_F_ECHO | NLM_F_ACK,
    )? {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewTrafficClass(class)) => Ok(class),
        _ => Err(io::Error::from_raw_os_error(nix::libc::ENOENT)),
    }
}

/// The queueing discipline with this handle if it is one of this project's.
fn get_leaf(
    index: i32,
    handle: u32,
    is_ours: impl Fn(&str) -> bool,
) -> io::Result<Option<TcMessage>> {
    // The kernel does not tell of queueing disciplines that it made by itself; they have no handle.
    if handle == 0 {
        return Ok(None);
    }
    let mut message = TcMessage::with_index(index);
    message.header.handle = TcHandle::from(handle);
    let answer = ask(
        RouteNetlinkMessage::GetQueueDiscipline(message),
        NLM_F_ECHO | NLM_F_ACK,
    )?;
    let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(leaf)) = answer else {
        return Ok(None);
    };
    let is_ours = leaf.attributes.iter().any(|attribute| match attribute {
        TcAttribute::Kind(kind) => is_ours(kind),
        _ => false,
    });
    let length = |kind| option(&leaf, kind).map(|bytes| bytes.len());
    let reports = length(CLASSES) == Some(4) && length(LINK) == Some(8);
    Ok(Some(leaf).filter(|_| is_ours && reports))
}

fn change(message: RouteNetlinkMessage) -> io::Result<()> {
    ask(message, NLM_F_ACK).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::Emitable;

    #[test]
    fn classes_are_written_as_tc_does() {
        let class = ClassId::parse("1:1f").unwrap();
        assert_eq!(
            (class.to_string().as_str(), class.direct()),
            ("1:1f", 0x1_0000)
        );
        for wrong in ["", "1", "1:", ":1", "1:x", "0:1", "1:10000"] {
            let error = ClassId::parse(wrong).unwrap_err();
            assert!(error.contains("such as 1:1"), "{wrong}: {error}");
        }
    }

    /// A message as it is when the kernel sends it.
    fn dumped(message: &TcMessage) -> TcMessage {
        let mut message = message.clone();
        for attribute in &mut message.attributes {
            if let TcAttribute::Options(options) = attribute {
                let mut bytes = vec![0; options.as_slice().buffer_len()];
                options.as_slice().emit(&mut bytes);
                *options = vec![TcOption::Other(DefaultNla::new(2, bytes))];
            }
        }
        message
    }

    /// `tc class show` has printed what these bytes mean since HTB was added to Linux.
    #[test]
    fn another_rate_keeps_the_bytes_of_bursts() {
        let mut parms = [0; PARMS_BYTES];
        for at in 0..2 {
            parms[RATES[at]..RATES[at] + 4].copy_from_slice(&1_250_000_u32.to_ne_bytes());
            parms[BURSTS[at]..BURSTS[at] + 4].copy_from_slice(&20_000_u32.to_ne_bytes());
        }
        let mut found = TcMessage::with_index(2);
        found.attributes = vec![nest(vec![(PARMS, parms.to_vec())])];
        let found = dumped(&found);
        let shaper = Shaper {
            device: "eth0".to_string(),
            class: ClassId::parse("1:1").unwrap(),
            index: 2,
            found,
            parms,
            leaf: None,
            set_bps: (0, 0),
        };
        assert_eq!(shaper.rate_bps(), 10_000_000);
        let number = |message: &TcMessage, at: usize| {
            let bytes = option(&dumped(message), PARMS).unwrap();
            u32::from_ne_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]))
        };
        let slower = shaper.with_rate(2_000_000);
        assert_eq!(RATES.map(|at| number(&slower, at)), [250_000; 2]);
        assert_eq!(BURSTS.map(|at| number(&slower, at)), [100_000; 2]);
        let fast = shaper.with_rate(80_000_000_000);
        assert_eq!(number(&fast, RATES[0]), u32::MAX);
        assert_eq!(
            option(&dumped(&fast), RATE64),
            Some(10_000_000_000_u64.to_ne_bytes().to_vec())
        );
    }
}
