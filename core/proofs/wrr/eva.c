/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/wrr.c"
#define POLICY wrr
#define STATE_BYTES (sizeof(struct wrr_state) + QUEUES * (sizeof(struct wrr_queue) + sizeof(struct lw_link)))
#include "../data_plane.h"
