// SPDX-License-Identifier: BSD-3-Clause
//! The C interface of `linkweir-link`. The header `include/linkweir/link.h` is made from this file.
//!
//! `unsafe` is where pointers of the caller are followed: without that there is no C interface. Each function says what it requires
//! of its pointers, and each block which of that it relies on.
#![allow(non_camel_case_types)] // the names are those of C
#![allow(clippy::missing_safety_doc)] // "Requires" says it, in words that fit a header

use std::ffi::{c_char, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

use ::linkweir_link::{Dropped, Link, Packet, Reason, Received, Refused};

/// A link. It carries a number of the caller's for each packet. Calls for the same link must not overlap: if several threads use
/// it, each holds a lock.
pub struct linkweir_link(Link<u64>);

/// A packet to send.
#[repr(C)]
pub struct linkweir_packet {
    /// Index of its class.
    pub class_index: u32,
    /// Its length, without what the link adds.
    pub bytes: u32,
    /// Tells it apart from packets of other flows, where its class isolates flows. Numbers that differ by 1,024 share a queue.
    pub flow: u32,
    /// 0, or 1 if a policy may mark it instead of dropping it.
    pub ecn_capable: u8,
    /// 0, or 1 if it is an L4S packet, ECT(1) or CE; it counts where its class sorts them (flows = "dualpi2").
    pub l4s: u8,
    /// Comes out with it.
    pub payload: u64,
}

/// Why a packet did not arrive.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum linkweir_reason {
    /// It arrived.
    LINKWEIR_ARRIVED = 0,
    /// Its queue was full.
    LINKWEIR_LIMIT = 1,
    /// The policy dropped it.
    LINKWEIR_POLICY = 2,
    /// It waited longer than its class allows.
    LINKWEIR_AGE = 3,
    /// It was lost on the link, or for a reason that this header does not know.
    LINKWEIR_LOST = 4,
    /// The decoder behind a satellite gave it up.
    LINKWEIR_DECODER = 5,
    /// The buffer that restores the order gave up waiting for it.
    LINKWEIR_ORDER = 6,
}

/// Whether a link took a packet.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum linkweir_sent {
    /// It did.
    LINKWEIR_TAKEN = 0,
    /// No: there is no such class.
    LINKWEIR_NO_CLASS = 1,
    /// No: the packet has no bytes, or too many with the link's overhead.
    LINKWEIR_BAD_LENGTH = 2,
    /// No: the link's time is over.
    LINKWEIR_OVER = 3,
    /// No: an internal error broke the link; see linkweir_link_is_broken.
    LINKWEIR_BROKEN = 4,
}

/// What became of the packets of a class so far.
#[repr(C)]
pub struct linkweir_counts {
    /// Sent into the link.
    pub sent_pkts: u64,
    /// Arrived.
    pub arrived_pkts: u64,
    /// Arrived with a mark.
    pub marked_pkts: u64,
    /// Dropped or lost.
    pub dropped_pkts: u64,
}

/// A packet that came out.
#[repr(C)]
pub struct linkweir_result {
    /// The number that it was sent with.
    pub payload: u64,
    /// When it was sent, ns.
    pub sent_ns: u64,
    /// When it left its queue, ns. For a packet that did not arrive this is not known: it has the value of `sent_ns`.
    pub left_ns: u64,
    /// When it arrived, or was dropped or lost, ns.
    pub ended_ns: u64,
    /// Index of its class.
    pub class_index: u32,
    /// Its length, as it was sent.
    pub bytes: u32,
    /// Why it did not arrive, if so.
    pub reason: linkweir_reason,
    /// Whether the policy marked it.
    pub marked: bool,
}

