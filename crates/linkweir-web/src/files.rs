// SPDX-License-Identifier: BSD-3-Clause
//! A page has no file system and no compiler: it brings the files that a scenario names, and refuses policies of the user's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linkweir_sim::scenario::{Files, Finder, Found};

/// Files that came with the request.
#[derive(Debug, Default)]
pub struct Brought(BTreeMap<PathBuf, Vec<u8>>);

impl Brought {
    /// Adds a file.
    pub fn add(&mut self, path: String, content: &[u8]) {
        self.0.insert(PathBuf::from(path), content.to_vec());
    }
}

impl Files for Brought {
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
        let found = self.0.get(path);
        let found = found
            .ok_or("is not among the files of this page; run this scenario on your computer")?;
        if found.len() as u64 > max_bytes {
            let bytes = found.len();
            return Err(format!(
                "has {bytes} bytes; at most {max_bytes} bytes are read"
            ));
        }
        Ok(found.clone())
    }
}

/// Policies in files, which run elsewhere only.
#[derive(Debug)]
pub struct Elsewhere;

impl Finder for Elsewhere {
    fn refusal(&self) -> Option<String> {
        let sentence = "a policy of your own does not run in a browser, which has neither a compiler nor Python; name a built-in \
                        policy here, or run this scenario on your computer, with linkweir run";
        Some(sentence.to_owned())
    }

    fn c(&self, _file: &Path, _bytes: &[u8], _trusted: bool) -> Result<Found, String> {
        Err(self.refusal().unwrap_or_default())
    }

    fn python(&self, _file: &Path, _bytes: &[u8], _class: &str) -> Result<Found, String> {
        Err(self.refusal().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_most_bytes() {
        let mut brought = Brought::default();
        brought.add("one.csv".to_owned(), b"12345");
        let path = Path::new("one.csv");
        assert_eq!(brought.read(path, 5), Ok(b"12345".to_vec()));
        let fault = "has 5 bytes; at most 4 bytes are read".to_owned();
        assert_eq!(brought.read(path, 4), Err(fault));
    }
}
