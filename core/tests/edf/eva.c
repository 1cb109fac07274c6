/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/edf.c"
#define POLICY edf
#define STATE_BYTES (QUEUES * sizeof(uint64_t))
#include "../data_plane.h"