/// Makes the link of a scenario in TOML. Returns NULL if the scenario has a fault. The message is then in `error`, if that is not
/// NULL, cut to `length` bytes with the 0 at its end. Free the link with linkweir_link_free.
///
/// Requires: `toml` is a text that ends with 0. `error` is NULL or has room for `length` bytes.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_from_toml(
    toml: *const c_char,
    error: *mut c_char,
    length: usize,
) -> *mut linkweir_link {
    // SAFETY: the text ends with 0.
    let text = unsafe { CStr::from_ptr(toml) };
    // SAFETY: `error` is NULL or has the room.
    unsafe { made(text, Link::from_toml, error, length) }
}

/// The same with a recorded capacity instead of the link's `rate` or `trace`. `name` is the name of the recording's file, which is
/// not read: its ending tells the format. `content` is what the file contains.
///
/// Requires: what linkweir_link_from_toml requires. `name` is a text that ends with 0, and `content` has `content_length` bytes.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_with_trace(
    toml: *const c_char,
    name: *const c_char,
    content: *const u8,
    content_length: usize,
    error: *mut c_char,
    length: usize,
) -> *mut linkweir_link {
    // SAFETY: both texts end with 0.
    let (text, name) = unsafe { (CStr::from_ptr(toml), CStr::from_ptr(name)) };
    let content = if content_length == 0 {
        &[]
    } else {
        // SAFETY: it has this many bytes.
        unsafe { std::slice::from_raw_parts(content, content_length) }
    };
    let name = name.to_string_lossy();
    // SAFETY: `error` is NULL or has the room.
    unsafe {
        made(
            text,
            |text| Link::with_trace(text, &name, content),
            error,
            length,
        )
    }
}

/// What `make` makes of a text.
///
/// # Safety
/// `error` must be NULL or have room for `length` bytes.
unsafe fn made(
    text: &CStr,
    make: impl FnOnce(&str) -> Result<Link<u64>, ::linkweir_link::Error>,
    error: *mut c_char,
    length: usize,
) -> *mut linkweir_link {
    let made = catch_unwind(AssertUnwindSafe(|| {
        let text = text
            .to_str()
            .map_err(|_| "the text must be UTF-8".to_owned())?;
        make(text).map_err(|fault| fault.to_string())
    }));
    let made = made.unwrap_or_else(|_| Err("internal error".to_owned()));
    let message = match made {
        Ok(link) => return Box::into_raw(Box::new(linkweir_link(link))),
        Err(message) => message,
    };
    if !error.is_null() && length > 0 {
        let kept = cut(&message, length - 1).as_bytes();
        // SAFETY: the caller has room for `length` bytes, and `kept` with a 0 has no more.
        unsafe {
            std::ptr::copy_nonoverlapping(kept.as_ptr().cast(), error, kept.len());
            error.add(kept.len()).write(0);
        }
    }
    std::ptr::null_mut()
}

/// The beginning of a text that has at most so many bytes, in whole characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Frees a link; NULL is allowed.
///
/// Requires: `link` is NULL, or was made here and not freed yet. No other call uses it meanwhile or later.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_free(link: *mut linkweir_link) {
    if !link.is_null() {
        // SAFETY: it was made by Box::into_raw, and nothing else frees or uses it.
        let link = unsafe { Box::from_raw(link) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(link)));
    }
}

/// The index of the class with this name; -1 if there is none. Classes are numbered from 0 in the order of the scenario.
///
/// Requires: `link` was made here and is not freed, and no other call changes it meanwhile. `name` is a text that ends with 0.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_class(
    link: *const linkweir_link,
    name: *const c_char,
) -> i32 {
    // SAFETY: the link lives and does not change, and the text ends with 0.
    let (link, name) = unsafe { (&*link, CStr::from_ptr(name)) };
    let find = || name.to_str().ok().and_then(|name| link.0.class(name));
    let found = catch_unwind(AssertUnwindSafe(find)).unwrap_or(None);
    found.map_or(-1, |class| class as i32)
}

