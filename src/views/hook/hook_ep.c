/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_ep.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_views.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOOK_EP_KNOWN   = 1, /* what a worker keeps of a configuration */
    HOOK_EP_HAS_DCX = 2,
    HOOK_EP_SHIFT   = 2 /* of the longest short message */
};

/* An endpoint of UCP begins with its worker (src/ucp/core/ucp_ep.h). */
hook_worker_t *hook_ep_worker(ucp_ep_h ep)
{
    return hook_worker_find(*(ucp_worker_h *)ep);
}

/* Up to how many bytes a line tells of short messages, or 0 */
static size_t hook_ep_read_short(const char *line)
{
    static const char before[] = "short>..";
    const char *at             = strstr(line, before);
    const char *range          = strstr(line, " 0..");

    if (at != NULL) {
        return strtoull(at + strlen(before), NULL, 10);
    }

    return ((range != NULL) && (strstr(range, "short ") != NULL)) ?
                   strtoull(range + strlen(" 0.."), NULL, 10) :
                   0;
}

/* Lines as
 *   lane[0]:  0:dcx/mlx5_0:1.0 md[0] -> md[0]/dcx/sysdev[255] rma_bw#0 am am_bw#0
 *   tag_send: 0..<egr/short>..179..<egr/bcopy>..1201..<egr/zcopy>..17907..<rndv>
 * or, of UCP's newer protocols, in place of the second
 *   |           0..179 | eager short                      | dcx/mlx5_0:1     |
 */
static void hook_ep_read_line(const char *line, hook_ep_t *ep)
{
    size_t max = hook_ep_read_short(line);

    if ((strstr(line, "lane[") != NULL) && (strstr(line, ":dcx/") != NULL) &&
        (strstr(line, " rma_bw#") != NULL)) {
        ep->has_dcx = 1;
    }

    if (max > ep->max_short) {
        ep->max_short = max;
    }
}

/* An endpoint that UCP tells nothing of has no lane. */
static hook_ep_t hook_ep_read(ucp_ep_h ucp_ep)
{
    hook_ep_t ep = {0};
    char *text   = NULL;
    size_t size  = 0;
    FILE *file   = open_memstream(&text, &size);
    char *line, *rest;

    if (file == NULL) {
        return ep;
    }

    hook_real.ucp_ep_print_info(ucp_ep, file);
    if (!fclose(file)) {
        rest = text;
        while ((line = strsep(&rest, "\n")) != NULL) {
            hook_ep_read_line(line, &ep);
        }
    }
    free(text);
    return ep;
}

/* Another thread may connect the endpoint meanwhile: then it is read again the next
 * time. UCP takes the lock of its worker to tell. */
static hook_ep_t hook_ep_learn(hook_worker_t *worker, ucp_ep_h ucp_ep,
                               unsigned config)
{
    hook_ep_t ep = hook_ep_read(ucp_ep);

    if ((config < HOOK_WORKER_MAX_CONFIGS) &&
        (hook_views()->ep_config(ucp_ep) == config)) {
        worker->eps[config] = (ep.max_short << HOOK_EP_SHIFT) |
                              (ep.has_dcx ? HOOK_EP_HAS_DCX : 0) |
                              HOOK_EP_KNOWN;
    }

    return ep;
}

hook_ep_t hook_ep_get(hook_worker_t *worker, ucp_ep_h ucp_ep)
{
    unsigned config = hook_views()->ep_config(ucp_ep);
    size_t kept = (config < HOOK_WORKER_MAX_CONFIGS) ? worker->eps[config] : 0;

    return (kept & HOOK_EP_KNOWN) ?
                   (hook_ep_t){.has_dcx   = !!(kept & HOOK_EP_HAS_DCX),
                               .max_short = kept >> HOOK_EP_SHIFT} :
                   hook_ep_learn(worker, ucp_ep, config);
}
