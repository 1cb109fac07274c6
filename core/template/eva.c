/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/NAME.c"
#define POLICY NAME
#define STATE_BYTES sizeof(struct NAME_state)
#include "../data_plane.h"
