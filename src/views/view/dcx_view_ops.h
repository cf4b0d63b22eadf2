/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Views, for who stands before UCP (src/loader): what it may call of the
 * transport. It finds this table by its name in libuct_dcx.so, and includes
 * nothing else of it.
 *
 * A view is a range of addresses at which memory that has a shape looks
 * contiguous: to devices by a key with that layout, to UCP as memory of a type
 * that the processor cannot touch. UCP moves it by the device, or has the
 * transport "dcx_view" copy it. Addresses are not canonical: no load or store
 * of a program reaches them, nor does mmap() return them.
 */
#ifndef UCT_DCX_VIEW_OPS_H
#define UCT_DCX_VIEW_OPS_H

#include "views/inside/ucp_inside.h"
#include "views/shape/shape.h"

#include <stdint.h>

#define UCT_DCX_VIEW_OPS         "uct_dcx_view_ops"
#define UCT_DCX_VIEW_OPS_VERSION 5
#define UCT_DCX_VIEW_TL          "dcx_view"  /* the copy transport */
#define UCT_DCX_VIEW_OPS_MAX     4096        /* views of a process */


/* UCX_DCX_TYPES */
typedef enum uct_dcx_view_mode {
    UCT_DCX_VIEW_OFF,  /* n */
    UCT_DCX_VIEW_MPI,  /* try: in programs of an MPI that is known */
    UCT_DCX_VIEW_ON    /* y: in any program of UCP */
} uct_dcx_view_mode_t;


/* UCX_DCX_TYPES*: which messages go by view. watch_end() may raise the first
 * two lengths. */
typedef struct uct_dcx_view_policy {
    uct_dcx_view_mode_t mode;
    size_t              min_length;       /* bytes of a message */
    size_t              min_block;        /* ... of an average block of it */
    size_t              min_sparse_block; /* ... where blocks are far apart */
    size_t              max_pieces;       /* of a key; devices may take fewer */
    int                 is_reported;      /* at the end of the program */
} uct_dcx_view_policy_t;


/* Why there is no view */
typedef enum uct_dcx_view_status {
    UCT_DCX_VIEW_OK,
    UCT_DCX_VIEW_BUSY,        /* all are in use */
    UCT_DCX_VIEW_TOO_LONG,    /* ... for a view's range */
    UCT_DCX_VIEW_TOO_MANY,    /* blocks for a key */
    UCT_DCX_VIEW_UNMAPPED,    /* the memory is too scattered, or not there */
    UCT_DCX_VIEW_UNSUPPORTED, /* no such keys, or memory of a GPU */
    UCT_DCX_VIEW_FAILED,      /* the device; was logged */
    UCT_DCX_VIEW_LAST
} uct_dcx_view_status_t;


typedef struct uct_dcx_view {
    uint64_t address;     /* of its first byte */
    size_t   length;
    unsigned index;       /* below UCT_DCX_VIEW_OPS_MAX */
    int      memory_type; /* for UCP: ucs_memory_type_t */
} uct_dcx_view_t;


typedef struct uct_dcx_view_ops {
    unsigned version;

    /* The options, which are read in the first call. */
    const uct_dcx_view_policy_t *(*policy)(void);

    /* The same. Memory domains that are opened from now on take views, and the
     * copy transport has a device. */
    const uct_dcx_view_policy_t *(*enable)(void);

    /* What the calling thread opens between begin and end: domains of dcx that
     * are still open (returns how many there are, and fills in up to 'max'),
     * and endpoints of the copy transport. */
    void     (*watch_begin)(void);
    unsigned (*watch_end)(void **mds, unsigned max, unsigned *copy_eps_p);

    /* Opens a view of data that has bytes: for devices of these domains to read
     * (a send), or 'is_dest', to write. When it returns UCT_DCX_VIEW_OK they
     * can. By any thread. What is logged is what a user can act on. */
    uct_dcx_view_status_t (*open)(void *const *mds, unsigned num_mds,
                                  const shape_data_t *data, int is_dest,
                                  uct_dcx_view_t **view_p);

    /* Nothing uses it any more. 'is_failed': but a peer might, as the operation
     * ended in an error: it loses access before this returns. */
    void                  (*close)(uct_dcx_view_t *view, int is_failed);

    /* UCP's own structures */
    const ucp_inside_ops_t *ucp;

    /* The domain's views are closed; it is about to be closed itself. */
    void                  (*leave)(void *const *mds, unsigned num_mds);
} uct_dcx_view_ops_t;

#endif
