/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The set of an interface's DC initiators; see dcx_dci_set.h. Called when an
 * interface opens and closes, and when an initiator is needed that does not
 * exist yet, off the fast path.
 */
#include "dcx_dci.h"
#include "uct/dcx/base/dcx_trace.h"
#include "uct/dcx/base/dcx_site.h"
#include "uct/dcx/base/dcx_sizes.h"

#include <sys/random.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>


/* Send queues with a common completion queue, unless it would exceed the second
 * limit, in entries, or the device's */
#define UCT_DCX_MAX_PER_GROUP 64
#define UCT_DCX_GROUP_CQES    32768


/* --- from QP number to initiator ------------------------------------------ */

uct_dcx_dci_t *uct_dcx_dci_set_search(const uct_dcx_dci_set_t *set,
                                      uint32_t qpn)
{
    uct_dcx_dci_t *dci;
    uint32_t i;

    /* An initiator whose place was taken is in one of the next places. */
    for (i = 0; i <= set->qpn_mask; ++i) {
        dci = set->by_qpn[(qpn + i) & set->qpn_mask];
        if (dci->txq.sq.qpn == qpn) {
            return dci;
        }
    }
    return NULL;
}


static void uct_dcx_dci_set_enter_qpn(uct_dcx_dci_set_t *set,
                                      uct_dcx_dci_t *dci)
{
    uint32_t slot = dci->txq.sq.qpn;

    while (set->by_qpn[slot & set->qpn_mask] != set->dci) {
        ++slot; /* a free place points to the first initiator */
    }
    set->by_qpn[slot & set->qpn_mask] = dci;
}


/* --- resources of a group ------------------------------------------------- */

/* Returns the places for results of one initiator, in whole cache lines: one
 * for each WQEBB, and one for all atomics that are not fetched. */
static size_t uct_dcx_dci_group_num_results(const uct_dcx_dci_set_t *set)
{
    return set->params.num_bb +
           (UCS_SYS_CACHE_LINE_SIZE / sizeof(*set->dci->results));
}


