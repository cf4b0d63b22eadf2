/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The DC initiators of an interface as a set; see dcx_dci_set.h. Called when
 * an interface opens and closes, and by those who need an initiator that does
 * not exist yet, away from the fast path.
 */
#include "dcx_iface.h"

#include <sys/random.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>


/* Completions of so many send queues come to one completion queue, unless it
 * would become longer than the second number, or than the device has it. */
#define UCT_DCX_MAX_PER_GROUP  64
#define UCT_DCX_GROUP_CQES     32768


static ucs_mpool_ops_t uct_dcx_flush_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = NULL,
    .obj_cleanup   = NULL,
    .obj_str       = NULL
};


/* --- from QP number to initiator ------------------------------------------ */

uct_dcx_dci_t *uct_dcx_dci_set_search(uct_dcx_iface_t *iface, uint32_t qpn)
{
    const uct_dcx_dci_set_t *set = &iface->dci;
    uct_dcx_dci_t *dci;
    uint32_t i;

    /* a number that another one has taken the place of is in one of the next */
    for (i = 0; i <= set->qpn_mask; ++i) {
        dci = set->by_qpn[(qpn + i) & set->qpn_mask];
        if (dci->sq.qpn == qpn) {
            return dci;
        }
    }
    return NULL;
}


static void
uct_dcx_dci_set_enter_qpn(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uint32_t slot = dci->sq.qpn;

    while (set->by_qpn[slot & set->qpn_mask] != &set->dci[set->created[0]]) {
        ++slot; /* a free place names the first initiator */
    }
    set->by_qpn[slot & set->qpn_mask] = dci;
}


/* Sees to it that there is room for one more, and no more than a fourth of the
 * table is in use. */
static ucs_status_t uct_dcx_dci_set_grow_qpns(uct_dcx_dci_set_t *set)
{
    uint32_t size = ucs_roundup_pow2((set->num_created + 1) * 4);
    uct_dcx_dci_t **by_qpn;
    uint32_t i;

    if ((set->by_qpn != NULL) && (size <= set->qpn_mask + 1)) {
        return UCS_OK;
    }

    by_qpn = ucs_malloc(size * sizeof(*by_qpn), "uct_dcx_by_qpn");
    if (by_qpn == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_free(set->by_qpn);
    set->by_qpn   = by_qpn;
    set->qpn_mask = size - 1;
    for (i = 0; i < size; ++i) {
        by_qpn[i] = &set->dci[set->created[0]];
    }
    for (i = 1; i < set->num_created; ++i) {
        uct_dcx_dci_set_enter_qpn(set, &set->dci[set->created[i]]);
    }
    return UCS_OK;
}


/* --- initiators that come into being -------------------------------------- */

static ucs_status_t
uct_dcx_dci_set_add(uct_dcx_iface_t *iface, uint16_t index,
                    ucs_log_level_t level)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    uct_dcx_dci_t *dci     = &set->dci[index];
    unsigned group_index   = set->num_created / set->per_group;
    uct_dcx_dci_group_t *group;
    ucs_status_t status;
    size_t offset;

    group = &set->group[group_index];
    if (group_index == set->num_groups) {
        status = uct_dcx_dci_group_init(iface, group, level);
        if (status != UCS_OK) {
            return status;
        }
        set->num_groups++; /* it may stay without an initiator */
    }

    offset            = (set->num_created % set->per_group) *
                        uct_dcx_dci_set_num_results(set);
    dci->index        = index;
    dci->cq           = &group->cq;
    dci->results      = group->results + offset;
    dci->results_lkey = group->results_mr->lkey;

    set->created[set->num_created] = index;
    status = uct_dcx_dci_set_grow_qpns(set);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_init(iface, dci, level);
    if (status != UCS_OK) {
        return status;
    }

    uct_dcx_dci_set_enter_qpn(set, dci);
    set->num_created++;
    ucs_debug("%s: DCI 0x%x of %u blocks is number %u",
              uct_dcx_iface_name(iface), dci->sq.qpn, dci->sq.mask + 1, index);
    return UCS_OK;
}


