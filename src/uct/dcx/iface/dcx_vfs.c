/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The files of an interface in UCX's virtual file system. "in_use" has a line
 * for each pool: how much of it is in use. When all operations have ended, and
 * all endpoints are destroyed, the numbers are those of the opening. The other
 * files show states. UCX reads them in the thread of ucx_vfs, without a lock:
 * numbers may be those of a moment ago, and a list may change under the reader.
 * So each walk has a limit, and no endpoint is read.
 */
#include "dcx_vfs.h"
#include "dcx_iface.h"
#include "uct/dcx/base/dcx_figures.h"
#include "uct/dcx/mem/dcx_md.h"

#include <stdlib.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/vfs/base/vfs_obj.h>


static unsigned uct_dcx_vfs_num_dcis(const uct_dcx_dci_set_t *set)
{
    const uct_dcx_dci_t *dci;
    unsigned num = 0, i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        num += (dci->state != UCT_DCX_DCI_LOST) &&
               (dci->state != UCT_DCX_DCI_IDLE) &&
               !(uct_dcx_dci_is_shared(dci) && uct_dcx_txq_is_idle(&dci->txq));
    }
    return num;
}


static unsigned uct_dcx_vfs_num_objects(const ucs_mpool_t *mp)
{
    const ucs_mpool_chunk_t *chunk;
    const ucs_mpool_elem_t *elem;
    unsigned num = 0;

    for (chunk = mp->data->chunks; chunk != NULL; chunk = chunk->next) {
        num += chunk->num_elems;
    }

    for (elem = mp->freelist; (elem != NULL) && (num > 0); elem = elem->next) {
        num--;
    }
    return num;
}


/* Returns the length of @list, at most UINT16_MAX. */
static unsigned uct_dcx_vfs_length(const ucs_list_link_t *list)
{
    const ucs_list_link_t *link = list->next;
    unsigned num                = 0;

    for (; (link != list) && (num < UINT16_MAX); link = link->next) {
        num++;
    }
    return num;
}


/* Returns the receive buffers that the user keeps: all others in use are in
 * entries of the queue. */
static unsigned uct_dcx_vfs_num_kept(const uct_dcx_rx_t *rx)
{
    return uct_dcx_vfs_num_objects(&rx->mp) - (rx->length - rx->missing);
}


static unsigned uct_dcx_vfs_num_answers(const uct_dcx_fc_t *fc)
{
    return fc->num_sending + uct_dcx_vfs_length(&fc->waiting) +
           uct_dcx_vfs_length(&fc->late);
}


/* Returns the strided mkeys of the cache that are in use, or have a UMR on its
 * way. Owned ones belong to layouts, which may live as long as the domain. */
static unsigned uct_dcx_vfs_num_keys(uct_dcx_keys_t *keys)
{
    uct_dcx_key_size_t *size;
    unsigned num = 0;

    if ((keys == NULL) || !uct_dcx_keys_is_open(keys)) {
        return 0;
    }

    ucs_spin_lock(&keys->lock);
    for (size = keys->sizes; size < keys->sizes + UCT_DCX_KEY_KINDS; ++size) {
        num += size->is_owned ? 0 : size->num - ucs_list_length(&size->lru);
    }
    ucs_spin_unlock(&keys->lock);
    return num;
}


static void uct_dcx_vfs_show(void *obj, ucs_string_buffer_t *text, void *arg,
                             uint64_t arg_u64)
{
    uct_dcx_iface_t *iface         = obj;
    const uct_dcx_queues_t *queues = &iface->super;
    const uct_dcx_tm_t *tm         = &iface->tm;
    const uct_dcx_md_t *md = ucs_derived_of(queues->super.md, uct_dcx_md_t);

    ucs_string_buffer_appendf(text, "initiators %u\n",
                              uct_dcx_vfs_num_dcis(&queues->dci));
    ucs_string_buffer_appendf(text, "operations %u\n",
                              uct_dcx_vfs_num_objects(&queues->dci.ops.mp));
    ucs_string_buffer_appendf(text, "send buffers %u\n",
                              uct_dcx_vfs_num_objects(&queues->desc_mp));
    ucs_string_buffer_appendf(
        text, "segments of device memory %u\n",
        (queues->dm.max == 0) ? 0 : uct_dcx_vfs_num_objects(&queues->dm.mp));
    ucs_string_buffer_appendf(text, "receive buffers of the user %u\n",
                              uct_dcx_vfs_num_kept(&queues->rx));
    ucs_string_buffer_appendf(text, "endpoints without credits %u\n",
                              iface->fc.table.num_blocked);
    ucs_string_buffer_appendf(text, "answers to peers %u\n",
                              uct_dcx_vfs_num_answers(&iface->fc));
    ucs_string_buffer_appendf(
        text, "tagged buffers %u\n",
        (queues->tm == NULL) ? 0 : tm->num_entries - 1 - tm->num_free);
    ucs_string_buffer_appendf(text, "strided mkeys %u\n",
                              uct_dcx_vfs_num_keys(md->keys));
}


