/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/rr.c"
#define POLICY rr
#define STATE_BYTES (sizeof(struct rr_state) + QUEUES * sizeof(struct lw_link))
#include "../data_plane.h"
