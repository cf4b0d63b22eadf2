/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What DC initiators share in groups: a completion queue, and registered memory
 * for results of atomics; see dcx_dci_set.h. A group is created with its first
 * initiator (dcx_dci_set.c).
 */
#include "dcx_dci.h"
#include "dcx_dci_group.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>


size_t uct_dcx_dci_group_num_results(const uct_dcx_dci_set_t *set)
{
    return set->params.num_bb +
           (UCS_SYS_CACHE_LINE_SIZE / sizeof(*set->dci->results));
}


static ucs_status_t
uct_dcx_dci_group_init_results(uct_dcx_dci_set_t *set,
                               uct_dcx_dci_group_t *group,
                               ucs_log_level_t level)
{
    size_t size = set->per_group *
                  uct_dcx_dci_group_num_results(set) *
                  sizeof(*group->results);
    void *results;

    size = ucs_align_up(size, ucs_get_page_size());
    if (ucs_posix_memalign(&results, ucs_get_page_size(), size,
                           "uct_dcx_results") != 0) {
        return UCS_ERR_NO_MEMORY;
    }

    group->results    = results;
    group->results_mr = ibv_reg_mr(set->port->dev->pd, results, size,
                                   IBV_ACCESS_LOCAL_WRITE);
    if (group->results_mr == NULL) {
        ucs_log(level, "%s: failed to register %zu bytes: %m; see 'ulimit -l'",
                uct_dcx_port_dev_name(set->port), size);
        ucs_free(results);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


/* Callbacks post again, and that completes, before a batch of completions is
 * given back at its end. */
ucs_status_t
uct_dcx_dci_group_init(uct_dcx_dci_set_t *set, uct_dcx_dci_group_t *group,
                       ucs_log_level_t level)
{
    uct_dcx_cq_params_t params = {
        .ctx       = set->port->dev->ctx,
        .channel   = set->channel,
        .length    = (set->per_group * set->params.num_bb) +
                     set->max_poll,
        .cqe_size  = sizeof(struct mlx5_cqe64),
        .name      = uct_dcx_port_dev_name(set->port),
        .what      = "sends",
        .log_level = level
    };
    ucs_status_t status;

    status = uct_dcx_cq_init(&group->cq, &params);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_group_init_results(set, group, level);
    if (status != UCS_OK) {
        uct_dcx_cq_cleanup(&group->cq);
        return status;
    }

    if (set->num_groups > 0) {
        set->todo |= UCT_DCX_TODO_GROUPS;
        /* the user may have armed the interface already */
        uct_dcx_cq_arm(&group->cq, 0);
    }
    return UCS_OK;
}


void uct_dcx_dci_group_cleanup(uct_dcx_dci_group_t *group)
{
    if (ibv_dereg_mr(group->results_mr) != 0) {
        ucs_warn("mr 0x%x: failed to deregister: %m", group->results_mr->lkey);
    }
    ucs_free(group->results);
    uct_dcx_cq_cleanup(&group->cq);
}
