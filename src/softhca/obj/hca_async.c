/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Async events: see hca_async.h. */
#define _GNU_SOURCE
#include "hca_async.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_chan.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>

int hca_async_notify(struct hca_obj *obj, enum hca_eqe_type type)
{
    uint32_t uncounted = 0; /* events of DEVX are not acknowledged */

    return ((obj->devx.chan == 0) || !(obj->devx.mask & HCA_EQE_BIT(type))) ?
               0 :
               hca_chan_write(obj->devx.chan, &obj->devx.cookie,
                              sizeof(obj->devx.cookie), &uncounted);
}

/* Returns the device's type of an event; 0: none, so that no subscriber gets
 * it. */
static enum hca_eqe_type hca_eqe_type(enum ibv_event_type type)
{
    static const uint8_t types[] = {
        [IBV_EVENT_CQ_ERR]              = HCA_EQE_CQ_ERROR,
        [IBV_EVENT_QP_FATAL]            = HCA_EQE_WQ_CATAS,
        [IBV_EVENT_QP_REQ_ERR]          = HCA_EQE_WQ_INVAL,
        [IBV_EVENT_QP_ACCESS_ERR]       = HCA_EQE_WQ_ACCESS,
        [IBV_EVENT_SRQ_ERR]             = HCA_EQE_SRQ_CATAS,
        [IBV_EVENT_QP_LAST_WQE_REACHED] = HCA_EQE_SRQ_LAST_WQE,
        [IBV_EVENT_SRQ_LIMIT_REACHED]   = HCA_EQE_SRQ_LIMIT,
    };

    return (type < sizeof(types)) ? types[type] : 0;
}

void hca_async_event_as(struct hca_obj *obj, enum ibv_event_type type,
                        enum hca_eqe_type eqe)
{
    struct ib_uverbs_async_event_desc desc = {
        .element    = obj->user_handle,
        .event_type = type,
    };

    hca_info("object 0x%x: async event %d", atomic_load(&obj->num), type);
    if (obj->async_chan != 0) {
        hca_chan_write(obj->async_chan, &desc, sizeof(desc), &obj->events);
    }
    if (eqe != 0) {
        hca_async_notify(obj, eqe);
    }
}

void hca_async_event(struct hca_obj *obj, enum ibv_event_type type)
{
    hca_async_event_as(obj, type, hca_eqe_type(type));
}

static bool hca_async_match(const void *record, void *arg)
{
    const struct ib_uverbs_async_event_desc *desc = record;

    return desc->element == *(uint64_t *)arg;
}

int hca_async_end(struct hca_obj *obj, uint32_t *events)
{
    uint64_t element = obj->user_handle;
    int ret          = hca_chan_purge(obj->async_chan,
                                      sizeof(struct ib_uverbs_async_event_desc),
                                      hca_async_match, &element, &obj->events);

    if (ret == 0) {
        obj->async_chan = 0;
        *events         = obj->events;
    }
    return ret;
}

int hca_async_subscribe(struct hca_obj *obj,
                        const struct hca_subscription *subscription)
{
    bool is_taken;

    hca_mutex_lock(&obj->lock);
    is_taken = (obj->devx.chan != 0);
    if (!is_taken) {
        obj->devx = *subscription;
    }
    hca_mutex_unlock(&obj->lock);
    return is_taken ? -EOPNOTSUPP : 0;
}
