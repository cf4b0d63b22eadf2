/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads the versions of libraries, of the driver and of the MPIs; see
 * info_versions.h.
 */
#include "info_versions.h"
#include "info_mpi.h"
#include "common/ucx_home.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Stores the file of a library in @path, without symbolic links. @return true
 * if the library loads */
static bool info_library(const char *name, char *path)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_GLOBAL);
    struct link_map *map;

    return (handle != NULL) && (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) &&
           (realpath(map->l_name, path) != NULL);
}

/* Returns UCX's version; NULL: there is no UCX. @path: its file, of PATH_MAX
 * bytes */
static const char *info_ucx_version(char *path)
{
    const char *(*get_version)(void);

    if (!info_library("libucp.so.0", path)) {
        return NULL;
    }
    get_version = dlsym(RTLD_DEFAULT, "ucp_get_version_string");
    return (get_version == NULL) ? NULL : get_version();
}

static void info_versions_row_ucx(struct info_part *part)
{
    struct info_row *row = info_part_add(part, "UCX", NULL);
    char path[PATH_MAX];
    const char *version = info_ucx_version(path);

    info_row_found(row, "%s", (version == NULL) ? "none" : version);
    info_row_needs(row, DCX_UCX_VERSION);
    row->is_bad = (version == NULL) || strcmp(version, DCX_UCX_VERSION);
}

/* Appends rdma-core's version, which ends the names of its libraries:
 * libibverbs.so.1.14.44.0 */
static void info_versions_row_verbs(struct info_part *part)
{
    struct info_row *row = info_part_add(part, "rdma-core", NULL);
    char path[PATH_MAX], version[32];
    const char *name;

    row->is_bad = !info_library("libibverbs.so.1", path);
    name        = row->is_bad ? NULL : strstr(path, "libibverbs.so.");
    if ((name == NULL) ||
        (sscanf(name, "libibverbs.so.%*d.%*d.%31s", version) != 1)) {
        strcpy(version, row->is_bad ? "none" : "unknown");
    }
    info_row_found(row, "%s", version);
}

/* Appends the driver's version: that of the kernel, and that of mlx5_core if it
 * has its own, as NVIDIA's driver does. */
static void info_versions_row_driver(struct info_part *part)
{
    struct info_row *row = info_part_add(part, "driver", NULL);
    const char *preload  = getenv("LD_PRELOAD");
    char version[64]     = "";
    struct utsname kernel;
    FILE *file;

    if ((preload != NULL) && (strstr(preload, "libsofthca.so") != NULL)) {
        info_row_found(row, "softhca " DCX_VERSION);
        return;
    }
    uname(&kernel);
    file = fopen("/sys/module/mlx5_core/version", "r");
    if ((file != NULL) && (fscanf(file, "%63s", version) != 1)) {
        version[0] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
    info_row_found(row, "Linux %.64s%s%s", kernel.release,
                   (version[0] == '\0') ? "" : ", mlx5_core ", version);
}

/* Appends an MPI. @what: how it was built, if it is installed */
static void info_versions_row_mpi(struct info_part *part, const char *name,
                                  const struct info_mpi *mpi, const char *what,
                                  const char *needs)
{
    struct info_row *row = info_part_add(part, name, NULL);

    if (mpi->version[0] == '\0') {
        info_row_found(row, "none");
    } else {
        info_row_found(row, "%s, %s", mpi->version, what);
        row->is_bad = !mpi->has_ucx;
    }
    info_row_needs(row, "%s", needs);
}

void info_versions_report(struct info_part *part)
{
    struct info_mpi mpi;

    snprintf(part->name, sizeof(part->name), "versions");
    info_row_found(info_part_add(part, "dcx", NULL), DCX_VERSION);
    info_versions_row_ucx(part);
    info_versions_row_verbs(part);
    info_versions_row_driver(part);
    info_mpi_find_ompi(&mpi);
    info_versions_row_mpi(part, "Open MPI", &mpi,
                          mpi.has_ucx ? "with UCX" : "without UCX",
                          "optional, with UCX");
    info_mpi_find_mpich(&mpi);
    info_versions_row_mpi(part, "MPICH", &mpi, mpi.device, "optional, ch4:ucx");
}

void info_versions_print_json(const struct info_part *part, FILE *out)
{
    fputs("{\"dcx\": \"" DCX_VERSION "\", \"ucx\": \"" DCX_UCX_VERSION "\", "
          "\"versions\": ",
          out);
    info_rows_print_json(part, out);
}

/* Returns PREFIX of "PREFIX/lib/libucp.so.0.0.0"; NULL if it is that of the
 * system. Changes @path. */
static char *info_prefix(char *path)
{
    char *end;

    for (unsigned i = 0; i < 2; i++) {
        end = strrchr(path, '/');
        if (end == NULL) {
            return NULL;
        }
        *end = '\0';
    }
    return (!strncmp(path, "/usr", 4) || !strncmp(path, "/lib", 4) ||
            (path[0] == '\0')) ?
               NULL :
               path;
}

int info_is_packaged(void)
{
    return !strncmp(DCX_LIBDIR, "/usr/lib", 8);
}

/* Says how to get dcx for UCX @version, whose libucp is @path. */
static void info_fix_version(struct info_verdict *verdict, const char *version,
                             char *path)
{
    const char *home   = ucx_home_is_shadowed(path) ?
                             "export LD_LIBRARY_PATH=" DCX_UCX_LIBDIR
                           ":$LD_LIBRARY_PATH, or " :
                             "";
    const char *prefix = info_prefix(path);

    if ((prefix == NULL) && info_is_packaged()) {
        info_fix(verdict,
                 "%sask the administrator for the package dcx for "
                 "UCX %s",
                 home, version);
    } else if (prefix == NULL) {
        info_fix(verdict, "%scontrib/quickstart", home);
    } else {
        info_fix(verdict,
                 "%s./configure --with-ucx=%.200s "
                 "--with-ucx-source=TREE && make install",
                 home, prefix);
    }
}

void info_versions_ucx(struct info_verdict *verdict)
{
    char path[PATH_MAX];
    const char *version = info_ucx_version(path);

    if (version == NULL) {
        info_blame(verdict, "UCX is not installed: %s", dlerror());
        info_fix(verdict, "install UCX " DCX_UCX_VERSION);
    } else if (strcmp(version, DCX_UCX_VERSION)) {
        info_blame(verdict,
                   "dcx was built for UCX " DCX_UCX_VERSION ", this "
                   "is UCX %s, %.250s",
                   version, path);
        info_fix_version(verdict, version, path);
    }
}