/* An endpoint is shown as the name of its folder. */
static void uct_dcx_vfs_initiators(void *obj, ucs_string_buffer_t *text,
                                   void *arg, uint64_t arg_u64)
{
    const uct_dcx_dci_set_t *set = &((uct_dcx_iface_t *)obj)->super.dci;
    const uct_dcx_dci_t *dci;
    unsigned i;

    ucs_string_buffer_appendf(
        text, "%s, %u of %u, %u idle, %u lost\n", set->pool.policy->name,
        set->num_created, set->pool.num_dci, set->pool.num_idle, set->num_lost);
    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        ucs_string_buffer_appendf(text, "DCI 0x%x %s endpoint %p WQEBBs %u\n",
                                  dci->txq.sq.qpn, uct_dcx_tx_state_name(dci),
                                  dci->ep, uct_dcx_sq_used(&dci->txq.sq));
    }
}


static void uct_dcx_vfs_target(void *obj, ucs_string_buffer_t *text, void *arg,
                               uint64_t arg_u64)
{
    const uct_dcx_rx_t *rx = &((uct_dcx_iface_t *)obj)->super.rx;

    ucs_string_buffer_appendf(text,
                              "DCT 0x%x, receive buffers %u of %u, "
                              "dropped messages %u\n",
                              rx->dctn, rx->length - uct_dcx_srq_num_free(rx),
                              rx->length, rx->dropped);
}


static void uct_dcx_vfs_credits(void *obj, ucs_string_buffer_t *text, void *arg,
                                uint64_t arg_u64)
{
    const uct_dcx_fc_t *fc            = &((uct_dcx_iface_t *)obj)->fc;
    const uct_dcx_credit_bank_t *bank = &fc->bank;

    ucs_string_buffer_appendf(text,
                              "flow control %d, window %u, first %u, granted "
                              "%u of %u, endpoints without credits %u\n",
                              fc->enabled, bank->window, bank->base,
                              bank->granted[0] + bank->granted[1], bank->size,
                              fc->table.num_blocked);
}


static void uct_dcx_vfs_tags(void *obj, ucs_string_buffer_t *text, void *arg,
                             uint64_t arg_u64)
{
    static const uct_dcx_tm_t off = {.num_entries = 1};
    const uct_dcx_tm_t *tm        = ((uct_dcx_iface_t *)obj)->super.tm;

    tm = (tm == NULL) ? &off : tm;
    ucs_string_buffer_appendf(
        text, "posted buffers %u of %u, lost rendezvous %u\n",
        tm->num_entries - 1 - tm->num_free, tm->num_entries - 1, tm->num_lost);
}


/* Shows the mkeys of a domain by their size. */
static void uct_dcx_vfs_mkeys(void *obj, ucs_string_buffer_t *text, void *arg,
                              uint64_t arg_u64)
{
    uct_dcx_iface_t *iface = obj;
    uct_dcx_keys_t *keys =
        ucs_derived_of(iface->super.super.md, uct_dcx_md_t)->keys;
    uct_dcx_key_size_t *size;

    if ((keys == NULL) || !uct_dcx_keys_is_open(keys)) {
        return;
    }

    ucs_spin_lock(&keys->lock);
    for (size = keys->sizes; size < keys->sizes + UCT_DCX_KEY_KINDS; ++size) {
        ucs_string_buffer_appendf(
            text, "%s of %u pieces: %u of %u, in use %u\n",
            size->is_owned ? "handles" : "cache", size->num_klm, size->num,
            size->max, size->num - (unsigned)ucs_list_length(&size->lru));
    }
    ucs_string_buffer_appendf(text, "found %lu, written %lu, evicted %lu\n",
                              keys->stats.hits, keys->stats.misses,
                              keys->stats.evictions);
    ucs_spin_unlock(&keys->lock);
}


/* Shows the figures of the process, if it counts. */
static void uct_dcx_vfs_figures(void *obj, ucs_string_buffer_t *text, void *arg,
                                uint64_t arg_u64)
{
    char *figures = uct_dcx_figures_table();

    ucs_string_buffer_appendf(text, "%s", (figures == NULL) ? "" : figures);
    free(figures);
}


void uct_dcx_vfs_refresh(uct_iface_h tl_iface)
{
    static const struct {
        const char *name;
        __typeof__(uct_dcx_vfs_show) *show;
    } files[] = {
        {"in_use", uct_dcx_vfs_show},
        {"initiators", uct_dcx_vfs_initiators},
        {"target", uct_dcx_vfs_target},
        {"credits", uct_dcx_vfs_credits},
        {"tags", uct_dcx_vfs_tags},
        {"mkeys", uct_dcx_vfs_mkeys},
        {"figures", uct_dcx_vfs_figures}, /* the last: if there are any */
    };
    unsigned i, num = ucs_static_array_size(files) - (uct_dcx_figures == NULL);

    for (i = 0; i < num; ++i) {
        ucs_vfs_obj_add_ro_file(tl_iface, files[i].show, NULL, 0, "%s",
                                files[i].name);
    }
}
