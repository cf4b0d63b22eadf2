/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_ep.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_views.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    HOOK_EP_KNOWN   = 1, /* bit of hook_worker_t::eps: the record is valid */
    HOOK_EP_HAS_DCX = 2,
    HOOK_EP_SHIFT   = 2 /* of the bytes of the longest short message */
};

/* Reads the properties from UCP's text. Returns 0 without memory for it: then
 * there is no lane, for this message. */
static int hook_ep_read(ucp_ep_h ucp_ep, ucp_inside_ep_t *ep)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *file  = open_memstream(&text, &size);
    int is_read;

    *ep = (ucp_inside_ep_t){0};
    if (file == NULL) {
        return 0;
    }

    hook_real.ucp_ep_print_info(ucp_ep, file);
    is_read = !fclose(file);
    if (is_read) {
        *ep = hook_views()->ucp->read_ep(text);
    }
    free(text);
    return is_read;
}

/* Reads the properties, and keeps them unless another thread has connected the
 * endpoint meanwhile: then the next call reads them again. UCP takes the lock
 * of its worker to print them. */
static ucp_inside_ep_t hook_ep_learn(hook_worker_t *worker, ucp_ep_h ucp_ep,
                                     unsigned config)
{
    ucp_inside_ep_t ep;

    if (hook_ep_read(ucp_ep, &ep) && (config < HOOK_WORKER_MAX_CONFIGS) &&
        (hook_views()->ucp->ep_config(ucp_ep) == config)) {
        worker->eps[config] = (ep.max_short << HOOK_EP_SHIFT) |
                              (ep.has_dcx ? HOOK_EP_HAS_DCX : 0) |
                              HOOK_EP_KNOWN;
    }

    return ep;
}

ucp_inside_ep_t hook_ep_get(hook_worker_t *worker, ucp_ep_h ucp_ep)
{
    unsigned config = hook_views()->ucp->ep_config(ucp_ep);
    size_t kept = (config < HOOK_WORKER_MAX_CONFIGS) ? worker->eps[config] : 0;

    return (kept & HOOK_EP_KNOWN) ?
               (ucp_inside_ep_t){.has_dcx   = !!(kept & HOOK_EP_HAS_DCX),
                                 .max_short = kept >> HOOK_EP_SHIFT} :
               hook_ep_learn(worker, ucp_ep, config);
}
