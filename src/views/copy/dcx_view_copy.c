/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "dcx_view_copy.h"
#include "views/view/dcx_view.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <string.h>


/* Bytes that one step copies from one view to another */
#define UCT_DCX_VIEW_BOUNCE 4096


/* One side of a copy */
typedef struct uct_dcx_view_side {
    char *memory; /* NULL: it is a view */
    shape_data_t data;
    size_t offset; /* in the data */
} uct_dcx_view_side_t;


static ucs_status_t uct_dcx_view_side_init(uct_dcx_view_side_t *side,
                                           uint64_t address, size_t length)
{
    size_t left;

    if (!uct_dcx_view_is_address(address)) {
        side->memory = (char *)(uintptr_t)address;
        return UCS_OK;
    }

    side->memory = NULL;
    if (!uct_dcx_view_find(address, &side->data, &side->offset)) {
        ucs_error("dcx_view: no view is open at address 0x%lx", address);
        return UCS_ERR_INVALID_ADDR;
    }

    left = shape_length(&side->data) - side->offset;
    if (length > left) {
        ucs_error("dcx_view: %zu bytes at address 0x%lx of a view that ends "
                  "after %zu",
                  length, address, left);
        return UCS_ERR_INVALID_ADDR;
    }
    return UCS_OK;
}


/* Copies from a view to a view, through a buffer on the stack. */
static void uct_dcx_view_bounce(const uct_dcx_view_side_t *dest,
                                const uct_dcx_view_side_t *src, size_t length)
{
    char buffer[UCT_DCX_VIEW_BOUNCE];
    size_t offset, bytes;

    for (offset = 0; offset < length; offset += bytes) {
        bytes = ucs_min(length - offset, sizeof(buffer));
        shape_gather(&src->data, src->offset + offset, buffer, bytes);
        shape_scatter(&dest->data, dest->offset + offset, buffer, bytes);
    }
}


ucs_status_t uct_dcx_view_copy(uint64_t dest, uint64_t src, size_t length)
{
    uct_dcx_view_side_t to, from;
    ucs_status_t status;

    if (length == 0) {
        return UCS_OK;
    }

    status = uct_dcx_view_side_init(&to, dest, length);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_view_side_init(&from, src, length);
    if (status != UCS_OK) {
        return status;
    }

    if ((to.memory == NULL) && (from.memory == NULL)) {
        uct_dcx_view_bounce(&to, &from, length);
    } else if (to.memory == NULL) {
        shape_scatter(&to.data, to.offset, from.memory, length);
    } else if (from.memory == NULL) {
        shape_gather(&from.data, from.offset, to.memory, length);
    } else {
        memcpy(to.memory, from.memory, length);
    }
    return UCS_OK;
}
