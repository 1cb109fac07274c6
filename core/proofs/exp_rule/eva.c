/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/exp_rule.c"
#define POLICY exp_rule
#define STATE_BYTES (sizeof(struct lw_urgent) + QUEUES * sizeof(struct lw_urgent_queue))
#include "../data_plane.h"
