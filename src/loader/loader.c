/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * libdcx_loader.so, preloaded by dcx-run: shows the transport to UCX.
 *
 * Up to UCX 1.21, UCX opens only modules of a list that was compiled into it;
 * UCX_MODULE_DIR adds a folder, not a module. From 1.22 on it opens any module
 * in its own folder and in those of UCX_PLUGIN_PATH, which can replace this
 * library, but for derived datatypes. When libuct.so looks for its transports,
 * it calls ucs_load_modules("uct", ...) of libucs.so. This library interposes
 * that function: its own calls the real one, then opens libuct_dcx.so, whose
 * constructor registers the transport. Without HAVE_VIEWS, a process that never
 * uses UCT pays only for the mapping of this file.
 *
 * It must not link with UCX: it is preloaded into every process of a job.
 *
 * With HAVE_VIEWS the same library also interposes UCP, MPI_Type_commit(),
 * MPI_Type_dup(), and puts and gets of OpenSHMEM: see views/hook/hook.c.
 */
#define _GNU_SOURCE
#include "loader/loader.h"
#include "common/ucx_home.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOADER_PLUGIN "libuct_dcx.so"

/* ucs_load_modules() of UCX (ucs/sys/module.h); @init_once points to an
 * ucs_init_once_t. */
typedef void (*loader_load_modules_t)(const char *framework,
                                      const char *modules, void *init_once,
                                      unsigned flags);

static pthread_once_t loader_once = PTHREAD_ONCE_INIT;

static void *_Atomic loader_plugin_handle; /* NULL until it is open */

void ucs_load_modules(const char *framework, const char *modules,
                      void *init_once, unsigned flags)
    __attribute__((visibility("default")));

static void __attribute__((format(printf, 1, 2)))
loader_error(const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    fprintf(stderr, "dcx: %s; continuing without the dcx transport\n", line);
}

/* Looks in @scope, then in @library, which stays referenced. If a component
 * that was dlopen()ed has loaded UCX, as in Open MPI, @scope does not reach
 * UCX's symbols; a handle of the library does. */
void *loader_ucx_symbol(void *scope, const char *library, const char *symbol)
{
    void *addr = dlsym(scope, symbol);
    void *handle;

    if (addr != NULL) {
        return addr;
    }

    handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return (handle == NULL) ? NULL : dlsym(handle, symbol);
}

/* Returns the function that ours interposes, or NULL. */
static void *loader_real_load_modules(void)
{
    return loader_ucx_symbol(RTLD_NEXT, "libucs.so.0", "ucs_load_modules");
}

/* Writes DIR/@name to @path, where DIR holds the object that defines @addr.
 * Returns 0 or a negative errno. */
static int loader_path_beside(void *addr, const char *name, char *path,
                              size_t max)
{
    const char *slash;
    Dl_info info;
    int len;

    if (!dladdr(addr, &info) || (info.dli_fname == NULL)) {
        return -ENOENT;
    }

    slash = strrchr(info.dli_fname, '/');
    len   = (slash == NULL) ? 0 : (int)(slash - info.dli_fname) + 1;
    len   = snprintf(path, max, "%.*s%s", len, info.dli_fname, name);
    return (len < (int)max) ? 0 : -ENAMETOOLONG;
}

/* Returns the version of the UCX that runs, or NULL. Only libucp has it. For a
 * process that uses only libuct, loads the libucp beside its libucs. */
static const char *loader_ucx_version(void)
{
    const char *(*get_version)(void);
    char path[PATH_MAX];
    void *handle;

    get_version = loader_ucx_symbol(RTLD_DEFAULT, "libucp.so.0",
                                    "ucp_get_version_string");
    if (get_version != NULL) {
        return get_version();
    }

    if (loader_path_beside(loader_real_load_modules(), "libucp.so.0", path,
                           sizeof(path))) {
        return NULL;
    }

    handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        return NULL;
    }

    get_version = dlsym(handle, "ucp_get_version_string");
    return (get_version == NULL) ? NULL : get_version();
}

/* Fails unless the UCX that runs has the version that dcx was built for: a
 * transport is compiled against the internal structures of one version. */
static int loader_check_version(void)
{
    const char *version = loader_ucx_version();
    Dl_info info;

    if (version == NULL) {
        loader_error("built for UCX " DCX_UCX_VERSION ", but the version of "
                     "UCX in this process is unknown: put its libucp.so.0 "
                     "beside its libucs.so.0");
        return -EINVAL;
    }

    if (!strcmp(version, DCX_UCX_VERSION)) {
        return 0;
    }

    loader_error("built for UCX " DCX_UCX_VERSION ", but this process runs "
                 "%s; %sbuild dcx for that UCX (see dcx-run --why)",
                 version,
                 (dladdr(version, &info) && (info.dli_fname != NULL) &&
                  ucx_home_is_shadowed(info.dli_fname)) ?
                     "put " DCX_UCX_LIBDIR " first in LD_LIBRARY_PATH, or " :
                     "");
    return -EINVAL;
}

static void loader_open_plugin(void)
{
    const char *plugin = secure_getenv("DCX_PLUGIN");
    char path[PATH_MAX];

    if (loader_check_version()) {
        return;
    }

    if ((plugin == NULL) || (*plugin == '\0')) {
        if (loader_path_beside(loader_open_plugin, LOADER_PLUGIN, path,
                               sizeof(path))) {
            loader_error("cannot find the folder of " LOADER_PLUGIN
                         ": set DCX_PLUGIN to the path of that file");
            return;
        }
        plugin = path;
    }

    /* uct_component_unregister() leaves the component in UCX's list: the
     * library must stay mapped */
    loader_plugin_handle = dlopen(plugin,
                                  RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (loader_plugin_handle == NULL) {
        loader_error("failed to load the transport: %s", dlerror());
    }
}

void *loader_plugin(void)
{
    return loader_plugin_handle;
}

void ucs_load_modules(const char *framework, const char *modules,
                      void *init_once, unsigned flags)
{
    loader_load_modules_t real = loader_real_load_modules();

    if (real == NULL) {
        fputs("dcx: cannot find ucs_load_modules() in libucs.so.0, so that UCX "
              "loads none of its modules: run this program without dcx-run\n",
              stderr);
        return;
    }

    real(framework, modules, init_once, flags);
    if (!strcmp(framework, "uct")) {
        pthread_once(&loader_once, loader_open_plugin);
    }
}
