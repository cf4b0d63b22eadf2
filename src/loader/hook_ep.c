/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_ep.h"
#include "hook_real.h"

#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t hook_ep_lock = PTHREAD_MUTEX_INITIALIZER;

/* The first member of an endpoint of UCP is its worker (src/ucp/core/ucp_ep.h) */
hook_worker_t *hook_ep_worker(ucp_ep_h ep)
{
    return hook_worker_find(*(ucp_worker_h *)ep);
}

static int hook_ep_compare(const void *ep1, const void *ep2)
{
    uintptr_t key1 = (uintptr_t)((const hook_ep_t *)ep1)->ep;
    uintptr_t key2 = (uintptr_t)((const hook_ep_t *)ep2)->ep;

    return (key1 > key2) - (key1 < key2);
}

/* Lines as
 *   lane[0]:  0:dcx/mlx5_0:1.0 md[0] -> md[0]/dcx/sysdev[255] rma_bw#0 am am_bw#0
 *   tag_send: 0..<egr/short>..179..<egr/bcopy>..1201..<egr/zcopy>..17907..<rndv>
 */
static void hook_ep_read_line(const char *line, hook_ep_t *ep)
{
    static const char last_short[] = "short>..";
    const char *at                 = strstr(line, last_short);
    size_t max;

    if ((strstr(line, "lane[") != NULL) && (strstr(line, ":dcx/") != NULL) &&
        (strstr(line, " rma_bw#") != NULL)) {
        ep->has_dcx = 1;
    }

    if (at != NULL) {
        max           = strtoull(at + strlen(last_short), NULL, 10);
        ep->max_short = (max > ep->max_short) ? max : ep->max_short;
    }
}

/* An endpoint that UCP tells nothing of has no lane. */
static void hook_ep_read(hook_ep_t *ep)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *file  = open_memstream(&text, &size);
    char *line, *rest;

    if (file == NULL) {
        return;
    }

    hook_real.ucp_ep_print_info(ep->ep, file);
    if (!fclose(file)) {
        rest = text;
        while ((line = strsep(&rest, "\n")) != NULL) {
            hook_ep_read_line(line, ep);
        }
    }
    free(text);
}

static int hook_ep_find(hook_worker_t *worker, hook_ep_t *ep)
{
    hook_ep_t **node;

    pthread_mutex_lock(&hook_ep_lock);
    node = tfind(ep, &worker->eps, hook_ep_compare);
    if (node != NULL) {
        *ep = **node;
    }
    pthread_mutex_unlock(&hook_ep_lock);
    return node != NULL;
}

/* Without memory it is read again the next time. */
static void hook_ep_keep(hook_worker_t *worker, const hook_ep_t *ep)
{
    hook_ep_t *kept = malloc(sizeof(*kept));
    hook_ep_t **node;

    if (kept == NULL) {
        return;
    }

    *kept = *ep;
    pthread_mutex_lock(&hook_ep_lock);
    node = tsearch(kept, &worker->eps, hook_ep_compare);
    if ((node == NULL) || (*node != kept)) {
        free(kept);
    }
    pthread_mutex_unlock(&hook_ep_lock);
}

/* UCP takes the lock of its worker to tell, thus not under ours */
hook_ep_t hook_ep_get(hook_worker_t *worker, ucp_ep_h ep)
{
    hook_ep_t found = {.ep = ep};

    if (!hook_ep_find(worker, &found)) {
        hook_ep_read(&found);
        hook_ep_keep(worker, &found);
    }

    return found;
}

void hook_ep_forget(ucp_ep_h ep)
{
    hook_worker_t *worker = hook_ep_worker(ep);
    hook_ep_t key         = {.ep = ep};
    hook_ep_t **node, *kept;

    if (worker == NULL) {
        return;
    }

    pthread_mutex_lock(&hook_ep_lock);
    node = tfind(&key, &worker->eps, hook_ep_compare);
    if (node != NULL) {
        kept = *node;
        tdelete(&key, &worker->eps, hook_ep_compare);
        free(kept);
    }
    pthread_mutex_unlock(&hook_ep_lock);
}

void hook_ep_forget_all(hook_worker_t *worker)
{
    pthread_mutex_lock(&hook_ep_lock);
    tdestroy(worker->eps, free);
    worker->eps = NULL;
    pthread_mutex_unlock(&hook_ep_lock);
}
