// SPDX-License-Identifier: BSD-3-Clause
//! Bytes of a file as text: UTF-8, or UTF-16 with or without a byte order mark, and either of them compressed by gzip.

use std::borrow::Cow;
use std::io::Read;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The text, or what is wrong and in which line.
///
/// # Errors
/// When it is no text, or more than `most_bytes` of it.
pub fn text(bytes: &[u8], most_bytes: u64) -> Result<Cow<'_, str>, (Option<usize>, String)> {
    if bytes.starts_with(&GZIP) {
        let plain = unzipped(bytes, most_bytes + 1)
            .map_err(|error| (None, format!("is not complete gzip: {error}")))?;
        if plain.len() as u64 > most_bytes {
            let message = format!(
                "is too large when unpacked; at most {} MiB are read",
                most_bytes >> 20
            );
            return Err((None, message));
        }
        if plain.starts_with(&GZIP) {
            return Err((None, "is compressed twice; unpack it once".to_string()));
        }
        return Ok(Cow::Owned(plain_text(&plain)?.into_owned()));
    }
    plain_text(bytes)
}

/// Unpacks the files that follow one another, up to so many bytes. Tapes and disks pad the last one with zeros, which gzip
/// ignores, too.
fn unzipped(bytes: &[u8], most_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    let mut rest = bytes;
    while rest.iter().any(|byte| *byte != 0) && (plain.len() as u64) < most_bytes {
        let mut file = flate2::bufread::GzDecoder::new(rest);
        let room = most_bytes - plain.len() as u64;
        file.by_ref().take(room).read_to_end(&mut plain)?;
        rest = file.into_inner();
    }
    Ok(plain)
}

fn plain_text(bytes: &[u8]) -> Result<Cow<'_, str>, (Option<usize>, String)> {
    if let Some((rest, big)) = wide(bytes) {
        let units = rest.chunks(2).map(|pair| match (pair, big) {
            ([a, b], true) => u16::from_be_bytes([*a, *b]),
            ([a, b], false) => u16::from_le_bytes([*a, *b]),
            _ => 0xdc00, // half a unit at the end: an unpaired surrogate, refused below
        });
        let mut text = String::new();
        for unit in char::decode_utf16(units) {
            let lines = || 1 + text.bytes().filter(|byte| *byte == b'\n').count();
            let letter = unit.map_err(|_| (Some(lines()), "is not text (UTF-16)".to_string()))?;
            text.push(letter);
        }
        return Ok(Cow::Owned(text));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        (Some(line), "is not text (UTF-8)".to_string())
    })?;
    Ok(Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)))
}

/// The text behind a byte order mark of UTF-16, and whether the upper byte comes first. Without a mark, text whose first two
/// letters are ASCII shows it by their zeros, which no other text has.
fn wide(bytes: &[u8]) -> Option<(&[u8], bool)> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some((rest, false)),
        [0xfe, 0xff, rest @ ..] => Some((rest, true)),
        [0, a, 0, b, ..] if *a != 0 && *b != 0 => Some((bytes, true)),
        [a, 0, b, 0, ..] if *a != 0 && *b != 0 => Some((bytes, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_every_encoding_is_the_same() {
        let plain = "t_s,µ\n0,1\n";
        let little: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = plain.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        for bytes in [
            plain.as_bytes().to_vec(),
            marked(b"\xef\xbb\xbf", plain.as_bytes()),
            marked(b"\xff\xfe", &little),
            marked(b"\xfe\xff", &big),
            little.clone(),
            big,
        ] {
            assert_eq!(text(&bytes, 100).unwrap(), plain);
        }
        let half = marked(b"\xff\xfe", &little[..5]);
        assert_eq!(text(&half, 100).unwrap_err().1, "is not text (UTF-16)");
        assert_eq!(
            text(b"\x1f\x8b\x08", 100).unwrap_err().0,
            None,
            "a gzip file that is cut off"
        );
    }
}
