/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creates and destroys indirect keys with DEVX, command CREATE_MKEY; see
 * dcx_mkey.h.
 */
#include "dcx_mkey.h"
#include "common/prm_cmd.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>


/* Bytes of the region for each entry of the key; fewer for the last one. The
 * key begins at a multiple of it, below the region if necessary: some firmware
 * counts entries from there, regardless of the key's start ("CREATE_MKEY range
 * check issue", ib_mlx5dv_md.c of UCX, which does the same). The region still
 * limits access. */
#define UCT_DCX_MKEY_LOG_ENTITY 31
#define UCT_DCX_MKEY_ENTITY     UCS_BIT(UCT_DCX_MKEY_LOG_ENTITY)

/* The key ends at a multiple of this. Atomics through an indirect key need at
 * least their own size (ib_mlx5dv_md.c). */
#define UCT_DCX_MKEY_ALIGN 4096ul

/* Numbers to try: each costs an index that the device has returned before */
#define UCT_DCX_MKEY_TRIES (4 * UCT_DCX_MKEY_HELD)


ucs_status_t uct_dcx_mkeys_init(uct_dcx_mkeys_t *mkeys,
                                const uct_dcx_device_t *dev)
{
    mkeys->dev = dev;
    return ucs_spinlock_init(&mkeys->lock, 0);
}


