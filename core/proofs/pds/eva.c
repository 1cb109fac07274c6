/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* HISTORY 0: any k, history=decayed|infinite. Otherwise history=ring with k = HISTORY, since k sizes the state. */
#include "../ctz.h"
#include "../../src/pds.c"
#define POLICY pds
#define PROOF_WIDEN (HISTORY ? HISTORY - 1 : 0)
#define STATE_BYTES (sizeof(struct pds_state) + QUEUES * sizeof(struct pds_queue) + HISTORY * sizeof(struct pds_entry))
#define PROOF_SETTLE(params) \
	((params)[PDS_HISTORY] = HISTORY ? PDS_RING : Frama_C_interval(0, 1) ? PDS_DECAYED : PDS_INFINITE, \
	 (params)[PDS_K] = HISTORY ? HISTORY : (params)[PDS_K])
#include "../data_plane.h"
