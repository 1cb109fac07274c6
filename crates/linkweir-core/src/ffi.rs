// SPDX-License-Identifier: BSD-3-Clause
//! The C side of the contract, `core/include/linkweir/policy.h`, written by hand; the tests compare every size and
//! offset with what the C compiler laid out.

use std::ffi::{c_char, c_void};

/// `struct lw_queue`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// When the first packet arrived, ns; valid while `backlog_pkts` is not 0.
    pub head_arrival_ns: u64,
    /// Rate of the channel to this queue now, bit/s; 0: blocked.
    pub rate_bps: u64,
    /// Packets waiting.
    pub backlog_pkts: u32,
    /// Length of the first packet; valid while `backlog_pkts` is not 0.
    pub head_bytes: u32,
}

#[repr(C)]
pub(crate) struct View {
    pub now_ns: u64,
    pub link_bps: u64,
    pub queues: *const Queue,
    pub nqueues: u32,
}

pub(crate) const NONE: u32 = u32::MAX;
pub(crate) const NEVER: u64 = u64::MAX;
pub(crate) const ABI: u32 = 3;
/// Bit that is set in the answer to `victim` if the queue is to lose its head, not its tail.
pub(crate) const FROM_HEAD: u32 = 1 << 31;
/// `enum lw_verdict`
pub(crate) mod verdict {
    pub const PASS: u32 = 0;
    pub const MARK: u32 = 1;
    pub const DROP: u32 = 2;
}
pub(crate) const AT_INIT: u32 = 1;
/// `enum lw_trait`
pub(crate) const IGNORES_RATES: u32 = 1;
pub(crate) const SORTED_BY_ECN: u32 = 2;

#[repr(C)]
pub(crate) struct Param {
    pub name: *const c_char,
    pub help: *const c_char,
    pub choices: *const c_char,
    pub min: u64,
    pub max: u64,
    pub def: u64,
    pub unit: u32,
    pub flags: u32,
}

#[repr(C)]
pub(crate) struct Stat {
    pub name: *const c_char,
    pub help: *const c_char,
    pub unit: u32,
}

#[repr(C)]
pub(crate) struct Fault {
    pub what: *const c_char,
    pub param: *const c_char,
    pub queue: u32,
}

pub(crate) type Event = unsafe extern "C" fn(*mut c_void, *const View, u32, u32);
pub(crate) type Setup = unsafe extern "C" fn(*mut c_void, *const View, *const u64, *const u64);

#[repr(C)]
pub(crate) struct Policy {
    pub name: *const c_char,
    pub help: *const c_char,
    pub abi: u32,
    pub traits: u32,
    pub max_queues: u32,
    pub nparams: u32,
    pub nqparams: u32,
    pub nstats: u32,
    pub params: *const Param,
    pub qparams: *const Param,
    pub stats: *const Stat,
    pub shared_limit: *const c_char,
    pub state_size: unsafe extern "C" fn(u32, *const u64) -> usize,
    pub check:
        Option<unsafe extern "C" fn(*const View, *const u64, *const u64, *mut Fault) -> bool>,
    pub init: Setup,
    pub pick: unsafe extern "C" fn(*mut c_void, *const View, *mut u64) -> u32,
    pub enqueued: Option<Event>,
    pub sent: Option<Event>,
    pub dropped: Option<Event>,
    pub rated: Option<unsafe extern "C" fn(*mut c_void, *const View)>,
    pub change: Option<Setup>,
    pub victim: Option<unsafe extern "C" fn(*mut c_void, *const View, u32, u32) -> u32>,
    pub leaving: Option<unsafe extern "C" fn(*mut c_void, *const View, u32, bool) -> u32>,
    pub expired: Option<unsafe extern "C" fn(*const c_void, *const View, u32) -> bool>,
    pub observe: Option<unsafe extern "C" fn(*const c_void, *const View, u32, *mut i64)>,
}

// SAFETY: a policy table is constant data with static lifetime: C never writes it after the program is loaded.
unsafe impl Sync for Policy {}

/// One row of the registry.
#[repr(transparent)]
pub(crate) struct Row(pub *const Policy);

// SAFETY: the registry is a constant array of pointers to constant tables.
unsafe impl Sync for Row {}

extern "C" {
    /// The first of `lw_npolicies` rows.
    pub(crate) static lw_policies: [Row; 0];
    pub(crate) static lw_npolicies: u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    extern "C" {
        static lw_layout: [u64; 0];
        static lw_layout_count: usize;
    }

    /// Size of a struct, then the offsets of its fields.
    macro_rules! layout {
        ($name:ident: $($field:ident)*) => {
            vec![size_of::<$name>(), $(offset_of!($name, $field)),*]
        };
    }

    fn structs() -> Vec<usize> {
        let structs = [
            layout!(Queue: backlog_bytes head_arrival_ns rate_bps backlog_pkts head_bytes),
            layout!(View: now_ns link_bps queues nqueues),
            layout!(Param: name help choices min max def unit flags),
            layout!(Stat: name help unit),
            layout!(Fault: what param queue),
            layout!(
                Policy: name help abi traits max_queues nparams nqparams nstats params qparams stats
                    shared_limit state_size check init pick enqueued sent dropped rated change victim leaving expired
                    observe
            ),
        ];
        structs.concat()
    }

    fn constants() -> Vec<usize> {
        vec![
            crate::Unit::Number as usize,
            crate::Unit::Bps as usize,
            crate::Unit::Ns as usize,
            crate::Unit::Bytes as usize,
            crate::Unit::Bits as usize,
            crate::Unit::Pkts as usize,
            crate::Unit::Ppm as usize,
            crate::Unit::Choice as usize,
            AT_INIT as usize,
            FROM_HEAD as usize,
            verdict::PASS as usize,
            verdict::MARK as usize,
            verdict::DROP as usize,
            size_of::<u32>(),
            ABI as usize,
            crate::MAX_QUEUES,
            crate::MAX_PACKET_BYTES as usize,
            crate::MOST_DROPS as usize,
            IGNORES_RATES as usize,
            SORTED_BY_ECN as usize,
            crate::MIN_RATE_BPS as usize,
            crate::MAX_RATE_BPS as usize,
            crate::MAX_NOW_NS as usize,
        ]
    }

    #[test]
    fn layout_is_that_of_the_c_compiler() {
        let ours = [structs(), constants()].concat().into_iter();
        let ours: Vec<u64> = ours.map(|value| value as u64).collect();
        // SAFETY: layout.c defines the count and that many elements, all constant.
        let theirs = unsafe {
            std::slice::from_raw_parts((&raw const lw_layout).cast::<u64>(), lw_layout_count)
        };
        assert_eq!(ours, theirs);
    }
}
