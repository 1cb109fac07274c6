/* SPDX-License-Identifier: GPL-2.0-only */
/* vectors.S - the vectors of the self-test, as text; freed after loading */
	.section .init.rodata, "a"
	.globl linkweir_vectors
linkweir_vectors:
#define LINKWEIR_KIND(policy, kind) .incbin #policy;
#include "kinds.h"
	.globl linkweir_vectors_end
linkweir_vectors_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
