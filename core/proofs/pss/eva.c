/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/pss.c"
#define POLICY pss
#define STATE_BYTES (sizeof(struct pss_state) + QUEUES * (sizeof(struct pss_queue) + sizeof(struct pss_setting) + 3 * sizeof(uint32_t)))
#include "../data_plane.h"
