// SPDX-License-Identifier: BSD-3-Clause
//! What an acknowledgement or a timer lets the sender send.

/// What may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Nothing,
    /// The first segment, which opens the connection.
    Open,
    /// The acknowledgement of the answer to it, and new segments.
    Confirm,
    /// The lowest outstanding segment, whatever the window.
    Head,
    /// A tail loss probe: a new segment whatever the window, or the highest outstanding one.
    Probe,
    /// Lost segments, as far as the window allows.
    Lost {
        then_new: bool,
    },
    /// New segments, as far as the window allows.
    New,
    /// New segments; lost ones only if none was sent.
    NewFirst,
}