UCS_F_NOINLINE uct_dcx_dci_t *
uct_dcx_dci_set_create(uct_dcx_iface_t *iface, uint16_t index)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    uct_dcx_dci_t *dci     = &set->dci[index];

    if (dci->qp != NULL) {
        return dci;
    }

    if (set->is_short) {
        return NULL;
    }

    if (uct_dcx_dci_set_add(iface, index, UCS_LOG_LEVEL_WARN) != UCS_OK) {
        ucs_diag("%s: goes on with %u of %u DCIs", uct_dcx_iface_name(iface),
                 set->num_created, uct_dcx_pool_num_dci(&set->pool));
        set->is_short = 1;
        return NULL;
    }
    return dci;
}


uct_dcx_place_t uct_dcx_dci_set_bind(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    uct_dcx_place_t place  = uct_dcx_pool_bind(&set->pool);

    if ((place.dci != UCT_DCX_NO_DCI) &&
        (uct_dcx_dci_set_create(iface, place.dci) == NULL)) {
        place.dci = set->created[place.dci % set->num_created];
    }
    return place;
}


uct_dcx_place_t uct_dcx_dci_set_spill(uct_dcx_iface_t *iface)
{
    uct_dcx_place_t place = uct_dcx_pool_spill(&iface->dci.pool);

    if ((place.dci != UCT_DCX_NO_DCI) &&
        (uct_dcx_dci_set_create(iface, place.dci) == NULL)) {
        place.dci = UCT_DCX_NO_DCI;
    }
    return place;
}


/* --- opening and closing -------------------------------------------------- */

static void
uct_dcx_dci_set_init_params(uct_dcx_iface_t *iface,
                            const uct_dcx_iface_config_t *config)
{
    const struct ibv_device_attr *attr = &iface->port.dev->attr;
    const unsigned bb_per_wr           = 4; /* libmlx5's for a DCI, 1 sge */
    uct_dcx_dci_set_t *set             = &iface->dci;
    unsigned max_rd_atomic             = ucs_max(attr->max_qp_init_rd_atom, 1);
    unsigned num_bb                    = config->tx.queue_len *
                                         iface->limits.max_bb;

    if (config->tx.max_rd_atomic > max_rd_atomic) {
        ucs_diag("UCX_DCX_MAX_RD_ATOMIC=%u: %s takes %u",
                 config->tx.max_rd_atomic, uct_dcx_iface_name(iface),
                 max_rd_atomic);
    }

    set->params.max_send_wr     = ucs_div_round_up(num_bb, bb_per_wr);
    set->params.num_bb          = ucs_roundup_pow2(num_bb);
    set->params.moderation      = ucs_min(config->tx.cq_moderation,
                                          set->params.num_bb / 4);
    if (set->pool.policy->share(&set->pool) == UINT_MAX) {
        /* others get an initiator only when nothing is outstanding: that is
         * to be seen at once */
        set->params.moderation = 1;
    }
    set->params.timeout         = uct_dcx_config_timeout_code(
            config->tx.timeout);
    set->params.retry_count     = config->tx.retry_count;
    set->params.rnr_retry_count = config->tx.rnr_retry_count;
    set->params.max_rd_atomic   = ucs_min(config->tx.max_rd_atomic,
                                          max_rd_atomic);
    set->params.log_streams     = ucs_ilog2(config->tx.num_streams);
    set->params.log_errored     = ucs_min(set->params.log_streams,
                                          iface->port.dev->log_errored);
}


/* How many initiators have a completion queue together, and how many
 * completions are taken from it at a time. */
static ucs_status_t
uct_dcx_dci_set_init_groups(uct_dcx_iface_t *iface,
                            const uct_dcx_iface_config_t *config)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned num_bb        = set->params.num_bb;
    unsigned max_cqe       = iface->port.dev->attr.max_cqe;

    iface->tx_max_poll = ucs_min(config->tx.max_poll, num_bb - 1);
    if (num_bb + iface->tx_max_poll > max_cqe) {
        ucs_error("a send queue of %u blocks is too long for a completion "
                  "queue of %s, which takes %u: lower UCX_DCX_TX_QUEUE_LEN",
                  num_bb, uct_dcx_iface_name(iface), max_cqe);
        return UCS_ERR_INVALID_PARAM;
    }

    /* every block of every send queue may complete before anybody looks */
    max_cqe        = ucs_min(UCT_DCX_GROUP_CQES, max_cqe - iface->tx_max_poll);
    set->per_group = ucs_min(uct_dcx_pool_num_dci(&set->pool),
                             UCT_DCX_MAX_PER_GROUP);
    set->per_group = ucs_min(set->per_group, max_cqe / num_bb);
    set->per_group = ucs_max(set->per_group, 1);
    return UCS_OK;
}


