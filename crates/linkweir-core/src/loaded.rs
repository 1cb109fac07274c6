// SPDX-License-Identifier: BSD-3-Clause
//! Loads a policy from a library that was compiled while we run.

use std::ffi::c_char;
use std::path::Path;

use libloading::{Library, Symbol};

use crate::ffi;
use crate::info::{self, PolicyInfo};

/// Loads the policy of a library. The library stays loaded until the program ends, as what it declares is used until then.
///
/// The library has two functions: `linkweir_table` returns the policy's table, and `linkweir_fault` says what in that
/// table is against the contract, or returns null.
///
/// # Errors
/// Why the library cannot be loaded, or what is wrong with its table.
///
/// # Safety
/// The library was compiled for this program from a policy and nothing else: loading it runs no code, its two functions
/// have the types that are used here, and its policy keeps the contract. That it writes nothing but its own state is
/// promised by the person who wrote it; nothing here can check it.
pub unsafe fn load(library: &Path) -> Result<&'static PolicyInfo, String> {
    // SAFETY: the caller's promise: loading it runs no code.
    let library = unsafe { Library::new(library) }.map_err(|error| error.to_string())?;
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the caller's promise: the functions have these types.
    let (table, fault): (
        Symbol<'static, extern "C" fn() -> *const ffi::Policy>,
        Symbol<'static, extern "C" fn() -> *const c_char>,
    ) = unsafe {
        (
            library
                .get(b"linkweir_table")
                .map_err(|error| error.to_string())?,
            library
                .get(b"linkweir_fault")
                .map_err(|error| error.to_string())?,
        )
    };
    // SAFETY: the text is null or NUL-terminated, and the library is never unloaded.
    if let Some(fault) = unsafe { info::text(fault()) } {
        return Err(fault.to_owned());
    }
    // SAFETY: the table is constant data of a library that is never unloaded, and `linkweir_fault` found every pointer in
    // it that must not be null.
    let table = unsafe { &*table() };
    Ok(Box::leak(Box::new(info::describe(table))))
}
