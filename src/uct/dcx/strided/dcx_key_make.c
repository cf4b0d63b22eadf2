/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creates keys that get their layout by UMR; see dcx_key_make.h. The command
 * has the parameters of libmlx5's mlx5dv_create_mkey().
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


/* Alignment of translations that are read from memory (Linux, mlx5_ib:
 * MLX5_UMR_ALIGN) */
#define UCT_DCX_KEY_KLM_ALIGN 2048ul

/* Keys made at a time */
#define UCT_DCX_KEY_BATCH 8


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


/* Returns the bytes for the layout of a key, for its names, and for those of
 * the previous layout. */
static size_t uct_dcx_key_room_size(const uct_dcx_key_size_t *size)
{
    return uct_dcx_sgl_size(size->num_klm) +
           (2 * size->num_klm * sizeof(uct_dcx_key_name_t));
}


static uct_dcx_key_batch_t *
uct_dcx_key_batch_alloc(const uct_dcx_device_t *dev,
                        const uct_dcx_key_size_t *size, unsigned num)
{
    size_t stride = ucs_align_up_pow2(size->num_klm * sizeof(uct_dcx_umr_klm_t),
                                      UCT_DCX_KEY_KLM_ALIGN);
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

    if ((size->num_klm > dev->umr.max_inline) &&
        (uct_dcx_key_batch_alloc_klm(batch, dev, stride) != UCS_OK)) {
        uct_dcx_key_batch_free(batch);
        return NULL;
    }
    return batch;

err_free:
    uct_dcx_key_batch_free(batch);
err:
    ucs_error("%s: failed to allocate %u mkeys for layouts",
              uct_dcx_device_name(dev), num);
    return NULL;
}


static void uct_dcx_key_init(uct_dcx_key_batch_t *batch, unsigned index,
                             uct_dcx_key_size_t *size)
{
    uct_dcx_key_t *key = &batch->keys[index];
    void *room         = batch->rooms + (index * uct_dcx_key_room_size(size));

    key->size             = size;
    key->layout           = room;
    key->layout->is_based = 0;
    key->names = UCS_PTR_BYTE_OFFSET(room, uct_dcx_sgl_size(size->num_klm));
    key->past  = key->names + size->num_klm;
    if (batch->mr != NULL) {
        key->klm      = UCS_PTR_BYTE_OFFSET(batch->klm,
                                            index * (batch->klm_size / batch->num));
        key->klm_lkey = batch->mr->lkey;
    }
}


static uct_dcx_key_batch_t *
uct_dcx_key_batch_create(const uct_dcx_device_t *dev, uct_dcx_key_size_t *size,
                         unsigned num)
{
    uct_dcx_key_batch_t *batch = uct_dcx_key_batch_alloc(dev, size, num);
    unsigned i;

    if (batch == NULL) {
        return NULL;
    }

    for (i = 0; i < num; ++i) {
        uct_dcx_key_init(batch, i, size);
        if (uct_dcx_key_create(&batch->keys[i], dev) != UCS_OK) {
            batch->num = i;
            uct_dcx_key_batch_destroy(batch);
            return NULL;
        }
    }
    return batch;
}


void uct_dcx_key_batch_destroy(uct_dcx_key_batch_t *batch)
{
    unsigned i;

    for (i = 0; i < batch->num; ++i) {
        if (batch->keys[i].obj.obj != NULL) {
            uct_dcx_devx_destroy(&batch->keys[i].obj);
        }
    }
    uct_dcx_key_batch_free(batch);
}


uct_dcx_key_size_t *uct_dcx_keys_size(uct_dcx_key_size_t *sizes,
                                      unsigned num_klm)
{
    unsigned i;

    for (i = 0; i < UCT_DCX_KEY_SIZES; ++i) {
        if (sizes[i].num_klm >= num_klm) {
            return &sizes[i];
        }
    }
    return NULL;
}


/* Keys with numbers whose index has the same hash */
static uct_dcx_key_t **uct_dcx_keys_numbered(uct_dcx_keys_t *keys,
                                             uint32_t index)
{
    return &keys->numbers[index % UCT_DCX_KEY_BUCKETS];
}


int uct_dcx_keys_grow(uct_dcx_keys_t *keys, uct_dcx_key_size_t *size)
{
    unsigned num = ucs_min(size->max - size->num, UCT_DCX_KEY_BATCH);
    uct_dcx_key_t *key, **numbered;
    uct_dcx_key_batch_t *batch;

    size->is_growing++;
    size->num += num;
    ucs_spin_unlock(&keys->lock);
    batch = uct_dcx_key_batch_create(keys->params.dev, size, num);
    ucs_spin_lock(&keys->lock);
    size->is_growing--;
    if (batch == NULL) {
        size->num -= num;
        if (!size->is_owned) {
            size->max = size->num; /* do not try again */
        }
        return 0;
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
    return 1;
}


int uct_dcx_keys_is_stale(const uct_dcx_keys_t *keys, uint32_t number)
{
    const uct_dcx_keys_params_t *params = &keys->params;

    return ((keys->num_given > 0) && uct_dcx_stale_has(&keys->stale, number)) ||
           ((params->is_stale != NULL) &&
            params->is_stale(params->arg, number));
}


int uct_dcx_keys_next_number(const uct_dcx_keys_t *keys,
                             const uct_dcx_key_t *key, uint32_t access,
                             uint32_t *number_p)
{
    const uint32_t remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    uint32_t index        = key->obj.number << 8;
    uint8_t variant       = key->lkey;

    while (++variant != (uint8_t)key->lkey) {
        if (!(access & remote) ||
            !uct_dcx_keys_is_stale(keys, index | variant)) {
            *number_p = index | variant;
            return 1;
        }
    }
    return 0;
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
