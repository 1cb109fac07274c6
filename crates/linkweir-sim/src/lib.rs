// SPDX-License-Identifier: BSD-3-Clause
//! Event simulator of links whose capacity changes.
#![forbid(unsafe_code)]

pub mod experiment;
pub mod tcp;
