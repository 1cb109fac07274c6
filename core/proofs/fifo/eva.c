/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/fifo.c"
#define PROOF_WIDEN QUEUES - 1, QUEUES
#define POLICY fifo
#define STATE_BYTES (sizeof(struct fifo_state) + QUEUES * sizeof(struct lw_heap_row))
#include "../data_plane.h"
