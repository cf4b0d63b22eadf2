/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Preloaded by a test of dcx_info: replaces the machine's PCI devices by those
 * in the folder that DCX_FAKE_PCI names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_PCI "/sys/bus/pci/devices/"

typedef int (*fake_glob_t)(const char *pattern, int flags,
                           int (*error)(const char *path, int error),
                           glob_t *paths);

int glob(const char *pattern, int flags,
         int (*error)(const char *path, int error), glob_t *paths)
{
    fake_glob_t real   = (fake_glob_t)(uintptr_t)dlsym(RTLD_NEXT, "glob");
    const char *folder = getenv("DCX_FAKE_PCI");
    char path[256];

    if ((folder != NULL) && !strncmp(pattern, FAKE_PCI, strlen(FAKE_PCI))) {
        snprintf(path, sizeof(path), "%s/%s", folder,
                 pattern + strlen(FAKE_PCI));
        pattern = path;
    }
    return real(pattern, flags, error, paths);
}
