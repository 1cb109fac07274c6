/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* What a packet adds to the level of its queue: the step of rocq/Charge.v that rocq/Identity.v sums up. */
#include "credit.h"
