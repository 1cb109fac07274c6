/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/drr.c"
#define POLICY drr
#define STATE_BYTES (sizeof(struct drr_state) + QUEUES * (sizeof(struct drr_queue) + sizeof(struct lw_link)))
#include "../data_plane.h"