/// Sends a packet at a time in ns. A time before the last one counts as that. A packet that is not taken changes nothing.
///
/// Requires: `link` was made here and is not freed, and no other call uses it meanwhile. All fields of `packet` are set.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_send(
    link: *mut linkweir_link,
    now_ns: u64,
    packet: *const linkweir_packet,
) -> linkweir_sent {
    // SAFETY: the link lives and no other call uses it, and the packet is set.
    let (link, packet) = unsafe { (&mut *link, &*packet) };
    let sent = Packet {
        class: packet.class_index as usize,
        bytes: packet.bytes,
        flow: packet.flow,
        ecn_capable: packet.ecn_capable != 0,
        l4s: packet.l4s != 0,
    };
    let send = AssertUnwindSafe(|| link.0.send_packet(now_ns, sent, packet.payload));
    match catch_unwind(send) {
        Ok(Ok(())) => linkweir_sent::LINKWEIR_TAKEN,
        Ok(Err(Refused::Class)) => linkweir_sent::LINKWEIR_NO_CLASS,
        Ok(Err(Refused::Bytes)) => linkweir_sent::LINKWEIR_BAD_LENGTH,
        Ok(Err(Refused::Over)) => linkweir_sent::LINKWEIR_OVER,
        Ok(Err(_)) | Err(_) => linkweir_sent::LINKWEIR_BROKEN,
    }
}

/// When to ask again, ns. UINT64_MAX: nothing will arrive or be dropped unless another packet is sent. Packets may still be inside
/// then, if the capacity stays 0, the link's time is over or the link is broken. Dropped packets that were not taken out do not
/// count: after each time, take them out with linkweir_link_dropped.
///
/// Requires: `link` was made here and is not freed, and no other call changes it meanwhile.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_next_ns(link: *const linkweir_link) -> u64 {
    // SAFETY: the link lives and does not change.
    let link = unsafe { &*link };
    let next_ns = catch_unwind(AssertUnwindSafe(|| link.0.next_ns()));
    next_ns.unwrap_or(None).unwrap_or(u64::MAX)
}

/// The time at which the link ends, ns. What has not arrived by then never does.
///
/// Requires: `link` was made here and is not freed, and no other call changes it meanwhile.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_end_ns(link: *const linkweir_link) -> u64 {
    // SAFETY: the link lives and does not change.
    let link = unsafe { &*link };
    catch_unwind(AssertUnwindSafe(|| link.0.end_ns())).unwrap_or(0)
}

/// Whether an internal error broke the link in an earlier call. It takes no packet then, and nothing more happens in it.
///
/// Requires: `link` was made here and is not freed, and no other call changes it meanwhile.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_is_broken(link: *const linkweir_link) -> bool {
    // SAFETY: the link lives and does not change.
    let link = unsafe { &*link };
    link.0.is_broken()
}

/// Puts the counts of a class into `counts`; false if there is no such class.
///
/// Requires: `link` was made here and is not freed, and no other call changes it meanwhile. `counts` has room for them.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_counts(
    link: *const linkweir_link,
    class_index: u32,
    counts: *mut linkweir_counts,
) -> bool {
    // SAFETY: the link lives and does not change.
    let link = unsafe { &*link };
    let Some(found) = link.0.counts(class_index as usize) else {
        return false;
    };
    let found = linkweir_counts {
        sent_pkts: found.sent_pkts,
        arrived_pkts: found.arrived_pkts,
        marked_pkts: found.marked_pkts,
        dropped_pkts: found.dropped_pkts,
    };
    // SAFETY: the caller has room for it.
    unsafe { counts.write(found) };
    true
}

/// Puts the next packet that has arrived by this time into `result`; false if there is none.
///
/// Requires: `link` was made here and is not freed, and no other call uses it meanwhile. `result` has room for one.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_receive(
    link: *mut linkweir_link,
    now_ns: u64,
    result: *mut linkweir_result,
) -> bool {
    // SAFETY: the link lives, and no other call uses it.
    let link = unsafe { &mut *link };
    let Ok(Some(packet)) = catch_unwind(AssertUnwindSafe(|| link.0.receive(now_ns))) else {
        return false;
    };
    // SAFETY: the caller has room for it.
    unsafe { result.write(arrived(&packet)) };
    true
}

