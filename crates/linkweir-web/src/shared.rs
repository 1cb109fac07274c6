// SPDX-License-Identifier: BSD-3-Clause
//! The functions that this module and the page's worker call of each other, by names and with numbers only.
//!
//! There is no `unsafe` block. The worker reads and writes the memory itself, at addresses that it gets here, and only between
//! calls. What the lint `unsafe_code` finds are declarations: names that must be unique in the module, and a function of the
//! worker, which takes and returns a number.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::panic;

use crate::{answer, parts};

unsafe extern "C" {
    /// Reports the simulated time, s; 0 ends the run.
    safe fn linkweir_progress(simulated_s: f64) -> u32;
}

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for a request; the address where the worker writes it. If this or a run traps, the answer has the sentence of the
/// panic, and the worker must not call this instance again.
#[no_mangle]
pub extern "C" fn linkweir_room(bytes: usize) -> usize {
    panic::set_hook(Box::new(|info| {
        let mut trap = Vec::new();
        for part in ["trap", &info.to_string()] {
            parts::add(&mut trap, part.as_bytes());
        }
        ANSWER.set(trap);
    }));
    REQUEST.with_borrow_mut(|request| {
        *request = vec![0; bytes];
        request.as_mut_ptr() as usize
    })
}

/// Runs the request.
#[no_mangle]
pub extern "C" fn linkweir_run() {
    let request = REQUEST.take();
    ANSWER.set(answer(&request, &mut |simulated_s| {
        linkweir_progress(simulated_s) != 0
    }));
}

/// The address of the answer.
#[no_mangle]
pub extern "C" fn linkweir_answer_at() -> usize {
    ANSWER.with_borrow(|answer| answer.as_ptr() as usize)
}

/// The length of the answer.
#[no_mangle]
pub extern "C" fn linkweir_answer_bytes() -> usize {
    ANSWER.with_borrow(Vec::len)
}
