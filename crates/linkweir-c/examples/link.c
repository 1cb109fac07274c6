/* SPDX-License-Identifier: BSD-3-Clause */
/* Three packets over a link of 12 Mbit/s, on which voice goes first; a fourth has no room. */
#include <linkweir/link.h>

#include <inttypes.h>
#include <stdio.h>

static const char scenario[] = "[link]\n"
			       "rate = \"12Mbit\"\n"
			       "delay = \"20ms\"\n"
			       "[scheduler]\n"
			       "policy = \"strict\"\n"
			       "[[class]]\n"
			       "name = \"voice\"\n"
			       "[[class]]\n"
			       "name = \"rest\"\n"
			       "limit = \"1p\"\n";

int main(void)
{
	char error[200];
	struct linkweir_link *link = linkweir_link_from_toml(scenario, error, sizeof(error));
	struct linkweir_result result;
	struct linkweir_counts counts;
	uint64_t now_ns;

	if (link == NULL) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	const uint32_t voice = (uint32_t)linkweir_link_class(link, "voice");
	const uint32_t rest = (uint32_t)linkweir_link_class(link, "rest");
	const struct linkweir_packet packets[] = {
		{ .class_index = rest, .bytes = 1500, .payload = 1 },
		{ .class_index = rest, .bytes = 1500, .payload = 2 },
		{ .class_index = voice, .bytes = 1500, .payload = 3 },
		{ .class_index = rest, .bytes = 1500, .payload = 4 },
	};
	for (size_t at = 0; at < sizeof(packets) / sizeof(packets[0]); at++)
		if (linkweir_link_send(link, 0, &packets[at]) != LINKWEIR_TAKEN)
			return 1;
	while (linkweir_link_dropped(link, 0, &result))
		printf("%" PRIu64 " was dropped at %" PRIu64 " ns for reason %d\n", result.payload,
		       result.ended_ns, (int)result.reason);
	while ((now_ns = linkweir_link_next_ns(link)) != UINT64_MAX)
		while (linkweir_link_receive(link, now_ns, &result))
			printf("%" PRIu64 " arrived at %" PRIu64 " ns\n", result.payload, result.ended_ns);
	if (!linkweir_link_counts(link, rest, &counts))
		return 1;
	printf("rest: %" PRIu64 " of %" PRIu64 " arrived\n", counts.arrived_pkts, counts.sent_pkts);
	linkweir_link_free(link);
	return 0;
}
