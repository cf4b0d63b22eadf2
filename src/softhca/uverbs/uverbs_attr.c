/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Attributes of an ioctl: copies them once from the program's memory, checks
 * them against the rows of the method, and passes them to its handler as slots.
 * Follows the kernel's uverbs_ioctl.c: an unknown attribute is an error only if
 * the program marks it as mandatory.
 */
#define _GNU_SOURCE
#include "softhca/doorbell/hca_trap.h"
#include "uverbs.h"
#include "uverbs_event.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The driver's own data: methods with uverbs_method.uhw take it besides the
 * attributes in their rows. */
static const struct uverbs_attr_spec uverbs_uhw_specs[] = {
    {UVERBS_ATTR_UHW_IN, UVERBS_IN, 0, 0, UINT16_MAX, 0},
    {UVERBS_ATTR_UHW_OUT, UVERBS_OUT, 0, 0, UINT16_MAX, 0},
};

/* A bad address is an error, not a fault, as in the kernel. dispatch_open() has
 * installed the handlers that this needs. */
int uverbs_copy_in(void *dst, uint64_t src, size_t size)
{
    return hca_trap_guard_memcpy(dst, (const void *)(uintptr_t)src, size);
}

static int uverbs_copy_out(uint64_t dst, const void *src, size_t size)
{
    return hca_trap_guard_memcpy((void *)(uintptr_t)dst, src, size);
}

/* Finds the row of an attribute. @return the number of its slot; -1 if the
 * method has no such attribute. */
static int uverbs_slot(const struct uverbs_method *method, uint16_t id,
                       const struct uverbs_attr_spec **spec)
{
    for (unsigned i = 0; i < method->num_attrs; i++) {
        if (method->attrs[i].id == id) {
            *spec = &method->attrs[i];
            return i;
        }
    }
    if (method->uhw && ((id & ~1) == UVERBS_ATTR_UHW_IN)) {
        *spec = &uverbs_uhw_specs[id & 1];
        return UVERBS_MAX_SPECS - 2 + (id & 1);
    }
    return -1;
}

static const struct uverbs_slot *uverbs_find(const struct uverbs_req *req,
                                             uint16_t id)
{
    const struct uverbs_attr_spec *spec;
    int slot = uverbs_slot(req->method, id, &spec);

    return ((slot < 0) || (req->slots[slot].attr == NULL)) ? NULL :
                                                             &req->slots[slot];
}

/* Checks that the bytes of an IN attribute are zero from @offset on.
 * @return 0, -EOPNOTSUPP, -EFAULT. */
static int uverbs_check_zero(const struct ib_uverbs_attr *attr, size_t offset)
{
    uint8_t chunk[64];
    size_t size;
    int ret;

    for (; offset < attr->len; offset += size) {
        size = attr->len - offset;
        if (size > sizeof(chunk)) {
            size = sizeof(chunk);
        }
        if (attr->len <= sizeof(attr->data)) {
            memcpy(chunk, (const char *)&attr->data + offset, size);
        } else {
            ret = uverbs_copy_in(chunk, attr->data + offset, size);
            if (ret != 0) {
                return ret;
            }
        }
        for (size_t i = 0; i < size; i++) {
            if (chunk[i] != 0) {
                return -EOPNOTSUPP;
            }
        }
    }
    return 0;
}

static int uverbs_check_bytes(const struct ib_uverbs_attr *attr,
                              const struct uverbs_attr_spec *spec)
{
    bool trailing = spec->flags & UVERBS_TRAILING;

    if ((attr->len < spec->min) || (!trailing && (attr->len > spec->max)) ||
        (attr->attr_data.reserved != 0)) {
        return -EINVAL;
    }
    return ((spec->kind == UVERBS_IN) && (attr->len > spec->max)) ?
               uverbs_check_zero(attr, spec->max) :
               0;
}

static int uverbs_check_obj(struct uverbs_req *req,
                            const struct ib_uverbs_attr *attr,
                            const struct uverbs_attr_spec *spec,
                            struct uverbs_obj **obj)
{
    int ret = 0;

    if ((attr->len != 0) || (attr->attr_data.reserved != 0)) {
        return -EINVAL;
    }
    if (spec->kind == UVERBS_IDR) {
        *obj = uverbs_obj_find(req->ctx, spec->type, attr->data, &ret);
    } else if (spec->kind == UVERBS_FD) {
        *obj = (struct uverbs_obj *)uverbs_event_find(req->ctx, spec->type,
                                                      attr->data_s64, &ret);
    }
    return ret;
}

static int uverbs_check_attr(struct uverbs_req *req,
                             struct ib_uverbs_attr *attr)
{
    const struct uverbs_attr_spec *spec;
    int slot               = uverbs_slot(req->method, attr->attr_id, &spec);
    struct uverbs_obj *obj = NULL;
    int ret;

    if (slot < 0) {
        return (attr->flags & UVERBS_ATTR_F_MANDATORY) ? -EPROTONOSUPPORT : 0;
    }
    if (req->slots[slot].attr != NULL) {
        return -EINVAL; /* given twice */
    }

