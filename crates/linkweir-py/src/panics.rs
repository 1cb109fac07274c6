// SPDX-License-Identifier: BSD-3-Clause
//! A panic is a defect of ours; users see one sentence about it, not a stack trace. A user's policy that breaks the contract
//! unwinds in the same way, and what it did is told as it is.

use std::cell::RefCell;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};

use linkweir_core::Broken;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics off stderr; their message is kept for [`caught`].
pub fn keep_quiet() {
    set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|l| format!("{}:{}", l.file(), l.line()))
            .unwrap_or_default();
        let payload = info.payload();
        let literal = payload.downcast_ref::<&str>().copied();
        let what = literal
            .or(payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown cause");
        LAST.with(|last| *last.borrow_mut() = Some(format!("{what} ({place})")));
    }));
}

/// Runs `work`; a panic becomes a message.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        if let Some(Broken(what)) = payload.downcast_ref() {
            return what.clone();
        }
        let what = LAST
            .with(|last| last.borrow_mut().take())
            .unwrap_or_default();
        format!("internal error, please report it with the scenario: {what}")
    })
}
