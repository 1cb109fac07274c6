// SPDX-License-Identifier: BSD-3-Clause
//! Real-time priority for the calling thread, so that it wakes on time however busy the machine is.

use thread_priority::unix::{
    set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
};
use thread_priority::ThreadPriority;

/// Asks for the lowest real-time priority and returns whether the thread has any. A thread that had a higher one keeps it.
/// The kernel's limit on the time of real-time threads keeps the machine usable.
#[must_use]
pub(crate) fn raise() -> bool {
    let has = || {
        matches!(
            thread_schedule_policy(),
            Ok(ThreadSchedulePolicy::Realtime(_))
        )
    };
    if has() {
        return true;
    }
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    // Without the right to it, the call fails. The emulator then reports how late it was.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, fifo);
    has()
}
