/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Async events of an object: reports to the program that made it, and to a
 * subscriber by DEVX.
 */
#ifndef HCA_ASYNC_H
#define HCA_ASYNC_H

#include "hca_objs.h"

/* Event types of the device (mlx5_ifc.h and the kernel's linux/mlx5/device.h,
 * MLX5_EVENT_TYPE_*). */
enum hca_eqe_type {
    HCA_EQE_COMP         = 0x00, /* completion on an armed CQ */
    HCA_EQE_CQ_ERROR     = 0x04,
    HCA_EQE_WQ_CATAS     = 0x05,
    HCA_EQE_WQ_INVAL     = 0x10,
    HCA_EQE_WQ_ACCESS    = 0x11,
    HCA_EQE_SRQ_CATAS    = 0x12,
    HCA_EQE_SRQ_LAST_WQE = 0x13,
    HCA_EQE_SRQ_LIMIT    = 0x14,
    HCA_EQE_XRQ_ERROR    = 0x18
};

#define HCA_EQE_BIT(_type) (1ull << (_type))

/* Reports an async event of @obj on obj->async_chan, with obj->user_handle as
 * its element, and counts it in obj->events; reports it to a subscriber, too.
 * The caller holds obj->lock. */
void hca_async_event(struct hca_obj *obj, enum ibv_event_type type);

/* hca_async_event() of an object whose subscriber gets the type @eqe instead */
void hca_async_event_as(struct hca_obj *obj, enum ibv_event_type type,
                        enum hca_eqe_type eqe);

/* Ends the async events of an object before its destruction, and removes unread
 * ones. The caller holds obj->lock.
 * @param events  number of events that the program has read
 * @return 0; -ETIMEDOUT, as hca_chan_purge(): they have not ended. */
int hca_async_end(struct hca_obj *obj, uint32_t *events);

/* Subscribes to the events of an object. Takes obj->lock.
 * @return 0, -EOPNOTSUPP (another subscription exists). */
int hca_async_subscribe(struct hca_obj *obj,
                        const struct hca_subscription *subscription);

/* Writes the cookie of an object's subscription, if it has one for this type.
 * The caller holds obj->lock, as for hca_async_event(). @return 0, or as
 * hca_chan_write(). */
int hca_async_notify(struct hca_obj *obj, enum hca_eqe_type type);

#endif
