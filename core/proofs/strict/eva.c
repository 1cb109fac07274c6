/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/strict.c"
#define POLICY strict
#define STATE_BYTES (sizeof(struct strict_state) + QUEUES * sizeof(struct strict_queue))
#include "../data_plane.h"
