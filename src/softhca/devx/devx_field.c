/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads, writes and checks fields of mailboxes: big-endian words, bit 0 is the
 * least significant. The check clears the fields of a table in a copy of the
 * mailbox: all other bits are reserved and must be zero. No state.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/base/hca_log.h"
#include "softhca/exec/hca_order.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

static unsigned devx_offset(uint32_t bits)
{
    return bits >> 16;
}

static unsigned devx_high(uint32_t bits)
{
    return (bits >> 8) & 0xff;
}

static unsigned devx_low(uint32_t bits)
{
    return bits & 0xff;
}

static uint64_t devx_mask(uint32_t bits)
{
    return (UINT64_MAX >> (63 - devx_high(bits))) & ~0ull << devx_low(bits);
}

static uint64_t devx_load(const void *base, uint32_t bits)
{
    const char *at = (const char *)base + devx_offset(bits);
    __be32 word;
    __be64 qword;

    if (devx_high(bits) < 32) {
        memcpy(&word, at, sizeof(word));
        return be32toh(word);
    }
    memcpy(&qword, at, sizeof(qword));
    return be64toh(qword);
}

static void devx_store(void *base, uint32_t bits, uint64_t value)
{
    char *at     = (char *)base + devx_offset(bits);
    __be32 word  = htobe32(value);
    __be64 qword = htobe64(value);

    if (devx_high(bits) < 32) {
        memcpy(at, &word, sizeof(word));
    } else {
        memcpy(at, &qword, sizeof(qword));
    }
}

uint64_t devx_get(const void *base, uint32_t bits)
{
    return (devx_load(base, bits) & devx_mask(bits)) >> devx_low(bits);
}

void devx_set(void *base, uint32_t bits, uint64_t value)
{
    uint64_t mask = devx_mask(bits);

    devx_store(base, bits,
               (devx_load(base, bits) & ~mask) |
                   ((value << devx_low(bits)) & mask));
}

enum devx_status devx_refuse(struct devx_call *call, enum devx_status status,
                             size_t offset, const char *what, uint64_t got)
{
    hca_warn("devx: %s: %s is 0x%lx (mailbox offset 0x%lx)", call->cmd->name,
             what, (unsigned long)got, (unsigned long)offset);
    call->syndrome = offset;
    return status;
}

enum devx_status devx_check_rest(struct devx_call *call, size_t size)
{
    for (size_t i = size; i < call->in_len; i++) {
        if (call->in[i] != 0) {
            return devx_refuse(call, DEVX_BAD_INP_LEN, i,
                               "a byte after the layout", call->in[i]);
        }
    }
    return DEVX_OK;
}

static uint64_t devx_max(const struct devx_field *field)
{
    return (field->max == DEVX_IF_OOO) ? (hca_order == HCA_ORDER_OOO) :
                                         field->max;
}

enum devx_status devx_check(struct devx_call *call, size_t base, size_t size,
                            const struct devx_field *fields)
{
    uint8_t rest[512]; /* larger than all layouts, without their lists */

    assert(size <= sizeof(rest));
    memcpy(rest, call->in + base, size);
    for (; fields->name != NULL; fields++) {
        uint64_t value = devx_get(rest, fields->bits);

        if (value > devx_max(fields)) {
            return devx_refuse(call, DEVX_BAD_PARAM,
                               base + devx_offset(fields->bits), fields->name,
                               value);
        }
        devx_set(rest, fields->bits, 0);
    }
    for (size_t i = 0; i < size; i++) {
        if (rest[i] != 0) {
            return devx_refuse(call, DEVX_BAD_PARAM, (base + i) & ~3ul,
                               "a reserved field", rest[i]);
        }
    }
    return DEVX_OK;
}
