/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/exp_rule.c"
#define POLICY exp_rule
#define STATE_BYTES (sizeof(struct lw_urgent) + QUEUES * (sizeof(struct lw_claim) + sizeof(struct lw_urgent_queue)) + (QUEUES + 63) / 64 * sizeof(uint64_t))
#include "../data_plane.h"
