/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* named.h - the policies that a command line names, or all if it names none. */
#ifndef LINKWEIR_NAMED_H
#define LINKWEIR_NAMED_H

#include <stdbool.h>
#include <string.h>

/* `names` ends with NULL, as argv does */
static bool is_named(const char *policy, char **names)
{
	char **name;

	for (name = names; *name; name++)
		if (!strcmp(*name, policy))
			return true;
	return !*names;
}

#endif
