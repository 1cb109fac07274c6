/* SPDX-License-Identifier: BSD-3-Clause */
/* A link for a program's own packets, without clock or socket. Made of src/lib.rs by cbindgen. */

#ifndef LINKWEIR_LINK_H
#define LINKWEIR_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 Why a packet did not arrive.
 */
enum linkweir_reason {
  /*
   It arrived.
   */
  LINKWEIR_ARRIVED = 0,
  /*
   Its queue was full.
   */
  LINKWEIR_LIMIT = 1,
  /*
   The policy dropped it.
   */
  LINKWEIR_POLICY = 2,
  /*
   It waited longer than its class allows.
   */
  LINKWEIR_AGE = 3,
  /*
   It was lost on the link, or for a reason that this header does not know.
   */
  LINKWEIR_LOST = 4,
  /*
   The decoder behind a satellite gave it up.
   */
  LINKWEIR_DECODER = 5,
  /*
   The buffer that restores the order gave up waiting for it.
   */
  LINKWEIR_ORDER = 6,
};

/*
 Whether a link took a packet.
 */
enum linkweir_sent {
  /*
   It did.
   */
  LINKWEIR_TAKEN = 0,
  /*
   No: there is no such class.
   */
  LINKWEIR_NO_CLASS = 1,
  /*
   No: the packet has no bytes, or too many with the link's overhead.
   */
  LINKWEIR_BAD_LENGTH = 2,
  /*
   No: the link's time is over.
   */
  LINKWEIR_OVER = 3,
  /*
   No: an internal error broke the link; see linkweir_link_is_broken.
   */
  LINKWEIR_BROKEN = 4,
};

/*
 A link. It carries a number of the caller's for each packet. Calls for the same link must not overlap: if several threads use
 it, each holds a lock.
 */
struct linkweir_link;

/*
 A packet to send.
 */
struct linkweir_packet {
  /*
   Index of its class.
   */
  uint32_t class_index;
  /*
   Its length, without what the link adds.
   */
  uint32_t bytes;
  /*
   Tells it apart from packets of other flows, where its class isolates flows. Numbers that differ by 1,024 share a queue.
   */
  uint32_t flow;
  /*
   0, or 1 if a policy may mark it instead of dropping it.
   */
  uint8_t ecn_capable;
  /*
   0, or 1 if it is an L4S packet, ECT(1) or CE; it counts where its class sorts them (flows = "dualpi2").
   */
  uint8_t l4s;
  /*
   Comes out with it.
   */
  uint64_t payload;
};

/*
 What became of the packets of a class so far.
 */
struct linkweir_counts {
  /*
   Sent into the link.
   */
  uint64_t sent_pkts;
  /*
   Arrived.
   */
  uint64_t arrived_pkts;
  /*
   Arrived with a mark.
   */
  uint64_t marked_pkts;
  /*
   Dropped or lost.
   */
  uint64_t dropped_pkts;
};

/*
 A packet that came out.
 */
struct linkweir_result {
  /*
   The number that it was sent with.
   */
  uint64_t payload;
  /*
   When it was sent, ns.
   */
  uint64_t sent_ns;
  /*
   When it left its queue, ns. For a packet that did not arrive this is not known: it has the value of `sent_ns`.
   */
  uint64_t left_ns;
  /*
   When it arrived, or was dropped or lost, ns.
   */
  uint64_t ended_ns;
  /*
   Index of its class.
   */
  uint32_t class_index;
  /*
   Its length, as it was sent.
   */
  uint32_t bytes;
  /*
   Why it did not arrive, if so.
   */
  enum linkweir_reason reason;
  /*
   Whether the policy marked it.
   */
  bool marked;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes the link of a scenario in TOML. Returns NULL if the scenario has a fault. The message is then in `error`, if that is not
 NULL, cut to `length` bytes with the 0 at its end. Free the link with linkweir_link_free.

