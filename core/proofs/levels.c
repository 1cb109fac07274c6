/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "ctz.h"
#include "../src/levels.h"
#include "sort.h"
