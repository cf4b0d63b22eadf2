/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads what is in use of the pools of dcx: the files "in_use" of its
 * interfaces, in UCX's virtual file system, as ucx_vfs shows them. UCX has the
 * functions for that in the process itself.
 */
#include "pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uct/api/uct.h>
#include <ucs/type/status.h>
#include <ucs/vfs/base/vfs_obj.h>

enum { MAX_NAMES = 16, MAX_PATH = 256, MAX_TEXT = 4096 };

struct names {
    unsigned num;
    char name[MAX_NAMES][64];
};

static char pools_first[MAX_TEXT];

static void pools_add_name(const char *name, void *arg)
{
    struct names *names = arg;

    if (names->num < MAX_NAMES) {
        snprintf(names->name[names->num++], sizeof(*names->name), "%s", name);
    }
}

static void pools_list(const char *path, struct names *names)
{
    names->num = 0;
    (void)ucs_vfs_path_list_dir(path, pools_add_name, names);
}

/* Appends the file of an interface, if it has one. */
static void pools_read_file(const char *path, char *text)
{
    ucs_string_buffer_t file = UCS_STRING_BUFFER_INITIALIZER;

    if (ucs_vfs_path_read_file(path, &file) == UCS_OK) {
        strncat(text, ucs_string_buffer_cstr(&file),
                MAX_TEXT - strlen(text) - 1);
    }
    ucs_string_buffer_cleanup(&file);
}

/* Progresses an interface, whose name is its address: UCP does not when all of
 * its endpoints are closed, and what dcx has posted itself would never end. */
static void pools_progress(const char *name)
{
    uct_iface_progress((uct_iface_h)strtoull(name, NULL, 16));
}

static void pools_read(char *text)
{
    struct names workers, ifaces;
    char path[MAX_PATH];

    text[0] = '\0';
    pools_list("/uct/worker", &workers);
    for (unsigned i = 0; i < workers.num; i++) {
        snprintf(path, sizeof(path), "/uct/worker/%s/iface", workers.name[i]);
        pools_list(path, &ifaces);
        for (unsigned j = 0; j < ifaces.num; j++) {
            snprintf(path, sizeof(path), "/uct/worker/%s/iface/%s",
                     workers.name[i], ifaces.name[j]);
            pools_list(path, &(struct names){0}); /* has UCX add the file */
            pools_progress(ifaces.name[j]);
            strcat(path, "/in_use");
            pools_read_file(path, text);
        }
    }
}

bool pools_begin(void)
{
    pools_read(pools_first);
    return pools_first[0] != '\0';
}

bool pools_are_back(void)
{
    char text[MAX_TEXT];

    pools_read(text);
    return strcmp(text, pools_first) == 0;
}

void pools_print(void)
{
    char text[MAX_TEXT];

    pools_read(text);
    printf("in use at the beginning:\n%sin use at the end:\n%s", pools_first,
           text);
}