static ucs_status_t uct_dcx_dci_group_init_results(uct_dcx_dci_set_t *set,
                                                   uct_dcx_dci_group_t *group,
                                                   ucs_log_level_t level)
{
    size_t size = set->per_group * uct_dcx_dci_group_num_results(set) *
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
        ucs_log(level, "%s: failed to register %zu bytes: %m%s",
                set->port->name, size, uct_dcx_device_reg_hint(errno));
        ucs_free(results);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


/* Creates a completion queue with room for WQEs that callbacks post, and that
 * complete, before a batch of completions is given back at its end. */
static ucs_status_t uct_dcx_dci_group_init(uct_dcx_dci_set_t *set,
                                           uct_dcx_dci_group_t *group,
                                           ucs_log_level_t level)
{
    uct_dcx_cq_params_t params = {
        .ctx       = set->port->dev->ctx,
        .channel   = set->channel,
        .length    = (set->per_group * set->params.num_bb) + set->max_poll,
        .cqe_size  = sizeof(struct mlx5_cqe64),
        .what      = "sends",
        .log_level = level,
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
        /* The user may have armed the interface already. */
        uct_dcx_cq_arm(&group->cq, 0);
    }
    return UCS_OK;
}


static void uct_dcx_dci_group_cleanup(uct_dcx_dci_group_t *group)
{
    if (ibv_dereg_mr(group->results_mr) != 0) {
        ucs_warn("mr 0x%x: failed to deregister: %m", group->results_mr->lkey);
    }
    ucs_free(group->results);
    uct_dcx_cq_cleanup(&group->cq);
}


/* --- creating initiators -------------------------------------------------- */

void uct_dcx_dci_set_close_ring(uct_dcx_dci_set_t *set)
{
    unsigned last = set->num_created - 1;

    set->dci[last].next = &set->dci[(last + 1) % set->pool.num_dci];
}


static ucs_status_t uct_dcx_dci_set_add(uct_dcx_dci_set_t *set, uint16_t index,
                                        ucs_log_level_t level)
{
    uct_dcx_dci_t *dci   = &set->dci[index];
    unsigned group_index = set->num_created / set->per_group;
    uct_dcx_dci_group_t *group;
    ucs_status_t status;
    size_t offset;

    group = &set->group[group_index];
    if (group_index == set->num_groups) {
        status = uct_dcx_dci_group_init(set, group, level);
        if (status != UCS_OK) {
            return status;
        }
        set->num_groups++; /* it may stay without an initiator */
    }

    offset = (set->num_created % set->per_group) *
             uct_dcx_dci_group_num_results(set);
    dci->index        = index;
    dci->results      = group->results + offset;
    dci->results_lkey = group->results_mr->lkey;

    status = uct_dcx_dci_init(set, dci, &group->cq, level);
    if (status != UCS_OK) {
        return status;
    }

    uct_dcx_dci_set_enter_qpn(set, dci);
    set->created[set->num_created++] = index;
    uct_dcx_dci_set_close_ring(set);
    ucs_debug("%s: DCI 0x%x of %u WQEBBs is number %u", set->port->name,
              dci->txq.sq.qpn, dci->txq.sq.mask + 1, index);
    return UCS_OK;
}


UCS_F_NOINLINE uct_dcx_dci_t *uct_dcx_dci_set_create(uct_dcx_dci_set_t *set,
                                                     uint16_t index)
{
    uct_dcx_dci_t *dci = &set->dci[index];
    ucs_status_t status;

    if (dci->txq.qp != NULL) {
        return dci;
    }

    if (set->is_short) {
        return NULL;
    }

    status = uct_dcx_dci_set_add(set, index, UCS_LOG_LEVEL_WARN);
    if (status != UCS_OK) {
        /* Other causes were logged. */
        ucs_log((status == UCS_ERR_NO_MEMORY) ? UCS_LOG_LEVEL_WARN :
                                                UCS_LOG_LEVEL_DIAG,
                "%s: failed to create a DCI: %s; continuing with %u DCIs",
                set->port->name, ucs_status_string(status), set->num_created);
        set->is_short = 1;
        return NULL;
    }
    return dci;
}


void uct_dcx_dci_set_open(uct_dcx_dci_set_t *set)
{
    set->open = (set->throttled || set->traced) ? UCT_DCX_DCI_LAST :
                                                  UCT_DCX_DCI_IDLE;
}


/* Returns a usable initiator: an existing one, beginning at @index, otherwise a
 * new one. If there is none, returns an unusable one. */
static uint16_t uct_dcx_dci_set_find_usable(uct_dcx_dci_set_t *set,
                                            uint16_t index)
{
    unsigned i;
    uint16_t other;

    for (i = 0; i < set->num_created; ++i) {
        other = set->created[(index + i) % set->num_created];
        if (set->dci[other].state != UCT_DCX_DCI_LOST) {
            return other;
        }
    }

    for (i = 0; i < set->pool.num_dci; ++i) {
        if ((set->dci[i].txq.qp == NULL) &&
            (uct_dcx_dci_set_create(set, i) != NULL)) {
            return i;
        }
    }
    return set->created[index % set->num_created];
}


uct_dcx_binding_t uct_dcx_dci_set_bind(uct_dcx_dci_set_t *set)
{
    uct_dcx_binding_t binding = uct_dcx_pool_bind(&set->pool);
    uct_dcx_dci_t *dci;

    if (binding.dci != UCT_DCX_NO_DCI) {
        dci = uct_dcx_dci_set_create(set, binding.dci);
        if ((dci == NULL) || (dci->state == UCT_DCX_DCI_LOST)) {
            binding.dci = uct_dcx_dci_set_find_usable(set, binding.dci);
        }
    }
    return binding;
}


/* --- opening and closing -------------------------------------------------- */

/* Limit of a 3-bit field in the queue's context */
#define UCT_DCX_DCI_MAX_RETRIES 7


static unsigned uct_dcx_dci_set_limit(const uct_dcx_dci_set_t *set,
                                      const char *option, unsigned value,
                                      unsigned limit)
{
    if (value > limit) {
        ucs_diag("%s=%u: the limit of %s is %u, using that",
                 uct_dcx_config_variable(option), value, set->port->name,
                 limit);
    }
    return ucs_min(value, limit);
}


static ucs_status_t
uct_dcx_dci_set_check_reads(const uct_dcx_dci_set_t *set,
                            const uct_dcx_iface_config_t *config)
{
    unsigned long requests = config->tx.max_rd_atomic;
    unsigned limit         = set->port->dev->max_rd_atomic;
    const char *variable;

    if (requests == UCS_ULUNITS_AUTO) {
        return UCS_OK;
    }

    variable = uct_dcx_config_variable("MAX_RD_ATOMIC");
    if (requests > limit) {
        ucs_error("%s=%lu exceeds the limit of %s, which is %u: set it to that "
                  "or to auto",
                  variable, requests, set->port->name, limit);
        return UCS_ERR_INVALID_PARAM;
    }

    if (requests > UCT_DCX_AUTO_RD_ATOMIC) {
        /* dc_mlx5 asks the peer, so this may be safe for the site */
        ucs_log(uct_dcx_site_is_own(variable) ? UCS_LOG_LEVEL_INFO :
                                                UCS_LOG_LEVEL_WARN,
                "%s=%lu: gets and atomics fail if the device of a peer answers "
                "fewer at a time",
                variable, requests);
    }
    return UCS_OK;
}


static void uct_dcx_dci_set_init_params(uct_dcx_dci_set_t *set,
                                        const uct_dcx_iface_config_t *config)
{
    uct_dcx_sizes_t sizes;

    uct_dcx_sizes_init(&sizes, config, 0);
    set->params.max_send_wr = sizes.max_send_wr;
    set->params.num_bb      = sizes.num_bb;
    set->max_poll           = sizes.tx_max_poll;
    set->params.moderation  = ucs_min(config->tx.cq_moderation,
                                      set->params.num_bb / 4);
    if (set->pool.share == UINT_MAX) {
        /* Others get an initiator only when nothing is outstanding: that has to
         * be known at once. */
        set->params.moderation = 1;
    }
    set->params.timeout     = uct_dcx_config_timeout_code(config->tx.timeout);
    set->params.retry_count = uct_dcx_dci_set_limit(
        set, "RETRY_COUNT", config->tx.retry_count, UCT_DCX_DCI_MAX_RETRIES);
    set->params.rnr_retry_count = uct_dcx_dci_set_limit(
        set, "RNR_RETRY_COUNT", config->tx.rnr_retry_count,
        UCT_DCX_DCI_MAX_RETRIES);
    set->params.max_rd_atomic = (config->tx.max_rd_atomic != UCS_ULUNITS_AUTO) ?
                                    config->tx.max_rd_atomic :
                                    ucs_min(set->port->dev->max_rd_atomic,
                                            UCT_DCX_AUTO_RD_ATOMIC);

    set->params.fence       = set->port->is_ordered ? MLX5_WQE_CTRL_FENCE :
                                                      UCT_DCX_WQE_STRONG_ORDER;
    set->params.log_streams = ucs_ilog2(config->tx.num_streams);
    set->params.log_errored = ucs_min(set->params.log_streams,
                                      set->port->dev->log_errored);
}


/* Sets the number of initiators that share a completion queue. */
static ucs_status_t uct_dcx_dci_set_init_groups(uct_dcx_dci_set_t *set)
{
    unsigned num_bb  = set->params.num_bb;
    unsigned max_cqe = set->port->dev->attr.max_cqe;

    if (num_bb + set->max_poll > max_cqe) {
        ucs_error("send queue of %u WQEBBs exceeds the limit of completion "
                  "queues of %s, which is %u: lower UCX_DCX_TX_QUEUE_LEN",
                  num_bb, set->port->name, max_cqe);
        return UCS_ERR_INVALID_PARAM;
    }

    /* Every WQEBB of every send queue may complete before progress is
     * called. */
    max_cqe        = ucs_min(UCT_DCX_GROUP_CQES, max_cqe - set->max_poll);
    set->per_group = ucs_min(set->pool.num_dci, UCT_DCX_MAX_PER_GROUP);
    set->per_group = ucs_min(set->per_group, max_cqe / num_bb);
    set->per_group = ucs_max(set->per_group, 1);
    return UCS_OK;
}


static void uct_dcx_dci_set_init_pool(uct_dcx_pool_t *pool,
                                      const uct_dcx_iface_config_t *config)
{
    uct_dcx_pool_params_t params = {
        .policy      = config->tx.policy,
        .num_dci     = config->tx.num_dci,
        .quota       = config->tx.quota,
        .num_streams = config->tx.num_streams,
        .seed        = config->tx.rand_seed,
    };

    if ((config->tx.rand_seed == 0) &&
        (getrandom(&params.seed, sizeof(params.seed), 0) < 0)) {
        ucs_diag("getrandom() failed: %m");
    }

    uct_dcx_pool_init(pool, &params);
}


/* Allocates memory for all initiators that may ever exist: untouched pages cost
 * nothing. */
static ucs_status_t uct_dcx_dci_set_alloc(uct_dcx_dci_set_t *set)
{
    unsigned num_dci    = set->pool.max_dci;
    unsigned num_groups = ucs_div_round_up(num_dci, set->per_group);
    uint32_t i;

    /* at most a fourth of the table is in use */
    set->qpn_mask = ucs_roundup_pow2(num_dci * 4) - 1;
    set->memory   = ucs_calloc(num_dci + 1, sizeof(*set->dci), "uct_dcx_dci");
    set->group = ucs_calloc(num_groups, sizeof(*set->group), "uct_dcx_groups");
    set->created = ucs_calloc(num_dci, sizeof(*set->created),
                              "uct_dcx_created");
    set->by_qpn  = ucs_malloc((set->qpn_mask + 1) * sizeof(*set->by_qpn),
                              "uct_dcx_by_qpn");
    if ((set->memory == NULL) || (set->group == NULL) ||
        (set->created == NULL) || (set->by_qpn == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }

    set->dci  = (void *)ucs_align_up_pow2((uintptr_t)set->memory,
                                          UCT_DCX_DCI_SIZE);
    set->hand = set->dci;
    for (i = 0; i <= set->qpn_mask; ++i) {
        set->by_qpn[i] = set->dci;
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_dci_set_init_mmio(uct_dcx_dci_set_t *set, unsigned mode,
                                       int threads_take_turns)
{
    uct_dcx_bf_t *bf = &set->td.bf;
    int flush        = (mode == UCT_DCX_MMIO_MODE_BF_POST_MT) ||
                ((mode == UCT_DCX_MMIO_MODE_AUTO) && threads_take_turns);

    if (mode == UCT_DCX_MMIO_MODE_DB) {
        uct_dcx_bf_set_mode(bf, 0, flush);
    } else if ((bf->push_bb > 0) || (mode == UCT_DCX_MMIO_MODE_AUTO)) {
        uct_dcx_bf_set_mode(bf, bf->push_bb, flush);
    } else {
        ucs_error("UCX_DCX_MMIO_MODE=%s: %s has no BlueFlame register; set "
                  "UCX_DCX_MMIO_MODE=auto",
                  uct_dcx_mmio_mode_names[mode], set->port->name);
        return UCS_ERR_UNSUPPORTED;
    }

    ucs_debug("%s: WQEs of up to %u WQEBBs are pushed", set->port->name,
              bf->push_bb);
    return UCS_OK;
}


static void uct_dcx_dci_set_free(uct_dcx_dci_set_t *set)
{
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_dci_cleanup(&set->dci[set->created[i]]);
    }

    for (i = 0; i < set->num_groups; ++i) {
        uct_dcx_dci_group_cleanup(&set->group[i]);
    }

    uct_dcx_td_cleanup(&set->td);
    ucs_free(set->by_qpn);
    ucs_free(set->created);
    ucs_free(set->group);
    ucs_free(set->memory);
}


ucs_status_t uct_dcx_dci_set_init(uct_dcx_dci_set_t *set,
                                  const uct_dcx_port_t *port,
                                  struct ibv_comp_channel *channel,
                                  unsigned max_bb,
                                  const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    memset(set, 0, sizeof(*set));
    set->port    = port;
    set->channel = channel;
    set->max_bb  = max_bb;
    set->traced  = uct_dcx_trace_is_on();
    ucs_arbiter_init(&set->waitq);
    ucs_list_head_init(&set->ready);
    ucs_list_head_init(&set->unsignaled);
    ucs_list_head_init(&set->unsignaled_due);

    status = uct_dcx_op_set_init(&set->ops);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_set_check_reads(set, config);
    if (status != UCS_OK) {
        goto err_cleanup_ops;
    }

    uct_dcx_dci_set_open(set);
    uct_dcx_dci_set_init_pool(&set->pool, config);
    uct_dcx_td_init(&set->td, port->dev);
    uct_dcx_dci_set_init_params(set, config);
    status = uct_dcx_dci_set_init_groups(set);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_dcx_dci_set_alloc(set);
    if (status != UCS_OK) {
        goto err_free;
    }

    /* One is needed in any case: faults show now. */
    status = uct_dcx_dci_set_add(set, 0, UCS_LOG_LEVEL_ERROR);
    if (status != UCS_OK) {
        goto err_free;
    }

    return UCS_OK;

err_free:
    uct_dcx_dci_set_free(set);
err_cleanup_ops:
    uct_dcx_op_set_cleanup(&set->ops);
    return status;
}


void uct_dcx_dci_set_cleanup(uct_dcx_dci_set_t *set)
{
    uct_dcx_dci_set_free(set);
    uct_dcx_op_set_cleanup(&set->ops);
    ucs_arbiter_cleanup(&set->waitq);
}