static ucs_status_t
uct_dcx_dci_set_init_pool(uct_dcx_pool_t *pool,
                          const uct_dcx_iface_config_t *config)
{
    const uct_dcx_policy_t *policy = uct_dcx_policy_get(config->tx.policy);
    uct_dcx_pool_params_t params   = {
        .policy      = config->tx.policy,
        .num_dci     = config->tx.num_dci,
        .quota       = config->tx.quota,
        .num_streams = policy->has_streams ? config->tx.num_streams : 1,
        .seed        = config->tx.rand_seed
    };

    if ((config->tx.rand_seed == 0) &&
        (getrandom(&params.seed, sizeof(params.seed), 0) < 0)) {
        ucs_diag("getrandom() failed: %m");
    }

    return (uct_dcx_pool_init(pool, &params) == 0) ? UCS_OK :
                                                     UCS_ERR_NO_MEMORY;
}


/* Room for all that may ever exist: memory that is never touched costs
 * nothing. */
static ucs_status_t uct_dcx_dci_set_alloc(uct_dcx_dci_set_t *set)
{
    unsigned num_dci    = uct_dcx_pool_num_dci(&set->pool);
    unsigned num_groups = ucs_div_round_up(num_dci, set->per_group);

    set->memory  = ucs_calloc(num_dci + 1, sizeof(*set->dci), "uct_dcx_dci");
    set->group   = ucs_calloc(num_groups, sizeof(*set->group),
                              "uct_dcx_groups");
    set->created = ucs_calloc(num_dci, sizeof(*set->created),
                              "uct_dcx_created");
    if ((set->memory == NULL) || (set->group == NULL) ||
        (set->created == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }

    set->dci = (void*)ucs_align_up_pow2((uintptr_t)set->memory,
                                        UCT_DCX_DCI_SIZE);
    return UCS_OK;
}


static void uct_dcx_dci_set_free(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_dci_cleanup(iface, &set->dci[set->created[i]]);
    }

    for (i = 0; i < set->num_groups; ++i) {
        uct_dcx_dci_group_cleanup(&set->group[i]);
    }

    ucs_free(set->by_qpn);
    ucs_free(set->created);
    ucs_free(set->group);
    ucs_free(set->memory);
    uct_dcx_pool_cleanup(&set->pool);
}


ucs_status_t uct_dcx_dci_set_init(uct_dcx_iface_t *iface,
                                  const uct_dcx_iface_config_t *config)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    ucs_status_t status;

    memset(set, 0, sizeof(*set));
    ucs_arbiter_init(&set->wait_dci);
    ucs_list_head_init(&set->ready);
    ucs_list_head_init(&set->tails);
    ucs_list_head_init(&set->tails_due);

    status = ucs_mpool_init(&set->flush_mp, 0, sizeof(uct_dcx_flush_t), 0,
                            UCS_SYS_CACHE_LINE_SIZE, 64, UINT_MAX,
                            &uct_dcx_flush_mpool_ops, "uct_dcx_flushes");
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_set_init_pool(&set->pool, config);
    if (status != UCS_OK) {
        goto err_cleanup_mpool;
    }

    uct_dcx_dci_set_init_params(iface, config);
    status = uct_dcx_dci_set_init_groups(iface, config);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_dcx_dci_set_alloc(set);
    if (status != UCS_OK) {
        goto err_free;
    }

    /* one is needed in any case: what is wrong with them shows now */
    status = uct_dcx_dci_set_add(iface, 0, UCS_LOG_LEVEL_ERROR);
    if (status != UCS_OK) {
        goto err_free;
    }

    return UCS_OK;

err_free:
    uct_dcx_dci_set_free(iface);
err_cleanup_mpool:
    ucs_mpool_cleanup(&set->flush_mp, 1);
    return status;
}


void uct_dcx_dci_set_cleanup(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;

    uct_dcx_dci_set_free(iface);
    ucs_mpool_cleanup(&set->flush_mp, 1);
    ucs_arbiter_cleanup(&set->wait_dci);
}
