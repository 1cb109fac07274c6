// SPDX-License-Identifier: BSD-3-Clause
//! Signals by which the system would stop or end a process because of a file or a terminal.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Makes two signals harmless for this thread, and for those and the processes that it starts from now on: SIGXFSZ ends a
/// process that writes beyond the limit of file sizes, and SIGTTOU stops one that writes to a terminal in the background.
/// Blocked, the first leaves an error of the write, and the second lets the write pass.
///
/// # Errors
/// Those of the system.
pub(crate) fn survive_writes() -> nix::Result<()> {
    [Signal::SIGXFSZ, Signal::SIGTTOU]
        .into_iter()
        .collect::<SigSet>()
        .thread_block()
}

/// Starts a program while no signal is blocked. The gateway blocks some that a program expects, and programs inherit that.
///
/// # Errors
/// Those of the system.
pub(crate) fn unblocked<T>(start: impl FnOnce() -> T) -> nix::Result<T> {
    let before = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let started = start();
    before.thread_set_mask()?;
    Ok(started)
}
