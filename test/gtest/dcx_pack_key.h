/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* uct_md_mkey_pack_v2() of each version of UCX (uct/api/v2/uct_v2.h). */
#ifndef DCX_TEST_DCX_PACK_KEY_H
#define DCX_TEST_DCX_PACK_KEY_H

#include <uct/api/v2/uct_v2.h>

/* Packs the key of a range of registered memory. */
static inline ucs_status_t dcx_pack_key(uct_md_h md, uct_mem_h memh,
                                        void *address, size_t length,
                                        bool can_invalidate, uint8_t *key)
{
#if UCT_VERNO_MINOR >= 15
    const unsigned flags = UCT_MD_MKEY_PACK_FLAG_INVALIDATE_RMA |
                           UCT_MD_MKEY_PACK_FLAG_INVALIDATE_AMO;
#else
    const unsigned flags = UCT_MD_MKEY_PACK_FLAG_INVALIDATE;
#endif
    uct_md_mkey_pack_params_t params = {};

    params.field_mask = UCT_MD_MKEY_PACK_FIELD_FLAGS;
    params.flags      = can_invalidate ? flags : 0;
#if UCT_VERNO_MINOR >= 16
    return uct_md_mkey_pack_v2(md, memh, address, length, &params, key);
#else
    (void)address;
    (void)length;
    return uct_md_mkey_pack_v2(md, memh, &params, key);
#endif
}

#endif
