/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Table of views, for the hooks before UCP (src/views/hook). They find it by
 * its name in libuct_dcx.so, and include nothing else of the transport.
 *
 * A view is a range of addresses at which memory of some shape looks
 * contiguous: to devices by a key with that layout, to UCP as memory of a type
 * that the processor cannot access. UCP moves it by the device, or has the
 * transport "dcx_view" copy it. Addresses are not canonical: no load or store
 * of a program reaches them, and mmap() does not return them.
 */
#ifndef UCT_DCX_VIEW_OPS_H
#define UCT_DCX_VIEW_OPS_H

#include "views/inside/ucp_inside.h"
#include "views/shape/shape.h"

#include <stdint.h>

#define UCT_DCX_VIEW_OPS         "uct_dcx_view_ops"
#define UCT_DCX_VIEW_OPS_VERSION 7
#define UCT_DCX_VIEW_TL          "dcx_view" /* the copy transport */
#define UCT_DCX_VIEW_OPS_MAX     4096       /* views of a process */


/* UCX_DCX_TYPES */
typedef enum uct_dcx_view_mode {
    UCT_DCX_VIEW_OFF, /* n */
    UCT_DCX_VIEW_MPI, /* try: in programs of a supported MPI */
    UCT_DCX_VIEW_ON   /* y: in any program of UCP */
} uct_dcx_view_mode_t;


/* UCX_DCX_TYPES*: the messages that use a view. watch_end() may raise
 * @min_length and @min_block. */
typedef struct uct_dcx_view_policy {
    uct_dcx_view_mode_t mode;
    size_t min_length;       /* bytes of a message */
    size_t min_block;        /* bytes of an average block */
    size_t min_sparse_block; /* bytes; also, if blocks are far apart */
    size_t max_pieces;       /* of a key; devices may take fewer */
    int is_reported;         /* at the end of the program */
    int has_tags;            /* UCX_DCX_TM_ENABLE=y; valid also if @mode is
                              * UCT_DCX_VIEW_OFF */
} uct_dcx_view_policy_t;


/* The result of open(): the reason why there is no view */
typedef enum uct_dcx_view_status {
    UCT_DCX_VIEW_OK,
    UCT_DCX_VIEW_BUSY,        /* all views or layouts are in use */
    UCT_DCX_VIEW_TOO_LONG,    /* more bytes than a view has addresses */
    UCT_DCX_VIEW_TOO_MANY,    /* more blocks than a key takes */
    UCT_DCX_VIEW_UNMAPPED,    /* memory too scattered, or not registrable */
    UCT_DCX_VIEW_UNSUPPORTED, /* a domain without such keys, too many
                               * domains, or memory of a GPU */
    UCT_DCX_VIEW_FAILED,      /* the device failed (logged), or no memory */
    UCT_DCX_VIEW_LAST
} uct_dcx_view_status_t;


typedef struct uct_dcx_view {
    uint64_t address; /* of its first byte */
    size_t length;
    unsigned index;  /* below UCT_DCX_VIEW_OPS_MAX */
    int memory_type; /* for UCP: ucs_memory_type_t */
} uct_dcx_view_t;


typedef struct uct_dcx_view_ops {
    unsigned version;

    /* Returns the options, never NULL. The first call reads them; if they are
     * invalid, it logs that, and the mode is UCT_DCX_VIEW_OFF. */
    const uct_dcx_view_policy_t *(*policy)(void);

    /* Enables views, and returns the options: memory domains that are opened
     * from now on take views, and the copy transport has a device. Returns NULL
     * if this process uses all memory types that views could have. */
    const uct_dcx_view_policy_t *(*enable)(void);

    /* Record what the calling thread opens between begin and end. watch_end()
     * stores up to @max domains of dcx that are still open, and the number of
     * endpoints of the copy transport. Returns how many domains there are, even
     * if that exceeds @max. */
    void (*watch_begin)(void);
    unsigned (*watch_end)(void **mds, unsigned max, unsigned *copy_eps_p);

    /* Opens a view of @data, which must have at least one byte: for the devices
     * of @mds to read (a send), or to write if @is_dest. When it returns
     * UCT_DCX_VIEW_OK, they can. The caller keeps the shape and the memory
     * until close(). Any thread may call it; it may wait for a device. Logs
     * only errors of devices. */
    uct_dcx_view_status_t (*open)(void *const *mds, unsigned num_mds,
                                  const shape_data_t *data, int is_dest,
                                  uct_dcx_view_t **view_p);

    /* Closes a view that this process no longer uses. @is_failed: a peer might
     * still use it, as the operation ended in an error. The peer loses access
     * before this returns. */
    void (*close)(uct_dcx_view_t *view, int is_failed);

    /* Functions for UCP's internal structures */
    const ucp_inside_ops_t *ucp;

    /* Frees the views' keys in @mds, which are about to be closed; waits for
     * the devices. All views of these domains must be closed. */
    void (*leave)(void *const *mds, unsigned num_mds);
} uct_dcx_view_ops_t;

#endif
