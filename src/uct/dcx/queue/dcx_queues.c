/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The queues of an interface; see dcx_queues.h.
 */
#include "dcx_queues.h"
#include "uct/dcx/mem/dcx_md.h"
#include "uct/dcx/net/dcx_port_addr.h"

#include <stdarg.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>


static uct_dcx_keys_t *uct_dcx_queues_md_keys(const uct_dcx_queues_t *queues)
{
    return ucs_derived_of(queues->super.md, uct_dcx_md_t)->keys;
}


void uct_dcx_queues_init_keys(uct_dcx_queues_t *queues)
{
    queues->limits.strided.max_klm =
        queues->port.dev->umr.has_keys ?
            uct_dcx_keys_max_klm(uct_dcx_queues_md_keys(queues)) :
            0;
}


ucs_status_t uct_dcx_queues_open_keys(uct_dcx_queues_t *queues)
{
    uct_dcx_keys_t *keys = uct_dcx_queues_md_keys(queues);
    uct_dcx_devx_path_t path;
    ucs_status_t status;

    if (uct_dcx_keys_is_open(keys)) {
        return UCS_OK;
    }

    status = uct_dcx_port_own_path(&queues->port, &path);
    return (status == UCS_OK) ? uct_dcx_keys_open(keys, &path) : status;
}


uct_dcx_keys_t *uct_dcx_queues_keys(uct_dcx_queues_t *queues)
{
    uct_dcx_keys_t *keys = uct_dcx_queues_md_keys(queues);

    if (ucs_likely(uct_dcx_keys_is_open(keys)) ||
        (uct_dcx_queues_open_keys(queues) == UCS_OK)) {
        return keys;
    }

    queues->limits.strided.max_klm = 0;
    return NULL;
}


void uct_dcx_queues_dropped(uct_dcx_queues_t *queues, const char *reason, ...)
{
    unsigned count = ++queues->rx.dropped;
    char text[128];
    va_list args;

    if (!ucs_is_pow2(count)) {
        return;
    }

    va_start(args, reason);
    vsnprintf(text, sizeof(text), reason, args);
    va_end(args);
    ucs_error("%s: dropped a message: %s (%u dropped so far)",
              queues->port.name, text, count);
}
