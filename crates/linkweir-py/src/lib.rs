// SPDX-License-Identifier: BSD-3-Clause
//! The native half of the Python package `linkweir`; not a public interface.
#![deny(unsafe_code)]
