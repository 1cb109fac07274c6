// SPDX-License-Identifier: BSD-3-Clause
//! What can be wrong with a link, or with a packet.

use std::fmt;

use linkweir_sim::scenario::Fault;
use linkweir_sim::{NotTaken, RunError};

/// Why there is no link.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The scenario has a fault, in a line and a key.
    Scenario(Fault),
    /// The values contradict each other, or the policy refuses its parameters.
    Values(RunError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Scenario(fault) => fault.fmt(f),
            Error::Values(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Scenario(fault)
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Error {
        Error::Values(error)
    }
}

/// Why a link did not take a packet. The link and its clock are as they were before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such class.
    Class,
    /// The packet has no bytes, or too many with the link's overhead.
    Bytes,
    /// The time for which the link exists is over.
    Over,
    /// A policy that the program brings has panicked in an earlier call.
    Broken,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Class => f.write_str("the link has no such class"),
            Refused::Bytes => write!(
                f,
                "a packet must have 1 .. {} bytes, the link's overhead included",
                linkweir_sim::experiment::MAX_PACKET_BYTES - 1
            ),
            Refused::Over => {
                f.write_str("the link's time is over; give the scenario a longer duration")
            }
            Refused::Broken => f.write_str("the link's policy has failed; make another link"),
        }
    }
}

impl std::error::Error for Refused {}

impl From<NotTaken> for Refused {
    fn from(why: NotTaken) -> Refused {
        match why {
            NotTaken::Class => Refused::Class,
            NotTaken::Bytes => Refused::Bytes,
            NotTaken::Over => Refused::Over,
        }
    }
}
