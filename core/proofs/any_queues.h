/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* any_queues.h - for proofs with WP: lw_n, the number of queues in the annotations of list.h, is any number. */
#ifndef PROOF_ANY_QUEUES_H
#define PROOF_ANY_QUEUES_H

/*@ axiomatic any_queues { logic integer lw_n; } */

#endif
