/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core uses of <string.h>, for targets without a C library, such as WebAssembly. The functions are Rust's. */
#ifndef LINKWEIR_FREESTANDING_STRING_H
#define LINKWEIR_FREESTANDING_STRING_H
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

#endif
