/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/pds.c"
#define POLICY pds
#define STATE_BYTES (sizeof(struct pds_state) + QUEUES * sizeof(struct pds_queue) + HISTORY * sizeof(struct pds_entry))
#include "../data_plane.h"
