/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * units.h - values with units, as tc writes them: rates 20mbit (bit/s without a unit), times 100ms (microseconds without a unit),
 * sizes 15kb (bytes, powers of 1024), fractions 40% or 0.4. Numbers of bits take the same prefixes as rates. Packets (with an
 * optional p) and other numbers are whole. All are decimal.
 */
#ifndef LINKWEIR_TC_UNITS_H
#define LINKWEIR_TC_UNITS_H

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linkweir/policy.h>

struct suffix {
	const char *text;
	double times;
};

static const struct suffix rate_suffixes[] = {
	{ "", 1 }, { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 }, { "tbit", 1e12 }, { "kibit", 1024. },
	{ "mibit", 1048576. }, { "gibit", 1073741824. }, { "tibit", 1099511627776. }, { "bps", 8 }, { "kbps", 8e3 },
	{ "mbps", 8e6 }, { "gbps", 8e9 }, { "tbps", 8e12 }, { NULL, 0 },
};
static const struct suffix time_suffixes[] = {
	{ "", 1e3 }, { "s", 1e9 }, { "sec", 1e9 }, { "secs", 1e9 }, { "ms", 1e6 }, { "msec", 1e6 }, { "msecs", 1e6 },
	{ "us", 1e3 }, { "usec", 1e3 }, { "usecs", 1e3 }, { "ns", 1 }, { "nsec", 1 }, { "nsecs", 1 }, { NULL, 0 },
};
static const struct suffix size_suffixes[] = {
	{ "", 1 }, { "b", 1 }, { "k", 1024. }, { "kb", 1024. }, { "m", 1048576. }, { "mb", 1048576. }, { "g", 1073741824. },
	{ "gb", 1073741824. }, { "kbit", 128. }, { "mbit", 131072. }, { "gbit", 134217728. }, { NULL, 0 },
};
static const struct suffix bits_suffixes[] = {
	{ "", 1 }, { "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 }, { NULL, 0 },
};
static const struct suffix pkts_suffixes[] = { { "", 1 }, { "p", 1 }, { NULL, 0 } };
static const struct suffix ppm_suffixes[] = { { "", 1e6 }, { "%", 1e4 }, { NULL, 0 } };
static const struct suffix number_suffixes[] = { { "", 1 }, { NULL, 0 } };

static const struct suffix *suffixes_of(enum lw_unit unit)
{
	switch (unit) {
	case LW_BPS:
		return rate_suffixes;
	case LW_NS:
		return time_suffixes;
	case LW_BYTES:
		return size_suffixes;
	case LW_BITS:
		return bits_suffixes;
	case LW_PKTS:
		return pkts_suffixes;
	case LW_PPM:
		return ppm_suffixes;
	default:
		return number_suffixes;
	}
}

static const char *unit_example(enum lw_unit unit)
{
	switch (unit) {
	case LW_BPS:
		return "a rate such as 20mbit";
	case LW_NS:
		return "a time such as 100ms";
	case LW_BYTES:
		return "a size such as 15kb";
	case LW_BITS:
		return "bits such as 10kbit";
	case LW_PKTS:
		return "a whole number of packets";
	case LW_PPM:
		return "a part such as 40%";
	default:
		return "a whole number";
	}
}

static const char *unit_suffix(enum lw_unit unit)
{
	switch (unit) {
	case LW_BPS:
		return "_bps";
	case LW_NS:
		return "_ns";
	case LW_BYTES:
		return "_bytes";
	case LW_BITS:
		return "_bits";
	case LW_PKTS:
		return "_pkts";
	case LW_PPM:
		return "_ppm";
	default:
		return "";
	}
}

static const struct suffix *find_suffix(enum lw_unit unit, const char *text)
{
	const struct suffix *suffix = suffixes_of(unit);

	while (suffix->text && strcasecmp(text, suffix->text))
		suffix++;
	return suffix->text ? suffix : NULL;
}

/* A whole number without a suffix is exact to the last bit. A small value is not rounded to 0, which may have a special meaning. */
static bool read_value(enum lw_unit unit, const char *text, uint64_t *value)
{
	bool whole = unit == LW_PKTS || unit == LW_NUMBER;
	const struct suffix *suffix;
	char *end;
	double number;

	if (((text[0] < '0' || text[0] > '9') && text[0] != '.') || !strncasecmp(text, "0x", 2))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (!errno && (whole || !*end) && (suffix = find_suffix(unit, end)) && suffix->times == 1)
		return *value != LW_UNSET;
	if (whole)
		return false;
	number = strtod(text, &end);
	suffix = find_suffix(unit, end);
	if (!suffix || !(number * suffix->times < 18446744073709549568.))
		return false;
	*value = (uint64_t)(number * suffix->times + 0.5);
	return *value || !number;
}

/* the largest of these units that leaves at most three decimals, so that reading it gives the same value */
static const char *write_value(enum lw_unit unit, uint64_t value, char *text, size_t size)
{
	static const struct {
		enum lw_unit unit;
		uint64_t times;
		const char *text;
	} units[] = {
		{ LW_BPS, 1000000000, "Gbit" }, { LW_BPS, 1000000, "Mbit" }, { LW_BPS, 1000, "Kbit" }, { LW_BPS, 1, "bit" },
		{ LW_NS, 1000000000, "s" }, { LW_NS, 1000000, "ms" }, { LW_NS, 1000, "us" }, { LW_NS, 1, "ns" },
		{ LW_BYTES, 1073741824, "Gb" }, { LW_BYTES, 1048576, "Mb" }, { LW_BYTES, 1024, "Kb" }, { LW_BYTES, 1, "b" },
		{ LW_BITS, 1000000000, "Gbit" }, { LW_BITS, 1000000, "Mbit" }, { LW_BITS, 1000, "Kbit" }, { LW_BITS, 1, "bit" },
		{ LW_PKTS, 1, "p" }, { LW_PPM, 10000, "%" },
	};
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t times = units[i].times, thousandths;
		bool decimal = unit != LW_BYTES && times >= 1000;

		if (units[i].unit != unit || (value < times && times > 1 && unit != LW_PPM) || (unit == LW_BYTES && value % times))
			continue;
		if (decimal && unit == LW_PPM) {
			snprintf(text, size, "%" PRIu64 ".%04" PRIu64, value / times, value % times);
		} else if (decimal) {
			if (value % (times / 1000))
				continue;
			thousandths = value % times / (times / 1000);
			snprintf(text, size, "%" PRIu64 ".%03" PRIu64, value / times, thousandths);
		} else {
			snprintf(text, size, "%" PRIu64, value / times);
		}
		if (strchr(text, '.')) {
			char *end = text + strlen(text);

			while (end[-1] == '0')
				*--end = 0;
			if (end[-1] == '.')
				*--end = 0;
		}
		strncat(text, units[i].text, size - strlen(text) - 1);
		return text;
	}
	snprintf(text, size, "%" PRIu64, value);
	return text;
}

#endif
