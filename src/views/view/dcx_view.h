/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The views of this process, for the transport; what they are is said in
 * dcx_view_ops.h, and who stands before UCP opens them by that.
 *
 * view/ is the room of views: which there are, the keys that they have in
 * memory domains, and how the shape of data becomes layouts of such keys. It
 * must not know ports, queues and interfaces. A view belongs to its user from
 * open() to close(), by any threads; one lock is for those that nobody uses.
 */
#ifndef UCT_DCX_VIEW_H
#define UCT_DCX_VIEW_H

#include "dcx_view_ops.h"

#include <ucs/memory/memory_type.h>


/* Addresses of views, which are not canonical, on x86-64 and on others: no
 * memory is there. */
#define UCT_DCX_VIEW_BASE   0x40dc000000000000ul
#define UCT_DCX_VIEW_LENGTH (1ul << 36) /* of a view at most */


static inline int uct_dcx_view_is_address(uint64_t address)
{
    return (address ^ UCT_DCX_VIEW_BASE) <
           (UCT_DCX_VIEW_OPS_MAX * UCT_DCX_VIEW_LENGTH);
}


static inline uint64_t uct_dcx_view_address(unsigned index)
{
    return UCT_DCX_VIEW_BASE + (index * UCT_DCX_VIEW_LENGTH);
}


/* Returns what views are to UCP in this process, UCS_MEMORY_TYPE_UNKNOWN if
 * there are none: enable() was not called, or has returned OFF. */
ucs_memory_type_t uct_dcx_view_memory_type(void);

/* The data of the open view that has this address, '*offset_p' bytes behind its
 * beginning. Returns 0 if there is none. By any thread. */
int uct_dcx_view_find(uint64_t address, shape_data_t *data, size_t *offset_p);

/* Returns the options, which are read in the first call. */
const uct_dcx_view_policy_t *uct_dcx_view_get_policy(void);

/* This thread has made an endpoint of the copy transport. */
void uct_dcx_view_watch_copy_ep(void);


/* --- for dcx_view_ops.c --------------------------------------------------- */

/* There may be views, so many at most, and they are of this type. Called
 * once. */
void uct_dcx_view_enable(unsigned max, ucs_memory_type_t type);

/* As in uct_dcx_view_ops_t */
uct_dcx_view_status_t
uct_dcx_view_open(void *const *mds, unsigned num_mds, const shape_data_t *data,
                  int is_dest, uct_dcx_view_t **view_p);
void uct_dcx_view_close(uct_dcx_view_t *view, int is_failed);
void uct_dcx_view_leave(void *const *mds, unsigned num_mds);

#endif
