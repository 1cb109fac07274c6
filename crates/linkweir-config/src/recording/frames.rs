// SPDX-License-Identifier: BSD-3-Clause
//! Blocks: length, checksum and body.

use super::bins::{BIN_NS, BOUNDS_BYTES};
use super::entries::{Counts, PathState, Writer, COUNTS};
use super::numbers::{put, take};
use super::version::{Version, MAGIC_BYTES, SIGN};

/// Largest body, bytes. The length of a block is therefore never mistaken for the beginning of a section.
const MOST_BYTES: usize = 16 << 20;
/// Length and checksum, bytes.
const HEAD_BYTES: usize = 8;

const SETTINGS: u8 = 1;
const PEER: u8 = 2;
const GAP: u8 = 4;

/// A block of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Block<'b> {
    /// A section begins: its version, and TOML text with what was configured.
    Settings(Version, &'b str),
    /// A peer: its number in this section, and TOML text.
    Peer(u32, &'b str),
    /// What happened.
    Counts(Counts<'b>),
    /// Nothing is known of so many bins from this one on.
    Gap(u64, u64),
}

/// Bytes that were left out, because they are no whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where they begin.
    pub at: usize,
    /// How many.
    pub bytes: usize,
}

/// Whether bytes begin as a recording does, of whatever version.
#[must_use]
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(&SIGN)
}

/// Whether bytes are the first ones of a recording, but less than its sign.
pub(super) fn is_begun(bytes: &[u8]) -> bool {
    SIGN.starts_with(bytes)
}

/// Why nothing of a recording with these first bytes could be read.
pub(super) fn unread(bytes: &[u8]) -> String {
    match bytes.get(SIGN.len()..MAGIC_BYTES) {
        Some([version, b'\n']) if *version > Version::Two as u8 && is_recording(bytes) => format!(
            "is of version {version} of the format, and this Linkweir reads versions up to {}; read it with a newer one",
            Version::Two as u8
        ),
        _ => "has no settings: its beginning is missing or damaged".into(),
    }
}

/// The block with this body.
#[must_use]
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(HEAD_BYTES + body.len());
    block.extend_from_slice(&(body.len() as u32).to_le_bytes());
    block.extend_from_slice(&crc32(body).to_le_bytes());
    block.extend_from_slice(body);
    block
}

/// The beginning of a section: its version and the block of its settings.
///
/// The text is TOML; the keys that the format itself needs are written in front of `configured`. `origin_unix_ns` is the
/// time 0 of the section.
#[must_use]
pub fn settings(version: Version, origin_unix_ns: u64, packets: bool, configured: &str) -> Vec<u8> {
    let bounds: Vec<String> = BOUNDS_BYTES.iter().map(u32::to_string).collect();
    let text = format!(
        "origin_unix_ns = {origin_unix_ns}\nbin_ns = {BIN_NS}\nsizes_bytes = [{}]\npackets = {packets}\n{configured}",
        bounds.join(", ")
    );
    [&version.magic()[..], &frame(&body(SETTINGS, &[], &text))].concat()
}

/// The block of a peer.
#[must_use]
pub fn peer(number: u32, text: &str) -> Vec<u8> {
    frame(&body(PEER, &[number.into()], text))
}

/// The block that says that nothing is known of so many bins from this one on.
#[must_use]
pub fn gap(first_bin: u64, bins: u64) -> Vec<u8> {
    frame(&body(GAP, &[first_bin, bins], ""))
}

/// The block that states which capacities hold at the beginning of a bin, bit/s, by the number of the peer; and what each path
/// is, by the numbers of the peer and the path.
#[must_use]
pub fn capacities(
    bin: u64,
    known: impl IntoIterator<Item = (u32, u64)>,
    paths: impl IntoIterator<Item = ((u32, u8), PathState)>,
) -> Vec<u8> {
    let mut block = Writer::new(bin);
    for (peer, bps) in known {
        block.capacity(bin * BIN_NS, peer, bps);
    }
    for ((peer, path), state) in paths {
        block.path(bin * BIN_NS, peer, path, state);
    }
    frame(&block.into_body())
}

fn body(kind: u8, numbers: &[u64], text: &str) -> Vec<u8> {
    let mut body = vec![kind];
    for number in numbers {
        put(&mut body, *number);
    }
    body.extend_from_slice(text.as_bytes());
    body
}

/// Reads the blocks of a recording. What is no whole block is left out, up to the next section, and returned.
pub fn read<'b>(bytes: &'b [u8], mut visit: impl FnMut(Block<'b>)) -> Vec<Damage> {
    let mut damages = Vec::new();
    let mut at = 0;
    // Blocks belong to a section, so none counts before the first.
    let mut inside = None;
    while at < bytes.len() {
        if let Some(version) = Version::of(&bytes[at..]) {
            at += MAGIC_BYTES;
            inside = Some(version);
            continue;
        }
        let whole = inside.and_then(|version| block(version, &bytes[at..]));
        if let Some((block, length)) = whole {
            visit(block);
            at += length;
            continue;
        }
        inside = None;
        let next = bytes[at + 1..]
            .windows(MAGIC_BYTES)
            .position(|window| Version::of(window).is_some())
            .map_or(bytes.len(), |after| at + 1 + after);
        damages.push(Damage {
            at,
            bytes: next - at,
        });
        at = next;
    }
    damages
}

/// The block at the beginning, and its length; none if it is no whole one.
fn block(version: Version, bytes: &[u8]) -> Option<(Block<'_>, usize)> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(0) as usize;
    if length > MOST_BYTES {
        return None;
    }
    let body = rest.get(..length)?;
    if crc32(body) != number(4) {
        return None;
    }
    let (kind, mut rest) = body.split_first()?;
    let block = match *kind {
        SETTINGS => Block::Settings(version, std::str::from_utf8(rest).ok()?),
        PEER => {
            let number = u32::try_from(take(&mut rest)?).ok()?;
            Block::Peer(number, std::str::from_utf8(rest).ok()?)
        }
        COUNTS => Block::Counts(Counts::new(version, rest)?),
        GAP => {
            let first = take(&mut rest)?;
            Block::Gap(first, take(&mut rest)?)
        }
        _ => return None,
    };
    Some((block, HEAD_BYTES + length))
}

/// CRC-32 as in IEEE 802.3.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize]
    })
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}