 Requires: `toml` is a text that ends with 0. `error` is NULL or has room for `length` bytes.
 */
struct linkweir_link *linkweir_link_from_toml(const char *toml,
                                              char *error,
                                              size_t length);

/*
 The same with a recorded capacity instead of the link's `rate` or `trace`. `name` is the name of the recording's file, which is
 not read: its ending tells the format. `content` is what the file contains.

 Requires: what linkweir_link_from_toml requires. `name` is a text that ends with 0, and `content` has `content_length` bytes.
 */
struct linkweir_link *linkweir_link_with_trace(const char *toml,
                                               const char *name,
                                               const uint8_t *content,
                                               size_t content_length,
                                               char *error,
                                               size_t length);

/*
 Frees a link; NULL is allowed.

 Requires: `link` is NULL, or was made here and not freed yet. No other call uses it meanwhile or later.
 */
void linkweir_link_free(struct linkweir_link *link);

/*
 The index of the class with this name; -1 if there is none. Classes are numbered from 0 in the order of the scenario.

 Requires: `link` was made here and is not freed, and no other call changes it meanwhile. `name` is a text that ends with 0.
 */
int32_t linkweir_link_class(const struct linkweir_link *link,
                            const char *name);

/*
 Sends a packet at a time in ns. A time before the last one counts as that. A packet that is not taken changes nothing.

 Requires: `link` was made here and is not freed, and no other call uses it meanwhile. All fields of `packet` are set.
 */
enum linkweir_sent linkweir_link_send(struct linkweir_link *link,
                                      uint64_t now_ns,
                                      const struct linkweir_packet *packet);

/*
 When to ask again, ns. UINT64_MAX: nothing will arrive or be dropped unless another packet is sent. Packets may still be inside
 then, if the capacity stays 0, the link's time is over or the link is broken. Dropped packets that were not taken out do not
 count: after each time, take them out with linkweir_link_dropped.

 Requires: `link` was made here and is not freed, and no other call changes it meanwhile.
 */
uint64_t linkweir_link_next_ns(const struct linkweir_link *link);

/*
 The time at which the link ends, ns. What has not arrived by then never does.

 Requires: `link` was made here and is not freed, and no other call changes it meanwhile.
 */
uint64_t linkweir_link_end_ns(const struct linkweir_link *link);

/*
 Whether an internal error broke the link in an earlier call. It takes no packet then, and nothing more happens in it.

 Requires: `link` was made here and is not freed, and no other call changes it meanwhile.
 */
bool linkweir_link_is_broken(const struct linkweir_link *link);

/*
 Puts the counts of a class into `counts`; false if there is no such class.

 Requires: `link` was made here and is not freed, and no other call changes it meanwhile. `counts` has room for them.
 */
bool linkweir_link_counts(const struct linkweir_link *link,
                          uint32_t class_index,
                          struct linkweir_counts *counts);

/*
 Puts the next packet that has arrived by this time into `result`; false if there is none.

 Requires: `link` was made here and is not freed, and no other call uses it meanwhile. `result` has room for one.
 */
bool linkweir_link_receive(struct linkweir_link *link,
                           uint64_t now_ns,
                           struct linkweir_result *result);

/*
 Puts the next packet that was dropped or lost by this time into `result`; false if there is none. The link keeps them in memory
 until they are taken out, unless linkweir_link_forget_dropped was called.

 Requires: the same as linkweir_link_receive.
 */
bool linkweir_link_dropped(struct linkweir_link *link,
                           uint64_t now_ns,
                           struct linkweir_result *result);

/*
 Does not keep packets that are dropped or lost, from now on. They are still counted.

 Requires: `link` was made here and is not freed, and no other call uses it meanwhile.
 */
void linkweir_link_forget_dropped(struct linkweir_link *link);

#ifdef __cplusplus
} // extern "C"
#endif // __cplusplus

#endif /* LINKWEIR_LINK_H */
