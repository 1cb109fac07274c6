/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/fq_codel.c"
#define PROOF_WIDEN -1048576, 1048576
#define POLICY fq_codel
#define STATE_BYTES (sizeof(struct fq_codel_state) + QUEUES * (sizeof(struct fq_codel_queue) + sizeof(struct lw_link)))
#include "../data_plane.h"
