/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creates keys that get their layout by UMR, and their pools in a domain; see
 * dcx_key_make.h. The command has the parameters of libmlx5's
 * mlx5dv_create_mkey().
 *
 * Memory that a key names is read with the lock: a thread that deregisters it
 * invalidates its layouts first.
 */
#include "dcx_key_make.h"
#include "dcx_key_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <sys/mman.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>


/* Alignment of translations that are read from memory (Linux, mlx5_ib:
 * MLX5_UMR_ALIGN) */
#define UCT_DCX_KEY_KLM_ALIGN 2048ul

/* Keys made at a time */
#define UCT_DCX_KEY_BATCH 8


enum {
    /* translations of the smallest keys, and of those between the maximum in a
     * WQE and the maximum of all: 1,024 pieces and the head of a strided
     * layout */
    UCT_DCX_KEY_FEW  = 4,
    UCT_DCX_KEY_MANY = 1028,

    /* spare keys beside those that may be owned: with 255 numbers each, one of
     * them always has a number that was not released lately */
    UCT_DCX_KEY_SPARE = (UCT_DCX_STALE_NUMBERS / 255) + 1
};


static ucs_status_t uct_dcx_key_create(uct_dcx_key_t *key,
                                       const uct_dcx_device_t *dev)
{
    struct prm_create_mkey_in in = {.opcode = htobe16(PRM_CMD_CREATE_MKEY)};

    in.mkc.rights = htobe32(PRM_MKC_FREE | PRM_MKC_UMR_EN | PRM_MKC_LOCAL_READ |
                            PRM_MKC_ACCESS_MODE_KLM);
    in.mkc.qpn_mkey_7_0              = htobe32(PRM_MKC_ANY_QP);
    in.mkc.flags_pd                  = htobe32(dev->pdn);
    in.mkc.translations_octword_size = htobe32(key->size->num_klm);
    return uct_dcx_devx_create(&key->obj, dev, "mkey of a layout", &in,
                               sizeof(in));
}


