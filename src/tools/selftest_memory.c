/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds the free memory of the host and of the cgroups; see selftest_memory.h.
 * Files: the kernel's Documentation/admin-guide/cgroup-v1/memory.rst and
 * cgroup-v2.rst.
 */
#include "selftest_memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <ucs/sys/math.h>

/* The files of a version of cgroups */
struct selftest_cgroup {
    const char *mount, *limit, *usage;
    const char *cache; /* key in memory.stat: pages that the kernel drops */
};

static const struct selftest_cgroup selftest_cgroup_v1 = {
    "/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
};

static const struct selftest_cgroup selftest_cgroup_v2 = {
    "",
    "memory.max",
    "memory.current",
    "inactive_file",
};

static FILE *selftest_memory_open(const char *folder, const char *name)
{
    char path[PATH_MAX];

    return (snprintf(path, sizeof(path), "%s/%s", folder, name) < PATH_MAX) ?
               fopen(path, "re") :
               NULL;
}

/* Returns SIZE_MAX if there is no such file, or no number in it ("max"). */
static size_t selftest_memory_number(const char *folder, const char *name)
{
    FILE *file   = selftest_memory_open(folder, name);
    size_t value = SIZE_MAX;

    if (file != NULL) {
        if (fscanf(file, "%zu", &value) != 1) {
            value = SIZE_MAX;
        }
        fclose(file);
    }
    return value;
}

static size_t selftest_memory_stat(const char *folder, const char *key)
{
    FILE *file   = selftest_memory_open(folder, "memory.stat");
    size_t value = 0;
    char name[64];

    while ((file != NULL) && (fscanf(file, "%63s %zu", name, &value) == 2)) {
        if (!strcmp(name, key)) {
            fclose(file);
            return value;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return 0;
}

static size_t selftest_memory_level(const char *folder,
                                    const struct selftest_cgroup *cgroup)
{
    size_t limit = selftest_memory_number(folder, cgroup->limit);
    size_t usage = selftest_memory_number(folder, cgroup->usage);

    if ((limit == SIZE_MAX) || (usage == SIZE_MAX)) {
        return limit;
    }
    usage -= ucs_min(usage, selftest_memory_stat(folder, cgroup->cache));
    return limit - ucs_min(limit, usage);
}

/* Returns the fewest free bytes of a cgroup and its ancestors; SIZE_MAX if none
 * has a limit. A cgroup whose usage is not readable counts as empty. */
static size_t selftest_memory_path(const char *root, const char *path,
                                   const struct selftest_cgroup *cgroup)
{
    const size_t base = strlen(root) + strlen(cgroup->mount);
    size_t free       = SIZE_MAX;
    char folder[PATH_MAX];
    char *slash;

    if (snprintf(folder, sizeof(folder), "%s%s%s", root, cgroup->mount, path) >=
        PATH_MAX) {
        return free;
    }
    do {
        free  = ucs_min(free, selftest_memory_level(folder, cgroup));
        slash = strrchr(folder + base, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    } while (slash != NULL);
    return free;
}

size_t selftest_memory_cgroup(const char *list, const char *root)
{
    FILE *file  = fopen(list, "re");
    size_t free = SIZE_MAX;
    char line[PATH_MAX + 256];
    const struct selftest_cgroup *cgroup;
    char *controllers, *path;

    if (file == NULL) {
        return free;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        controllers = strchr(line, ':'); /* "4:memory:/path", "0::/path" */
        path        = (controllers == NULL) ? NULL : strchr(++controllers, ':');
        if (path == NULL) {
            continue;
        }
        *path++ = '\0';
        if (*controllers == '\0') {
            cgroup = &selftest_cgroup_v2;
        } else if (strstr(controllers, "memory") != NULL) {
            cgroup = &selftest_cgroup_v1;
        } else {
            continue;
        }
        free = ucs_min(free, selftest_memory_path(root, path, cgroup));
    }
    fclose(file);
    return free;
}

size_t selftest_memory_free(void)
{
    size_t cgroup = selftest_memory_cgroup("/proc/self/cgroup",
                                           "/sys/fs/cgroup");
    struct sysinfo info;

    return (sysinfo(&info) != 0) ?
               cgroup :
               ucs_min(cgroup, (size_t)info.freeram * info.mem_unit);
}
