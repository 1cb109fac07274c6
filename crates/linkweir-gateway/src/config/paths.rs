// SPDX-License-Identifier: BSD-3-Clause
//! Paths: the default of the control socket, and the files that a configuration names.

use std::path::{Path, PathBuf};

use linkweir_config::reader::{Entry, Source};
use linkweir_config::Fault;

/// Folder of the control sockets unless the configuration names another.
pub const CONTROL_FOLDER: &str = "/run/linkweir";

/// Path of the control socket of a device.
#[must_use]
pub fn control_socket(device: &str) -> PathBuf {
    Path::new(CONTROL_FOLDER).join(format!("{device}.sock"))
}

/// A path in a configuration, relative to the folder of its file.
pub(super) fn path(entry: &Entry<'_, '_>) -> Result<PathBuf, Fault> {
    let text = entry.text()?;
    if text.is_empty() || text.contains('\0') {
        return Err(entry.fault("must be a path"));
    }
    Ok(folder(entry.source()).join(text))
}

/// A path for a socket, which the kernel keeps in 108 bytes with a zero at their end.
pub(super) fn socket_path(entry: &Entry<'_, '_>) -> Result<PathBuf, Fault> {
    const MOST_BYTES: usize = 107;
    let found = path(entry)?;
    let bytes = found.as_os_str().len();
    if bytes > MOST_BYTES {
        return Err(entry.fault(format!(
            "{} has {bytes} bytes, and a socket's path at most {MOST_BYTES}; choose a shorter one",
            found.display()
        )));
    }
    if found.file_name().is_none() {
        return Err(entry.fault("must be the path of a file"));
    }
    Ok(found)
}

/// The folder of a configuration's file.
pub(super) fn folder(source: &Source<'_>) -> PathBuf {
    source.file().map(folder_of).unwrap_or_default()
}

/// The folder of a file.
#[must_use]
pub fn folder_of(file: &Path) -> PathBuf {
    file.parent().map(Path::to_path_buf).unwrap_or_default()
}
