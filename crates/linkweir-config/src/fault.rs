// SPDX-License-Identifier: BSD-3-Clause
//! What is wrong with an input, and where.

use std::fmt;
use std::path::PathBuf;

/// One fault of a scenario or of a file it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// File at fault; none when the scenario did not come from a file.
    pub file: Option<PathBuf>,
    /// Line of the file, from 1; none when the fault is about the file as a whole.
    pub line: Option<usize>,
    /// Key at fault, such as `class[1].rate`; empty when none is to blame.
    pub key: String,
    /// The given value, as written and shortened; empty when there was none.
    pub value: String,
    /// The fault, the allowed values and the cure.
    pub message: String,
}

/// Longest value that is repeated in full.
const SHOWN_CHARS: usize = 60;

impl Fault {
    /// A fault of a file that is not tied to one of its keys.
    #[must_use]
    pub fn in_file(file: PathBuf, line: Option<usize>, message: impl Into<String>) -> Self {
        Fault {
            file: Some(file),
            line,
            key: String::new(),
            value: String::new(),
            message: message.into(),
        }
    }
}

/// One line of at most `SHOWN_CHARS` printable characters.
pub fn shorten(text: &str) -> String {
    let mut shown = String::new();
    for (i, c) in text.trim().chars().enumerate() {
        if i == SHOWN_CHARS || c == '\n' || c == '\r' {
            shown.push_str("...");
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        if !self.key.is_empty() {
            f.write_str(&self.key)?;
            if !self.value.is_empty() {
                write!(f, " = {}", self.value)?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