    ret = (spec->kind <= UVERBS_OUT) ? uverbs_check_bytes(attr, spec) :
                                       uverbs_check_obj(req, attr, spec, &obj);
    if (ret != 0) {
        return ret;
    }

    req->slots[slot].attr = attr;
    req->slots[slot].obj  = obj;
    return 0;
}

int uverbs_req_parse(struct uverbs_req *req,
                     const struct ib_uverbs_ioctl_hdr *hdr)
{
    int ret;

    req->num_attrs = hdr->num_attrs;
    memset(req->slots, 0, sizeof(req->slots));
    ret = uverbs_copy_in(req->attrs, (uintptr_t)req->user_attrs,
                         req->num_attrs * sizeof(req->attrs[0]));
    for (unsigned i = 0; (ret == 0) && (i < req->num_attrs); i++) {
        ret = uverbs_check_attr(req, &req->attrs[i]);
    }
    if (ret != 0) {
        return ret;
    }

    for (unsigned i = 0; i < req->method->num_attrs; i++) {
        if ((req->method->attrs[i].flags & UVERBS_MANDATORY) &&
            (req->slots[i].attr == NULL)) {
            return -EINVAL;
        }
    }
    return 0;
}

bool uverbs_has(const struct uverbs_req *req, uint16_t id)
{
    return uverbs_find(req, id) != NULL;
}

size_t uverbs_len(const struct uverbs_req *req, uint16_t id)
{
    const struct uverbs_slot *slot = uverbs_find(req, id);

    return (slot == NULL) ? 0 : slot->attr->len;
}

int uverbs_get(struct uverbs_req *req, uint16_t id, void *dst, size_t size)
{
    const struct uverbs_slot *slot = uverbs_find(req, id);
    size_t given;

    memset(dst, 0, size);
    if (slot == NULL) {
        return 0;
    }

    given = (slot->attr->len < size) ? slot->attr->len : size;
    if (slot->attr->len <= sizeof(slot->attr->data)) {
        memcpy(dst, &slot->attr->data, given);
    } else if (uverbs_copy_in(dst, slot->attr->data, given) != 0) {
        return -EFAULT;
    }
    return uverbs_check_zero(slot->attr, size);
}

uint64_t uverbs_get_const(const struct uverbs_req *req, uint16_t id)
{
    const struct uverbs_slot *slot = uverbs_find(req, id);
    uint64_t value                 = 0;

    if (slot != NULL) {
        memcpy(&value, &slot->attr->data,
               (slot->attr->len < 8) ? slot->attr->len : 8);
    }
    return value;
}

/* Writes an attribute back to the program's array. */
static int uverbs_put_attr(struct uverbs_req *req,
                           const struct ib_uverbs_attr *attr)
{
    return uverbs_copy_out((uintptr_t)&req->user_attrs[attr - req->attrs], attr,
                           sizeof(*attr));
}

int uverbs_put(struct uverbs_req *req, uint16_t id, const void *src,
               size_t size)
{
    static const uint8_t zeros[256];
    const struct uverbs_slot *slot = uverbs_find(req, id);
    size_t done, chunk;
    int ret;

    if (slot == NULL) {
        return 0;
    }

    done = (slot->attr->len < size) ? slot->attr->len : size;
    ret  = uverbs_copy_out(slot->attr->data, src, done);
    for (; (ret == 0) && (done < slot->attr->len); done += chunk) {
        chunk = slot->attr->len - done;
        if (chunk > sizeof(zeros)) {
            chunk = sizeof(zeros);
        }
        ret = uverbs_copy_out(slot->attr->data + done, zeros, chunk);
    }
    if (ret != 0) {
        return ret;
    }

    slot->attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return uverbs_put_attr(req, slot->attr);
}

int uverbs_put_handle(struct uverbs_req *req, uint16_t id, uint64_t value)
{
    const struct uverbs_slot *slot = uverbs_find(req, id);

    slot->attr->data = value;
    return uverbs_put_attr(req, slot->attr);
}

void *uverbs_get_obj(const struct uverbs_req *req, uint16_t id)
{
    const struct uverbs_slot *slot = uverbs_find(req, id);

    return (slot == NULL) ? NULL : slot->obj;
}

int uverbs_destroy(struct uverbs_req *req)
{
    return uverbs_obj_destroy(req->slots[0].obj, NULL);
}

static_assert(sizeof(struct ib_uverbs_destroy_qp_resp) == sizeof(uint32_t),
              "the number of events");
static_assert(sizeof(struct ib_uverbs_destroy_srq_resp) == sizeof(uint32_t),
              "the number of events");

int uverbs_destroy_counted(struct uverbs_req *req)
{
    struct uverbs_events events;
    int ret;

    ret = uverbs_obj_destroy(req->slots[0].obj, &events);
    if (ret != 0) {
        return ret;
    }
    return uverbs_put(req, req->method->attrs[1].id, &events.async,
                      sizeof(events.async));
}
