/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Causes in the machine and in the loading of the transport, and the search
 * through all causes; see info_why.h.
 */
#include "info_why.h"
#include "info_soft.h"
#include "info_ucx.h"
#include "info_versions.h"

#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INFO_LOADER "libdcx_loader.so"
#define INFO_PLUGIN "libuct_dcx.so"

/* --- the machine ---------------------------------------------------------- */
/* Returns true if PCI has a device of Mellanox/NVIDIA, which lacks its driver
 * if verbs shows no device. */
static bool info_has_idle_nic(void)
{
    glob_t paths;
    bool found = false;
    char vendor[16];
    FILE *file;

    if (glob("/sys/bus/pci/devices/*/vendor", 0, NULL, &paths) != 0) {
        return false;
    }
    for (size_t i = 0; (i < paths.gl_pathc) && !found; i++) {
        file = fopen(paths.gl_pathv[i], "r");
        if (file != NULL) {
            found = (fgets(vendor, sizeof(vendor), file) != NULL) &&
                    !strncmp(vendor, "0x15b3", 6);
            fclose(file);
        }
    }
    globfree(&paths);
    return found;
}

/* Finds the first device in sysfs; libibverbs lists none. */
static bool info_has_kernel_device(char *name, size_t max)
{
    DIR *dir = opendir("/sys/class/infiniband");
    struct dirent *entry;
    bool found = false;

    while ((dir != NULL) && !found && ((entry = readdir(dir)) != NULL)) {
        found = (entry->d_name[0] != '.');
        snprintf(name, max, "%.60s", entry->d_name);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

/* Copies the entry of LD_PRELOAD that ends in @name to @path. */
static bool info_preloaded(const char *name, char *path, size_t max)
{
    const char *preload = getenv("LD_PRELOAD");
    char *copy          = strdup((preload == NULL) ? "" : preload);
    bool found          = false;
    char *entry, *rest, *base;

    for (entry = strtok_r(copy, " :", &rest); (entry != NULL) && !found;
         entry = strtok_r(NULL, " :", &rest)) {
        base  = strrchr(entry, '/');
        found = !strcmp((base == NULL) ? entry : base + 1, name);
        snprintf(path, max, "%s", entry);
    }
    free(copy);
    return found;
}

static void info_no_device(const struct info_report *report,
                           struct info_verdict *verdict)
{
    char name[64], path[PATH_MAX];

    if (report->first != NULL) {
        return;
    }
    if (info_has_kernel_device(name, sizeof(name))) {
        info_blame(verdict,
                   "%s is there, but no program can open it: the "
                   "kernel's module ib_uverbs is not loaded",
                   name);
        info_fix(verdict, "ask the administrator to load ib_uverbs (modprobe "
                          "ib_uverbs)");
        return;
    }
    if (info_preloaded("libsofthca.so", path, sizeof(path))) {
        info_soft_blame(report->soft_error, verdict);
        return;
    }
    info_blame(verdict, "this machine has no RDMA device");
    if (info_has_idle_nic()) {
        info_fix(verdict, "ask the administrator to load mlx5_ib (modprobe "
                          "mlx5_ib)");
    } else {
        info_fix(verdict, "dcx-run --soft COMMAND");
    }
}

/* Says how to set the link of a port up. @name: "mlx5_0:1" */
static void info_fix_link(struct info_verdict *verdict, const char *name)
{
    int length = strcspn(name, ":");
    char path[PATH_MAX], netdev[64] = "";
    FILE *file;

    snprintf(path, sizeof(path),
             "/sys/class/infiniband/%.*s/ports/%s/gid_attrs/ndevs/0", length,
             name, name + length + 1);
    file = fopen(path, "r");
    if ((file != NULL) && (fscanf(file, "%63s", netdev) == 1)) {
        info_fix(verdict,
                 "ask the administrator to bring up %s (ip link set "
                 "up dev %s)",
                 netdev, netdev);
    } else {
        info_fix(verdict,
                 "ask the administrator to look at the cable and the "
                 "switch of %s",
                 name);
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* A cause: no port is usable, for the reason in the report: the device is not
 * mlx5, cannot be opened or has no DC; a limit; the port is down. The reason of
 * the last port is taken; without ports, that of the first device. */
static void info_no_port(const struct info_report *report,
                         struct info_verdict *verdict)
{
    const struct info_part *part, *worst = report->first;

    if (info_report_usable(report)) {
        return;
    }
    for (part = report->first; part != NULL; part = part->next) {
        worst = part->is_port ? part : worst;
    }
    info_blame(verdict, "%s: %s", worst->name, worst->why);
    if (worst->fix[0] != '\0') {
        info_fix(verdict, "%s", worst->fix);
    } else if (strstr(worst->why, "UCX_") != NULL) {
        info_fix_variable(verdict, worst->why);
    } else if (worst->is_port && (strstr(worst->why, "down") != NULL)) {
        info_fix_link(verdict, worst->name);
    } else {
        info_fix(verdict, "dcx-run --soft COMMAND");
    }
}

/* --- the module ----------------------------------------------------------- */
static void info_no_loader(const struct info_report *report,
                           struct info_verdict *verdict)
{
    char path[PATH_MAX];

    (void)report;
    if (!info_preloaded(INFO_LOADER, path, sizeof(path))) {
        info_blame(verdict, "LD_PRELOAD has no " INFO_LOADER ", which shows "
                            "the transport to UCX");
        info_fix(verdict, "dcx-run COMMAND");
    } else if (access(path, R_OK) != 0) {
        info_blame(verdict, "LD_PRELOAD names %s, which cannot be read: %m",
                   path);
        info_fix(verdict, "dcx-run COMMAND");
    }
}

/* A cause: the plugin is not in the place where the loader looks for it. */
static void info_no_plugin(const struct info_report *report,
                           struct info_verdict *verdict)
{
    const char *plugin = getenv("DCX_PLUGIN");
    char path[PATH_MAX];
    char *slash;

    (void)report;
    if ((plugin == NULL) || (*plugin == '\0')) {
        info_preloaded(INFO_LOADER, path, sizeof(path) - sizeof(INFO_PLUGIN));
        slash = strrchr(path, '/');
        strcpy((slash == NULL) ? path : slash + 1, INFO_PLUGIN);
        plugin = path;
    }
    if (dlopen(plugin, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == NULL) {
        info_blame(verdict, "the transport does not load: %s", dlerror());
        if (getenv("DCX_PLUGIN") != NULL) {
            info_fix(verdict, "unset DCX_PLUGIN");
        } else {
            info_fix(
                verdict, "%s",
                info_is_packaged() ?
                    "ask the administrator to install the package dcx again" :
                    "make install");
        }
    }
}

const info_cause_t info_device_causes[] = {
    info_no_device, info_no_port, info_no_loader, info_no_plugin, NULL,
};

/* --- the search ----------------------------------------------------------- */
static bool info_find_cause(const info_cause_t *causes,
                            const struct info_report *report,
                            struct info_verdict *verdict)
{
    for (; *causes != NULL; causes++) {
        (*causes)(report, verdict);
        if (verdict->reason[0] != '\0') {
            return true;
        }
    }
    return false;
}

bool info_why_print(const struct info_report *report, bool json, FILE *out)
{
    struct info_verdict verdict = {};
    bool is_used;

    is_used = !info_find_cause(info_device_causes, report, &verdict) &&
              !info_find_cause(info_ucx_causes, report, &verdict);
    memcpy(verdict.unknown, report->unknown, sizeof(verdict.unknown));
    info_verdict_print(&verdict, info_ucx_lane(),
                       is_used ? info_ucx_sockaddr() : NULL, json, out);
    return is_used;
}
