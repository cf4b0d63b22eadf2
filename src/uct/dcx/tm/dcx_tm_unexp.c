/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Requests of a rendezvous that the device leaves to the user; see
 * dcx_tm_unexp.h.
 */
#include "dcx_tm_unexp.h"
#include "uct/dcx/mem/dcx_mem.h"


/* Returns the user's header, moved into one piece. The device limits the length
 * of a request, so the first bytes are sent in reserved bytes of @tmh, and the
 * others behind all headers. Returns NULL if the request is malformed. */
static void *uct_dcx_tm_rndv_hdr(struct ibv_tmh *tmh, size_t *length)
{
    const uint8_t count = tmh->reserved[0];
    uint8_t *hdr        = UCS_PTR_BYTE_OFFSET(tmh, UCT_DCX_TM_RNDV_HDR);

    if ((*length < UCT_DCX_TM_RNDV_HDR) || (count > UCT_DCX_TM_RNDV_IN_TMH)) {
        return NULL;
    }

    *length += count - UCT_DCX_TM_RNDV_HDR;
    return memcpy(hdr - count, &tmh->reserved[1], count);
}


ucs_status_t uct_dcx_tm_unexpected_rndv(uct_dcx_tm_t *tm, struct ibv_tmh *tmh,
                                        size_t length)
{
    const struct ibv_rvh rvh = *(const struct ibv_rvh *)(tmh + 1);
    void *hdr                = uct_dcx_tm_rndv_hdr(tmh, &length);
    uint8_t rkey[UCT_DCX_RKEY_PACKED_SIZE];

    if (ucs_unlikely(hdr == NULL)) {
        uct_dcx_queues_dropped(
            tm->queues, "a malformed rendezvous request of %zu bytes", length);
        return UCS_OK;
    }

    uct_dcx_mem_pack_rkey(be32toh(rvh.rkey), rkey);
    return tm->rndv_cb(tm->rndv_arg, 0, tmh->tag, hdr, length, be64toh(rvh.va),
                       be32toh(rvh.len), rkey);
}
