// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into a gateway that runs under valgrind. There /proc/self/exe is valgrind, so a gateway that starts itself once
// more, as its keeper, gets the path in the variable SELF_EXE instead.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path_of(const char *file)
{
    const char *self = getenv("SELF_EXE");
    return self && strcmp(file, "/proc/self/exe") == 0 ? self : file;
}

int execvp(const char *file, char *const arguments[])
{
    int (*next)(const char *, char *const[]) = (int (*)(const char *, char *const[]))dlsym(RTLD_NEXT, "execvp");
    return next(path_of(file), arguments);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    __typeof__(&posix_spawnp) next = (__typeof__(&posix_spawnp))dlsym(RTLD_NEXT, "posix_spawnp");
    return next(pid, path_of(file), actions, attributes, arguments, environment);
}
