/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/pf.c"
#define POLICY pf
#define STATE_BYTES (sizeof(struct pf_state) + QUEUES * sizeof(struct pf_queue) + (QUEUES + 1) / 2 * sizeof(uint64_t))
#define STEP_KINDS 3
#include "../step_heap.h"
