/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The views of this process, for the transport. dcx_view_ops.h explains views;
 * libdcx_loader.so opens them by its table.
 *
 * view/ has the table of views, their keys in memory domains, and the
 * conversion of shapes to layouts of such keys. It must not know ports, queues
 * and interfaces. From open() to close(), a view belongs to the caller, on any
 * thread. One lock protects the views that are not in use.
 */
#ifndef UCT_DCX_VIEW_H
#define UCT_DCX_VIEW_H

#include "dcx_view_ops.h"

#include <ucs/memory/memory_type.h>


/* Addresses of views. They are not canonical, on x86-64 and elsewhere, so no
 * memory is there. */
#define UCT_DCX_VIEW_BASE   0x40dc000000000000ul
#define UCT_DCX_VIEW_LENGTH (1ul << 36) /* bytes of the longest view */


static inline int uct_dcx_view_is_address(uint64_t address)
{
    return (address ^ UCT_DCX_VIEW_BASE) <
           (UCT_DCX_VIEW_OPS_MAX * UCT_DCX_VIEW_LENGTH);
}


static inline uint64_t uct_dcx_view_address(unsigned index)
{
    return UCT_DCX_VIEW_BASE + (index * UCT_DCX_VIEW_LENGTH);
}


/* Returns the memory type that views have for UCP in this process;
 * UCS_MEMORY_TYPE_UNKNOWN until enable() was called. */
ucs_memory_type_t uct_dcx_view_memory_type(void);

/* Finds the open view that has @address. Stores its data, valid until the view
 * is closed, and the bytes from its begin to @address. Returns 0 if there is
 * none. Any thread may call it. */
int uct_dcx_view_find(uint64_t address, shape_data_t *data, size_t *offset_p);

/* Returns the options; invalid ones are logged, and the mode is then
 * UCT_DCX_VIEW_OFF. The first call reads them. Any thread may call it. */
const uct_dcx_view_policy_t *uct_dcx_view_get_policy(void);

/* Stores the number of views in use, of all that exist, and of all that may.
 * Any thread may call it. */
void uct_dcx_view_count(unsigned *num_used_p, unsigned *num_p, unsigned *max_p);

/* Counts an endpoint of the copy transport that this thread has made, for
 * watch_end(). */
void uct_dcx_view_watch_copy_ep(void);


/* --- for dcx_view_ops.c --------------------------------------------------- */

/* Allows up to @max views, of memory @type. Called once. */
void uct_dcx_view_enable(unsigned max, ucs_memory_type_t type);

/* Functions of the table uct_dcx_view_ops_t; see there. */
uct_dcx_view_status_t uct_dcx_view_open(void *const *mds, unsigned num_mds,
                                        const shape_data_t *data, int is_dest,
                                        uct_dcx_view_t **view_p);
void uct_dcx_view_close(uct_dcx_view_t *view, int is_failed);
void uct_dcx_view_leave(void *const *mds, unsigned num_mds);

#endif
