/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/codes.c"
#define PROOF_WIDEN QUEUES - 1, QUEUES
#define POLICY codes
#define STATE_BYTES (sizeof(struct pf_state) + QUEUES * (sizeof(struct pf_queue) + sizeof(struct lw_heap_row)))
#include "../data_plane.h"
