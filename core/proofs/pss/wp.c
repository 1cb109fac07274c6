/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The level of a queue and the time when it returns to its high level, as `level` and `due` of rocq/Pss.v have them. */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/pss.c"

/*@ logic integer pss_later(integer a, integer b) = a > b ? a : b;
    logic integer pss_above(integer a, integer b) = a > b ? a - b : 0; */

/*@ requires valid: \valid_read(queue);
    assigns \nothing;
    ensures later: \result == pss_later(queue->mark_ns, now); */
static uint64_t pss_origin(const struct pss_queue *queue, uint64_t now);

/*@ requires valid: \valid_read(queue);
    assigns \nothing;
    ensures held: queue->empty ==>
	\result == pss_later(pss_above(queue->tat_ns, pss_later(queue->mark_ns, now)), queue->floor_ns);
    ensures level: !queue->empty ==> \result == pss_above(queue->tat_ns, pss_later(queue->mark_ns, now)); */
static uint64_t pss_level(const struct pss_queue *queue, uint64_t now);

/*@ requires valid: \valid_read(queue);
    assigns \nothing;
    ensures at_once: pss_above(queue->tat_ns, queue->resume_ns) <= queue->mark_ns ==> \result == 0;
    ensures due: pss_above(queue->tat_ns, queue->resume_ns) > queue->mark_ns ==>
	\result == queue->tat_ns - queue->resume_ns; */
static uint64_t pss_due(const struct pss_queue *queue);
