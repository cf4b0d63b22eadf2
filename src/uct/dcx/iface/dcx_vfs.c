/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The file "in_use" of an interface in UCX's virtual file system, with a line
 * for each pool: how much of it is in use. When all operations have ended, and
 * all endpoints are destroyed, the numbers are those of the opening. UCX reads
 * it in the thread of ucx_vfs, without a lock: numbers may be those of a
 * moment ago, and a list may change under the reader. So each walk has a limit.
 */
#include "dcx_vfs.h"
#include "dcx_iface.h"
#include "uct/dcx/mem/dcx_md.h"

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


void uct_dcx_vfs_refresh(uct_iface_h tl_iface)
{
    ucs_vfs_obj_add_ro_file(tl_iface, uct_dcx_vfs_show, NULL, 0, "in_use");
}