/* Allocates memory for translations that do not fit in a WQE. */
static ucs_status_t uct_dcx_key_batch_alloc_klm(uct_dcx_key_batch_t *batch,
                                                const uct_dcx_device_t *dev,
                                                size_t stride)
{
    batch->klm_size = batch->num * stride;
    batch->klm      = mmap(NULL, batch->klm_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (batch->klm == MAP_FAILED) {
        ucs_error("%s: failed to allocate %zu bytes for layouts: %m",
                  uct_dcx_device_name(dev), batch->klm_size);
        return UCS_ERR_NO_MEMORY;
    }

    batch->mr = ibv_reg_mr(dev->pd, batch->klm, batch->klm_size, 0);
    if (batch->mr == NULL) {
        ucs_error("%s: failed to register %zu bytes for layouts: %m",
                  uct_dcx_device_name(dev), batch->klm_size);
        munmap(batch->klm, batch->klm_size);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


static void uct_dcx_key_batch_free(uct_dcx_key_batch_t *batch)
{
    if (batch->mr != NULL) {
        if (ibv_dereg_mr(batch->mr) != 0) {
            ucs_warn("failed to deregister memory for layouts: %m");
        }
        munmap(batch->klm, batch->klm_size);
    }
    ucs_free(batch->rooms);
    ucs_free(batch);
}


/* Returns the bytes for the layout of a key, for its references, and for those
 * of the previous layout. */
static size_t uct_dcx_key_room_size(const uct_dcx_key_size_t *size)
{
    return uct_dcx_sgl_size(size->num_klm) +
           (2 * size->num_klm * sizeof(uct_dcx_key_ref_t));
}


static ucs_status_t uct_dcx_key_batch_alloc(const uct_dcx_device_t *dev,
                                            const uct_dcx_key_size_t *size,
                                            unsigned num,
                                            uct_dcx_key_batch_t **batch_p)
{
    size_t stride = ucs_align_up_pow2(size->num_klm * sizeof(uct_dcx_umr_klm_t),
                                      UCT_DCX_KEY_KLM_ALIGN);
    ucs_status_t status = UCS_OK;
    uct_dcx_key_batch_t *batch;

    batch = ucs_calloc(1, sizeof(*batch) + (num * sizeof(batch->keys[0])),
                       "uct_dcx_key_batch");
    if (batch == NULL) {
        goto err;
    }

    batch->num   = num;
    batch->rooms = ucs_malloc(num * uct_dcx_key_room_size(size),
                              "uct_dcx_key_rooms");
    if (batch->rooms == NULL) {
        goto err_free;
    }

    if (size->num_klm > dev->umr.max_inline) {
        status = uct_dcx_key_batch_alloc_klm(batch, dev, stride);
    }
    if (status != UCS_OK) {
        uct_dcx_key_batch_free(batch);
        return status;
    }

    *batch_p = batch;
    return UCS_OK;

err_free:
    uct_dcx_key_batch_free(batch);
err:
    ucs_error("%s: out of memory for %u mkeys of layouts",
              uct_dcx_device_name(dev), num);
    return UCS_ERR_NO_MEMORY;
}


static void uct_dcx_key_init(uct_dcx_key_batch_t *batch, unsigned index,
                             uct_dcx_key_size_t *size)
{
    uct_dcx_key_t *key = &batch->keys[index];
    void *room         = batch->rooms + (index * uct_dcx_key_room_size(size));

    key->size             = size;
    key->layout           = room;
    key->layout->is_based = 0;
    key->refs = UCS_PTR_BYTE_OFFSET(room, uct_dcx_sgl_size(size->num_klm));
    key->past = key->refs + size->num_klm;
    if (batch->mr != NULL) {
        size_t klm_size = batch->klm_size / batch->num;

        key->klm      = UCS_PTR_BYTE_OFFSET(batch->klm, index * klm_size);
        key->klm_lkey = batch->mr->lkey;
    }
}


static void uct_dcx_key_batch_destroy(uct_dcx_key_batch_t *batch)
{
    unsigned i;

    for (i = 0; i < batch->num; ++i) {
        if (batch->keys[i].obj.obj != NULL) {
            uct_dcx_devx_destroy(&batch->keys[i].obj);
        }
    }
    uct_dcx_key_batch_free(batch);
}


static ucs_status_t uct_dcx_key_batch_create(const uct_dcx_device_t *dev,
                                             uct_dcx_key_size_t *size,
                                             unsigned num,
                                             uct_dcx_key_batch_t **batch_p)
{
    ucs_status_t status = uct_dcx_key_batch_alloc(dev, size, num, batch_p);
    unsigned i;

    for (i = 0; (i < num) && (status == UCS_OK); ++i) {
        uct_dcx_key_init(*batch_p, i, size);
        status = uct_dcx_key_create(&(*batch_p)->keys[i], dev);
        if (status != UCS_OK) {
            (*batch_p)->num = i;
            uct_dcx_key_batch_destroy(*batch_p);
        }
    }
    return status;
}


/* Returns the head of the list of keys whose index has this hash. */
static uct_dcx_key_t **uct_dcx_keys_numbered(uct_dcx_keys_t *keys,
                                             uint32_t index)
{
    return &keys->numbers[index % UCT_DCX_KEY_BUCKETS];
}


ucs_status_t uct_dcx_keys_grow(uct_dcx_keys_t *keys, uct_dcx_key_size_t *size)
{
    unsigned num = ucs_min(size->max - size->num, UCT_DCX_KEY_BATCH);
    uct_dcx_key_t *key, **numbered;
    uct_dcx_key_batch_t *batch;
    ucs_status_t status;

    size->is_growing++;
    size->num += num;
    ucs_spin_unlock(&keys->lock);
    status = uct_dcx_key_batch_create(keys->params.dev, size, num, &batch);
    ucs_spin_lock(&keys->lock);
    size->is_growing--;
    if (status != UCS_OK) {
        size->num -= num;
        if (!size->is_owned && (status != UCS_ERR_NO_MEMORY)) {
            size->max = size->num; /* do not try again */
        }
        return status;
    }

    for (key = batch->keys; key < batch->keys + num; ++key) {
        numbered      = uct_dcx_keys_numbered(keys, key->obj.number);
        key->numbered = *numbered;
        *numbered     = key;
        key->lkey     = key->obj.number << 8;
        ucs_list_add_head(&size->lru, &key->list);
    }
    ucs_list_add_tail(&size->batches, &batch->list);
    keys->stats.num_keys += num;
    return UCS_OK;
}


/* --- all keys of a domain ------------------------------------------------- */

/* Sets the sizes: a few translations; the maximum in a WQE, enough for most
 * faces; many; and the maximum of options and device, whose keys take most
 * memory. */
static void uct_dcx_keys_init_sizes(uct_dcx_keys_t *keys)
{
    const uct_dcx_keys_params_t *params = &keys->params;
    unsigned most = ucs_align_up_pow2(params->max_entries + 1,
                                      UCT_DCX_SGL_KLM_ALIGN);
    const unsigned num_klm[UCT_DCX_KEY_SIZES] = {
        UCT_DCX_KEY_FEW,
        params->dev->umr.max_inline,
        UCT_DCX_KEY_MANY,
        most,
    };
    uct_dcx_key_size_t *size;
    unsigned i;

    for (i = 0; i < UCT_DCX_KEY_KINDS; ++i) {
        size           = &keys->sizes[i];
        size->is_owned = (i >= UCT_DCX_KEY_SIZES);
        size->num_klm  = ucs_min(num_klm[i % UCT_DCX_KEY_SIZES],
                                 ucs_min(most, params->dev->umr.max_klm));
        size->max = size->is_owned ? params->max_owned + UCT_DCX_KEY_SPARE :
                                     params->max_keys;
        ucs_list_head_init(&size->lru);
        ucs_list_head_init(&size->batches);
    }
}


ucs_status_t uct_dcx_keys_init(uct_dcx_keys_t *keys,
                               const uct_dcx_keys_params_t *params)
{
    unsigned i;

    memset(keys, 0, sizeof(*keys));
    keys->params  = *params;
    keys->timeout = ucs_time_from_sec(UCT_DCX_KEY_TIMEOUT);
    for (i = 0; i < UCT_DCX_KEY_BUCKETS; ++i) {
        ucs_list_head_init(&keys->refs[i]);
    }
    ucs_list_head_init(&keys->handles);
    ucs_list_head_init(&keys->pending);
    ucs_list_head_init(&keys->leaving);
    uct_dcx_keys_init_sizes(keys);
    return ucs_spinlock_init(&keys->lock, 0);
}


static void uct_dcx_keys_close(uct_dcx_keys_t *keys)
{
    uct_dcx_key_batch_t *batch, *next;
    uct_dcx_key_size_t *size;

    uct_dcx_umr_cleanup(&keys->umr);
    for (size = keys->sizes; size < keys->sizes + UCT_DCX_KEY_KINDS; ++size) {
        ucs_list_for_each_safe (batch, next, &size->batches, list) {
            uct_dcx_key_batch_destroy(batch);
        }
    }
}


void uct_dcx_keys_cleanup(uct_dcx_keys_t *keys)
{
    const uct_dcx_keys_stats_t *stats = &keys->stats;
    const char *name                  = uct_dcx_device_name(keys->params.dev);

    if (keys->is_open) {
        ucs_info(
            "%s: layouts: %lu hits, %lu misses, %lu evictions, %lu times "
            "exhausted; %lu set in handles; %lu invalidated, %lu failures; "
            "%u mkeys, %lu doorbells",
            name, stats->hits, stats->misses, stats->evictions,
            stats->exhausted, stats->sets, stats->invalidated, stats->failures,
            stats->num_keys, keys->umr.num_doorbells);
        uct_dcx_keys_close(keys);
    }
    ucs_spinlock_destroy(&keys->lock);
}


ucs_status_t uct_dcx_keys_open(uct_dcx_keys_t *keys,
                               const uct_dcx_devx_path_t *path)
{
    const uct_dcx_device_t *dev = keys->params.dev;
    ucs_status_t status         = UCS_OK;

    if (!dev->has_devx || !dev->umr.has_keys) {
        return UCS_ERR_UNSUPPORTED;
    }

    ucs_spin_lock(&keys->lock);
    while (keys->status == UCS_INPROGRESS) { /* another thread runs a command */
        uct_dcx_keys_yield(keys);
    }
    if (!keys->is_open) {
        uct_dcx_keys_begin_command(keys);
        status = uct_dcx_umr_init(&keys->umr, dev, path);
        if ((status == UCS_OK) && (keys->params.async != NULL)) {
            uct_dcx_async_watch_obj(keys->params.async, &keys->watch,
                                    &keys->umr.qp.obj, IBV_EVENT_QP_FATAL);
        }
        uct_dcx_keys_end_command(keys, UCS_OK);
        __atomic_store_n(&keys->is_open, status == UCS_OK, __ATOMIC_RELEASE);
    }
    ucs_spin_unlock(&keys->lock);
    return status;
}


unsigned uct_dcx_keys_max_klm(const uct_dcx_keys_t *keys)
{
    return keys->sizes[UCT_DCX_KEY_SIZES - 1].num_klm;
}


/* --- memory that a key names ---------------------------------------------- */

/* Returns 1 if the key has this number, in any variant. Of a destroyed key only
 * the last number counts: memory may have another one by now. */
static int uct_dcx_key_has_number(const uct_dcx_key_t *key, uint32_t number)
{
    return (key->obj.obj != NULL) ? ((key->lkey ^ number) >> 8 == 0) :
                                    (key->lkey == number);
}


/* Returns the key with this number; NULL: it is a key of memory. */
static const uct_dcx_key_t *uct_dcx_keys_of_lkey(uct_dcx_keys_t *keys,
                                                 uint32_t lkey)
{
    const uct_dcx_key_t *key = *uct_dcx_keys_numbered(keys, lkey >> 8);

    while ((key != NULL) && !uct_dcx_key_has_number(key, lkey)) {
        key = key->numbered;
    }
    return key;
}


static int uct_dcx_key_has_byte(const uct_dcx_key_t *key, uint32_t lkey,
                                uint64_t addr)
{
    return (key->state != UCT_DCX_KEY_FREE) && (key->lkey == lkey) &&
           (addr - key->layout->start < key->layout->length);
}


/* Finds the memory at @addr. Returns the number of contiguous bytes there, at
 * most @max; 0 if there are none. */
static size_t uct_dcx_keys_follow(uct_dcx_keys_t *keys, uint32_t lkey,
                                  uint64_t addr, size_t max, void **place_p)
{
    const uct_dcx_key_t *key;
    uct_dcx_sgl_entry_t piece;

    while ((key = uct_dcx_keys_of_lkey(keys, lkey)) != NULL) {
        if (!uct_dcx_key_has_byte(key, lkey, addr)) {
            return 0;
        }

        piece = uct_dcx_sgl_find(key->layout, addr - key->layout->start);
        lkey  = piece.lkey;
        addr  = piece.addr;
        max   = ucs_min(max, piece.bytes);
    }

    *place_p = (void *)(uintptr_t)addr;
    return max;
}


ucs_status_t uct_dcx_keys_place(uct_dcx_keys_t *keys, uint32_t lkey,
                                uint64_t addr, void **place_p)
{
    size_t count;

    ucs_spin_lock(&keys->lock);
    count = uct_dcx_keys_follow(keys, lkey, addr, 1, place_p);
    ucs_spin_unlock(&keys->lock);
    return (count > 0) ? UCS_OK : UCS_ERR_NO_ELEM;
}


ucs_status_t uct_dcx_keys_read(uct_dcx_keys_t *keys, uint32_t lkey,
                               uint64_t addr, size_t length, void *buffer)
{
    ucs_status_t status = UCS_OK;
    size_t pos          = 0;
    void *place;
    size_t count;

    ucs_spin_lock(&keys->lock);
    while ((pos < length) && (status == UCS_OK)) {
        count = uct_dcx_keys_follow(keys, lkey, addr + pos, length - pos,
                                    &place);
        if (count > 0) {
            memcpy(UCS_PTR_BYTE_OFFSET(buffer, pos), place, count);
            pos += count;
        } else {
            status = UCS_ERR_NO_ELEM;
        }
    }
    ucs_spin_unlock(&keys->lock);
    return status;
}
