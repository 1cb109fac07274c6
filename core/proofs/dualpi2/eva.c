/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/dualpi2.c"
#define PROOF_WIDEN -1099511627776, 1099511627776
#define POLICY dualpi2
#define STATE_BYTES (sizeof(struct dualpi2_state) + QUEUES)
#include "../data_plane.h"
