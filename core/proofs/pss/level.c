/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * How far a level can be above the present after a change of the constants, and when a queue returns to its high level:
 * pss_stand makes pss_fits true, and a queue that is due fits its high level (`returns`).
 */
#include "credit.h"
