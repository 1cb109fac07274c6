/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/codel.c"
#define POLICY codel
#define STATE_BYTES (sizeof(struct codel_state))
#include "../data_plane.h"
