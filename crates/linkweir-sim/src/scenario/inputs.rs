// SPDX-License-Identifier: BSD-3-Clause
//! Files that a scenario names, and what their copies in a run directory are called.

use std::path::{Path, PathBuf};

use linkweir_config::link;
use linkweir_config::reader::Entry;
use linkweir_config::Fault;

/// A file a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Name of its copy in a run directory, such as `inputs/lte.csv`.
    pub name: String,
    /// Where it was found.
    pub path: PathBuf,
    /// Its content as it was read.
    pub bytes: Vec<u8>,
}

/// What the user is told of the files that a scenario names and of its models.
#[derive(Default)]
pub(super) struct Told {
    /// Where something is not as the scenario's writer may expect, a sentence each.
    pub(super) notes: Vec<String>,
    /// What each measured series was taken for, a line each.
    pub(super) readings: Vec<String>,
}

impl Told {
    /// Adds what a file was taken for, which several keys may name.
    pub(super) fn read(&mut self, line: String) {
        if !self.readings.contains(&line) {
            self.readings.push(line);
        }
    }
}

/// The path and the content of a file that a key names, looked for in `folder`.
pub(super) fn read(
    file: &Entry<'_, '_>,
    what: &str,
    folder: &Path,
) -> Result<(PathBuf, Vec<u8>), Fault> {
    read_named(file, file.text()?, what, folder)
}

/// As [`read`], for a file that is called `name`.
pub(super) fn read_named(
    file: &Entry<'_, '_>,
    name: &str,
    what: &str,
    folder: &Path,
) -> Result<(PathBuf, Vec<u8>), Fault> {
    if name.is_empty() || name.contains('\0') {
        return Err(file.fault(format!("must be the path of a file with {what}")));
    }
    let path = folder.join(name);
    let bytes = link::content(file, &path)?;
    Ok((path, bytes))
}

/// Keeps the content of a file; returns its name in a run directory, seen from its scenario, which no other file there has.
/// A file that several keys name is kept once.
pub(super) fn keep(path: PathBuf, bytes: Vec<u8>, inputs: &mut Vec<Input>) -> String {
    let known = |input: &&Input| input.path == path && input.bytes == bytes;
    if let Some(input) = inputs.iter().find(known) {
        return input.name.clone();
    }
    let plain = plain_name(&path);
    let taken = |name: &String| inputs.iter().any(|input| input.name == *name);
    let numbered = (2..).map(|n| plain.replacen('/', &format!("/{n}-"), 1));
    let name = std::iter::once(plain.clone())
        .chain(numbered)
        .find(|name| !taken(name))
        .unwrap_or_default();
    inputs.push(Input {
        name: name.clone(),
        path,
        bytes,
    });
    name
}

fn plain_name(path: &Path) -> String {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let clean: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let clean = clean.trim_start_matches('.');
    format!("inputs/{}", if clean.is_empty() { "trace" } else { clean })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linkweir_config::reader::Files;

    use super::*;
    use crate::scenario::{parse_with, Overrides};

    #[derive(Debug)]
    struct Brought;

    impl Files for Brought {
        fn read(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
            assert!(max_bytes > 1000);
            match path.to_str() {
                Some("far/lte.csv") => Ok(b"t_s,capacity_bps\n0,2000000\n1,4000000\n".to_vec()),
                Some("far/long.csv") => Ok(vec![b'0'; usize::try_from(max_bytes).unwrap() + 1]),
                _ => Err("was not brought along".to_owned()),
            }
        }
    }

    #[test]
    fn files_may_be_elsewhere_than_in_the_file_system() {
        let parsed = |name: &str| {
            let text = format!(
                "duration = \"2s\"\n[link]\ntrace = \"{name}\"\n[scheduler]\npolicy = \"fifo\"\n\
                 [[class]]\nname = \"all\"\n[[flow]]\nclass = \"all\"\nkind = \"greedy\"\n"
            );
            let overrides = Overrides {
                files: Some(Arc::new(Brought)),
                ..Overrides::default()
            };
            parse_with(&text, Some(Path::new("far/one.toml")), &overrides)
        };
        let scenario = parsed("lte.csv").unwrap();
        assert_eq!(scenario.inputs[0].name, "inputs/lte.csv");
        let fault = parsed("other.csv").unwrap_err().to_string();
        let start =
            "far/one.toml:3: link.trace = \"other.csv\": far/other.csv: was not brought along";
        assert!(fault.starts_with(start), "{fault}");
    }

    #[test]
    fn a_trace_in_place_of_the_links_is_looked_for_there_too() {
        let parsed = |name: &str| {
            let text =
                "duration = \"2s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"fifo\"\n\
                        [[class]]\nname = \"all\"\n[[flow]]\nclass = \"all\"\nkind = \"greedy\"\n";
            let overrides = Overrides {
                trace: Some(name.into()),
                files: Some(Arc::new(Brought)),
                ..Overrides::default()
            };
            parse_with(text, Some(Path::new("far/one.toml")), &overrides)
        };
        let scenario = parsed("far/lte.csv").unwrap();
        assert_eq!(scenario.inputs[0].name, "inputs/lte.csv");
        let fault = parsed("other.csv").unwrap_err().to_string();
        assert_eq!(fault, "other.csv: was not brought along");
        let fault = parsed("far/long.csv").unwrap_err().to_string();
        assert!(fault.starts_with("far/long.csv: is too large"), "{fault}");
    }
}