static ucs_status_t uct_dcx_mkey_destroy_obj(const uct_dcx_mkeys_t *mkeys,
                                             struct mlx5dv_devx_obj *obj)
{
    if (mlx5dv_devx_obj_destroy(obj) != 0) {
        ucs_warn("%s: failed to destroy an indirect mkey: %m",
                 uct_dcx_device_name(mkeys->dev));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


void uct_dcx_mkeys_cleanup(uct_dcx_mkeys_t *mkeys)
{
    unsigned i;

    for (i = 0; i < UCT_DCX_MKEY_HELD; ++i) {
        if (mkeys->held[i] != NULL) {
            uct_dcx_mkey_destroy_obj(mkeys, mkeys->held[i]);
        }
    }
    ucs_spinlock_destroy(&mkeys->lock);
}


/* Returns the start of the key, which spans more than the region. */
static uint64_t uct_dcx_mkey_start(const struct ibv_mr *mr)
{
    return ucs_align_down_pow2((uintptr_t)mr->addr, UCT_DCX_MKEY_ENTITY);
}


static uint64_t uct_dcx_mkey_length(const struct ibv_mr *mr)
{
    return ucs_align_up_pow2((uintptr_t)mr->addr + mr->length,
                             UCT_DCX_MKEY_ALIGN) -
           uct_dcx_mkey_start(mr);
}


/* Returns the rights of a key: at most those of the region, as firmware refuses
 * a key with atomics over one without them (issue 8218 of UCX). */
static uint32_t uct_dcx_mkey_rights(const uct_dcx_mkeys_t *mkeys,
                                    uint32_t access)
{
    return PRM_MKC_LOCAL_READ |
           ((access & IBV_ACCESS_LOCAL_WRITE) ? PRM_MKC_LOCAL_WRITE : 0) |
           ((access & IBV_ACCESS_REMOTE_READ) ? PRM_MKC_REMOTE_READ : 0) |
           ((access & IBV_ACCESS_REMOTE_WRITE) ? PRM_MKC_REMOTE_WRITE : 0) |
           (((access & IBV_ACCESS_REMOTE_ATOMIC) &&
             mkeys->dev->indirect_atomics) ?
                PRM_MKC_ATOMIC :
                0);
}


static void uct_dcx_mkey_fill(const uct_dcx_mkeys_t *mkeys,
                              const struct ibv_mr *mr, unsigned num_entries,
                              struct prm_create_mkey_in *in)
{
    uint64_t address = uct_dcx_mkey_start(mr);
    unsigned i;

    in->opcode                           = htobe16(PRM_CMD_CREATE_MKEY);
    in->mkc.flags_pd                     = htobe32(mkeys->dev->pdn);
    in->mkc.start_addr                   = htobe64(address);
    in->mkc.len                          = htobe64(uct_dcx_mkey_length(mr));
    in->mkc.translations_octword_size    = htobe32(num_entries);
    in->mkc.log_entity_size              = htobe32(UCT_DCX_MKEY_LOG_ENTITY);
    in->translations_octword_actual_size = htobe32(num_entries);
    for (i = 0; i < num_entries; ++i) {
        in->klm[i].mkey    = htobe32(mr->lkey);
        in->klm[i].address = htobe64(address);
        address += UCT_DCX_MKEY_ENTITY;
    }
}


/* Creates a key as @in describes it, with the next variant. */
static struct mlx5dv_devx_obj *
uct_dcx_mkey_create_obj(uct_dcx_mkeys_t *mkeys, uint32_t rights,
                        struct prm_create_mkey_in *in, uint32_t *number_p)
{
    struct prm_create_mkey_out out = {};
    struct mlx5dv_devx_obj *obj;
    uint8_t variant;
    size_t size;

    ucs_spin_lock(&mkeys->lock);
    variant = mkeys->variant++;
    ucs_spin_unlock(&mkeys->lock);

    in->mkc.rights       = htobe32(rights | PRM_MKC_ACCESS_MODE_KSM);
    in->mkc.qpn_mkey_7_0 = htobe32(PRM_MKC_ANY_QP | variant);
    size                 = sizeof(*in) +
           (be32toh(in->translations_octword_actual_size) * sizeof(in->klm[0]));
    obj = mlx5dv_devx_obj_create(mkeys->dev->ctx, in, size, &out, sizeof(out));
    if (obj == NULL) {
        ucs_error("%s: failed to create an indirect mkey: %m (syndrome 0x%x)",
                  uct_dcx_device_name(mkeys->dev), be32toh(out.syndrome));
        return NULL;
    }

    *number_p = (be32toh(out.mkey_index) << 8) | variant;
    return obj;
}


/* Keeps an index busy, most likely the one released just now; releases the one
 * that was kept longest. */
static void uct_dcx_mkey_hold(uct_dcx_mkeys_t *mkeys,
                              struct prm_create_mkey_in *in)
{
    struct mlx5dv_devx_obj *obj, *oldest;
    uint32_t number;

    obj = uct_dcx_mkey_create_obj(mkeys, 0, in, &number);
    ucs_spin_lock(&mkeys->lock);
    oldest                        = mkeys->held[mkeys->next_held];
    mkeys->held[mkeys->next_held] = obj;
    mkeys->next_held              = (mkeys->next_held + 1) % UCT_DCX_MKEY_HELD;
    ucs_spin_unlock(&mkeys->lock);

    if (oldest != NULL) {
        uct_dcx_mkey_destroy_obj(mkeys, oldest);
    }
}


int uct_dcx_mkey_is_stale(uct_dcx_mkeys_t *mkeys, uint32_t number)
{
    int is_stale;

    ucs_spin_lock(&mkeys->lock);
    is_stale = uct_dcx_stale_has(&mkeys->stale, number);
    ucs_spin_unlock(&mkeys->lock);
    return is_stale;
}


void uct_dcx_mkey_add_stale(uct_dcx_mkeys_t *mkeys, uint32_t number)
{
    ucs_spin_lock(&mkeys->lock);
    uct_dcx_stale_add(&mkeys->stale, number);
    ucs_spin_unlock(&mkeys->lock);
}


/* Creates a key with a number that no peer can still use. */
static ucs_status_t uct_dcx_mkey_create_fresh(uct_dcx_mkeys_t *mkeys,
                                              uint32_t rights,
                                              struct prm_create_mkey_in *in,
                                              uct_dcx_mkey_t *mkey)
{
    unsigned tries;

    for (tries = 0; tries < UCT_DCX_MKEY_TRIES; ++tries) {
        mkey->obj = uct_dcx_mkey_create_obj(mkeys, rights, in, &mkey->rkey);
        if (mkey->obj == NULL) {
            return UCS_ERR_IO_ERROR;
        }

        if (!uct_dcx_mkey_is_stale(mkeys, mkey->rkey)) {
            return UCS_OK;
        }

        ucs_debug("%s: indirect mkey 0x%x was in use before, creating another "
                  "one",
                  uct_dcx_device_name(mkeys->dev), mkey->rkey);
        uct_dcx_mkey_destroy_obj(mkeys, mkey->obj);
        uct_dcx_mkey_hold(mkeys, in);
    }

    ucs_error("%s: failed to create an indirect mkey that was not in use "
              "before",
              uct_dcx_device_name(mkeys->dev));
    return UCS_ERR_NO_RESOURCE;
}


ucs_status_t uct_dcx_mkey_create(uct_dcx_mkeys_t *mkeys,
                                 const struct ibv_mr *mr, uint32_t access,
                                 uct_dcx_mkey_t **mkey_p)
{
    unsigned num_entries = ucs_div_round_up(uct_dcx_mkey_length(mr),
                                            UCT_DCX_MKEY_ENTITY);
    struct prm_create_mkey_in *in;
    uct_dcx_mkey_t *mkey;
    ucs_status_t status;

    in   = ucs_calloc(1, sizeof(*in) + (num_entries * sizeof(in->klm[0])),
                      "uct_dcx_mkey_mailbox");
    mkey = ucs_calloc(1, sizeof(*mkey), "uct_dcx_mkey");
    if ((in == NULL) || (mkey == NULL)) {
        ucs_error("%s: out of memory for an indirect mkey",
                  uct_dcx_device_name(mkeys->dev));
        status = UCS_ERR_NO_MEMORY;
        goto err_free_mkey;
    }

    uct_dcx_mkey_fill(mkeys, mr, num_entries, in);
    status = uct_dcx_mkey_create_fresh(
        mkeys, uct_dcx_mkey_rights(mkeys, access), in, mkey);
    if (status != UCS_OK) {
        goto err_free_mkey;
    }

    ucs_debug("%s: indirect mkey 0x%x for %p of %zu bytes",
              uct_dcx_device_name(mkeys->dev), mkey->rkey, mr->addr,
              mr->length);
    ucs_free(in);
    *mkey_p = mkey;
    return UCS_OK;

err_free_mkey:
    ucs_free(mkey);
    ucs_free(in);
    return status;
}


ucs_status_t uct_dcx_mkey_destroy(uct_dcx_mkeys_t *mkeys, uct_dcx_mkey_t *mkey)
{
    ucs_status_t status;

    /* First: another thread may get the index before this call returns. */
    uct_dcx_mkey_add_stale(mkeys, mkey->rkey);

    status = uct_dcx_mkey_destroy_obj(mkeys, mkey->obj);
    ucs_free(mkey);
    return status;
}
