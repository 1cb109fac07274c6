/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* any_queues.h - for proofs with WP: the number of queues that list.h speaks of, whatever it is. */
/*@ axiomatic any_queues { logic integer lw_n; } */
