/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/fifo.c"
#define POLICY fifo
#define STATE_BYTES 8
#include "../data_plane.h"
