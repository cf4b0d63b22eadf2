/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * handles: handles of views in UCP (hook_handle.c): how often a view is mapped,
 * with which length, and that its worker is locked meanwhile. This program
 * stands in for UCP. A view is a zero-copy datatype.
 */
#include "../check.h"
#include "views/ucp/hook_handle.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_views.h"

#include <string.h>

static struct {
    hook_handles_t handles;
    char memory[8]; /* targets of handles */
    int num_mapped;
    int num_unmapped;
    int num_unlocked; /* calls without the lock */
    int is_locked;
    int is_failing;
    size_t length; /* of the last map */
} t;

#define WORKER  ((ucp_worker_h)&t.is_locked)
#define CONTEXT ((ucp_context_h)&t)

hook_real_t hook_real;

static void lock(ucp_worker_h worker)
{
    t.is_locked += (worker == WORKER);
}

static void unlock(ucp_worker_h worker)
{
    t.is_locked -= (worker == WORKER);
}

const uct_dcx_view_ops_t *hook_views(void)
{
    static const ucp_inside_ops_t ucp     = {.worker_lock   = lock,
                                             .worker_unlock = unlock};
    static const uct_dcx_view_ops_t views = {.ucp = &ucp};

    return &views;
}

static ucs_status_t map(ucp_context_h context,
                        const ucp_mem_map_params_t *params, ucp_mem_h *memh_p)
{
    t.num_unlocked += (t.is_locked != 1) || (context != CONTEXT);
    t.length = params->length;
    if (t.is_failing) {
        *memh_p = (ucp_mem_h)1;
        return UCS_ERR_NO_MEMORY;
    }

    *memh_p = (ucp_mem_h)&t.memory[t.num_mapped++];
    return UCS_OK;
}

static ucs_status_t unmap(ucp_context_h context, ucp_mem_h memh)
{
    t.num_unlocked += (t.is_locked != 1) || (context != CONTEXT);
    t.num_unmapped += (memh != NULL);
    return UCS_OK;
}

static ucp_mem_h get(unsigned index, size_t length)
{
    const uct_dcx_view_t view = {.index = index, .length = length};

    return hook_handle_get(&t.handles, CONTEXT, WORKER, &view);
}

static int check_calls(int mapped, int unmapped)
{
    return check_value("mapped", t.num_mapped, mapped) +
           check_value("unmapped", t.num_unmapped, unmapped) +
           check_value("without the lock", t.num_unlocked, 0) +
           check_value("locked", t.is_locked, 0);
}

static int once(void)
{
    ucp_mem_h memh = get(1, 5000);

    return check_value("again", get(1, 5000) == memh, 1) +
           check_value("a shorter one", get(1, 1) == memh, 1) +
           check_value("length", t.length >= 5000, 1) + check_calls(1, 0);
}

static int longer(void)
{
    ucp_mem_h memh = get(1, 5000);

    return check_value("another", get(1, 50000) != memh, 1) +
           check_value("length", t.length >= 50000, 1) + check_calls(2, 1);
}

static int several(void)
{
    return check_value("another", get(1, 1) != get(2, 1), 1) +
           check_value("last", get(UCT_DCX_VIEW_OPS_MAX - 1, 1) != NULL, 1) +
           check_calls(3, 0);
}

static int fails(void)
{
    int errors;

    get(1, 1);
    t.is_failing = 1;
    errors       = check_value("none", get(1, 100) == NULL, 1) +
             check_value("nor then", get(1, 1) == NULL, 1) + check_calls(1, 1);
    t.is_failing = 0;
    return errors + check_value("one", get(1, 1) != NULL, 1) +
           check_calls(2, 1);
}

/* A context is removed when no thread uses it. */
static int released(void)
{
    get(1, 1);
    get(2, 1);
    t.is_locked = 1;
    hook_handles_release(&t.handles, CONTEXT);
    hook_handles_release(&t.handles, CONTEXT);
    t.is_locked = 0;
    return check_calls(2, 2);
}

static const struct check checks[] = {{"once", once},
                                      {"longer", longer},
                                      {"several", several},
                                      {"fails", fails},
                                      {"released", released}};

int main(void)
{
    int failed = 0;
    size_t i;

    hook_real.ucp_mem_map   = map;
    hook_real.ucp_mem_unmap = unmap;
    for (i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
        int errors;

        memset(&t, 0, sizeof(t));
        errors = checks[i].run();
        if (errors > 0) {
            printf("%s: %d errors\n", checks[i].name, errors);
            failed++;
        }
    }
    printf("%zu checks, %d failed\n", i, failed);
    return failed != 0;
}
