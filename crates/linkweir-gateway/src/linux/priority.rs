// SPDX-License-Identifier: BSD-3-Clause
//! Real-time priority for the thread that asks, so that it wakes on time whatever else the machine does.

use thread_priority::unix::{
    set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
};
use thread_priority::ThreadPriority;

/// Asks for the least of it, and says whether the thread has any now; who had more before keeps it. The kernel's limit on the
/// time real-time threads may take keeps the machine usable.
#[must_use]
pub fn raise() -> bool {
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
    // Without the right to it, it is not given; the emulator says how late it was then.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, fifo);
    has()
}
