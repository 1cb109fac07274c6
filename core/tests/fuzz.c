/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fuzz.c - the random lives of body.h for libFuzzer. With LINKWEIR_CORPUS it has a main() that runs each given file once, so
 * that what a fuzzer found stays tested with any compiler.
 */
#include "body.h"

#ifdef __cplusplus
extern "C"
#endif
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct body_counts counts;
	char wrong[512];

	memset(&counts, 0, sizeof(counts));
	if (size <= 4096 && !body_lives(data, size, &counts, wrong, sizeof(wrong))) {
		fprintf(stderr, "%s\n", wrong);
		abort();
	}
	return 0;
}

#ifdef LINKWEIR_CORPUS
int main(int argc, char **argv)
{
	static uint8_t data[4096];
	int i;

	for (i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");

		if (!file) {
			fprintf(stderr, "%s cannot be read\n", argv[i]);
			return 2;
		}
		LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), file));
		fclose(file);
	}
	printf("%d lives of the corpus held\n", argc - 1);
	return argc > 1 ? 0 : 2;
}
#endif
