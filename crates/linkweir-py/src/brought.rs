// SPDX-License-Identifier: BSD-3-Clause
//! Finds the policies that a scenario brings along: C files by `linkweir-user`, classes by `linkweir.own`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use linkweir_core::Maker;
use linkweir_sim::scenario::{Finder, Found};

use crate::python_policy::PythonMaker;

#[derive(Debug)]
pub struct Brought;

impl Finder for Brought {
    fn c(&self, file: &Path, bytes: &[u8], trusted: bool) -> Result<Found, String> {
        let policy = linkweir_user::c_policy(file, bytes, trusted)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut notes = Vec::new();
        if !policy.warnings.is_empty() {
            notes.push(format!("{name}: the compiler warns:\n{}", policy.warnings));
        }
        if !trusted {
            notes.push(format!(
                "{name} runs in a process of its own, which catches its faults and is slow; with trusted = true it runs as fast as \
                 the policies of the core, and a fault of its memory ends the whole program"
            ));
        }
        Ok(Found {
            maker: policy.maker,
            notes,
        })
    }

    fn python(&self, file: &Path, bytes: &[u8], class: &str) -> Result<Found, String> {
        /// Path and content of a file, and the class.
        type Key = (PathBuf, Vec<u8>, String);
        static KNOWN: OnceLock<Mutex<HashMap<Key, Arc<PythonMaker>>>> = OnceLock::new();
        let key = (file.to_owned(), bytes.to_vec(), class.to_owned());
        let known = KNOWN.get_or_init(Mutex::default);
        let found = known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        let maker = match found {
            Some(maker) => maker,
            None => {
                let maker = Arc::new(PythonMaker::new(file, bytes, class)?);
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(known.entry(key).or_insert(maker))
            }
        };
        Ok(Found {
            maker: maker as Arc<dyn Maker>,
            notes: vec![format!(
                "{class} is written in Python and slow: every packet calls it several times"
            )],
        })
    }
}
