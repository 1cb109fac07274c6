/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* With the contracts that fits.c proves: no sum, difference or product in these calls overflows. */
#include "fits.c"
