// SPDX-License-Identifier: BSD-3-Clause
//! Files that receive the calls of the policies, for those who compare decisions: one for each peer, in the folder that the
//! environment's `LINKWEIR_CALLS` names. Without it nothing is recorded.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use linkweir_plane::deciding::Out;

const FOLDER: &str = "LINKWEIR_CALLS";

/// Where the calls of the policy towards a peer are recorded; none: they are not.
///
/// # Errors
/// The file cannot be made; the message names it.
pub(crate) fn of(peer: &str) -> io::Result<Option<Out>> {
    std::env::var_os(FOLDER).map_or(Ok(None), |folder| make(Path::new(&folder), peer).map(Some))
}

fn make(folder: &Path, peer: &str) -> io::Result<Out> {
    let path = folder.join(format!("{peer}.vec"));
    let file = File::create(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{FOLDER}: {}: {error}", path.display())))?;
    Ok(Box::new(BufWriter::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = make(Path::new("/nonexistent"), "berlin").err().unwrap();
        assert_eq!(
            error.to_string(),
            "LINKWEIR_CALLS: /nonexistent/berlin.vec: No such file or directory (os error 2)"
        );
    }
}