/// Puts the next packet that was dropped or lost by this time into `result`; false if there is none. The link keeps them in memory
/// until they are taken out, unless linkweir_link_forget_dropped was called.
///
/// Requires: the same as linkweir_link_receive.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_dropped(
    link: *mut linkweir_link,
    now_ns: u64,
    result: *mut linkweir_result,
) -> bool {
    // SAFETY: the link lives, and no other call uses it.
    let link = unsafe { &mut *link };
    let Ok(Some(packet)) = catch_unwind(AssertUnwindSafe(|| link.0.dropped(now_ns))) else {
        return false;
    };
    // SAFETY: the caller has room for it.
    unsafe { result.write(dropped(&packet)) };
    true
}

/// Does not keep packets that are dropped or lost, from now on. They are still counted.
///
/// Requires: `link` was made here and is not freed, and no other call uses it meanwhile.
#[no_mangle]
pub unsafe extern "C" fn linkweir_link_forget_dropped(link: *mut linkweir_link) {
    // SAFETY: the link lives, and no other call uses it.
    let link = unsafe { &mut *link };
    link.0.forget_dropped();
}

fn arrived(packet: &Received<u64>) -> linkweir_result {
    linkweir_result {
        payload: packet.payload,
        sent_ns: packet.sent_ns,
        left_ns: packet.left_ns,
        ended_ns: packet.arrived_ns,
        class_index: packet.class as u32,
        bytes: packet.bytes,
        reason: linkweir_reason::LINKWEIR_ARRIVED,
        marked: packet.marked,
    }
}

fn dropped(packet: &Dropped<u64>) -> linkweir_result {
    linkweir_result {
        payload: packet.payload,
        sent_ns: packet.sent_ns,
        left_ns: packet.sent_ns,
        ended_ns: packet.dropped_ns,
        class_index: packet.class as u32,
        bytes: packet.bytes,
        reason: match packet.reason {
            Reason::Limit => linkweir_reason::LINKWEIR_LIMIT,
            Reason::Policy => linkweir_reason::LINKWEIR_POLICY,
            Reason::Age => linkweir_reason::LINKWEIR_AGE,
            Reason::Decoder => linkweir_reason::LINKWEIR_DECODER,
            Reason::Order => linkweir_reason::LINKWEIR_ORDER,
            _ => linkweir_reason::LINKWEIR_LOST,
        },
        marked: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message whose cut falls into a character of two bytes ends before it.
    #[test]
    fn messages_are_cut_between_characters() {
        let text = std::ffi::CString::new("[link]\nrate = \"\u{e9}\u{e9}\"\n").expect("no 0");
        let whole = {
            let mut room = [1; 300];
            // SAFETY: the text ends with 0, and the room has this length.
            let link = unsafe { linkweir_link_from_toml(text.as_ptr(), room.as_mut_ptr(), 300) };
            assert!(link.is_null());
            // SAFETY: the message ends with 0.
            unsafe { CStr::from_ptr(room.as_ptr()) }
                .to_str()
                .expect("UTF-8")
                .to_owned()
        };
        let begins = whole.find('\u{e9}').expect("the value is shown");
        for (length, kept) in [(begins + 2, begins), (begins + 3, begins + 2), (1, 0)] {
            let mut room = [1; 300];
            // SAFETY: as above.
            unsafe { linkweir_link_from_toml(text.as_ptr(), room.as_mut_ptr(), length) };
            // SAFETY: as above.
            let message = unsafe { CStr::from_ptr(room.as_ptr()) };
            assert_eq!(message.to_str(), Ok(&whole[..kept]));
        }
    }
}
