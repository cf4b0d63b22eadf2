/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory domain of dcx: one for each mlx5 device. Opened and closed by UCT;
 * interfaces of the device refer to it and are closed before it.
 *
 * mem/ is the room of registered memory: the domain, registrations and their
 * cache, keys. Called by UCT, from any thread, and by rooms that need the keys
 * of memory. It must not know interfaces and queues.
 */
#ifndef UCT_DCX_MD_H
#define UCT_DCX_MD_H

#include "dcx_mem.h"
#include "uct/dcx/base/dcx_site.h"
#include "uct/dcx/dev/dcx_async.h"
#include "uct/dcx/ucx/dcx_ucx.h"


struct uct_dcx_md {
    uct_md_t super;
    uct_dcx_device_t dev;
    ucs_rcache_t *rcache;       /* NULL: register on each call */
    int has_cached_handles;     /* handles use the cache; 0: only views do */
    int has_odp;                /* registers on demand if the caller asks */
    int has_dmabuf;             /* registers dma-bufs */
    uint64_t peer_types;        /* memory types with peer memory */
    uint64_t gpu_types;         /* of @peer_types: UCP may register them */
    int has_devices;            /* memory of a GPU was registered */
    ucs_linear_func_t reg_cost; /* seconds, seconds per byte */
    uct_dcx_mkeys_t mkeys;
    struct uct_dcx_keys *keys; /* strided mkeys, owned by the hook */
    const struct uct_dcx_md_hook *hook;
    ucs_spinlock_t mems_lock; /* protects @mems and @last_mem */
    uct_dcx_mem_t *mems;      /* free handles, the oldest first */
    uct_dcx_mem_t *last_mem;  /* the newest of them, if there is any */
    uct_dcx_mem_t **places;   /* handles by place; NULL: no place was set yet */
    uct_dcx_async_t async;    /* events of the device */
    uct_dcx_async_user_t fatal; /* notes in @dev that the device has failed */
    uint64_t subnet;            /* prefix of usable ports, 0: all */
    unsigned long reg_retries;  /* after EAGAIN */
};


typedef struct uct_dcx_md_config {
    uct_md_config_t super;
    int rcache;      /* ucs_ternary_auto_value_t */
    int odp;         /* ucs_ternary_auto_value_t, no "auto" */
    int ext_atomics; /* ucs_ternary_auto_value_t */
    uct_dcx_site_md_config_t site;
    char *profile;
    unsigned umr_slots;       /* strided mkeys of each
                               * size */
    unsigned umr_layouts;     /* handles, of each size */
    unsigned umr_max_entries; /* of a strided mkey */
    uct_dcx_ucx_rcache_config_t rcache_config;
} uct_dcx_md_config_t;


/* Hooks of the room above, which has the strided mkeys of a domain, and is
 * notified of deregistrations */
typedef struct uct_dcx_md_hook {
    /* Creates md->keys. Logs errors. */
    ucs_status_t (*open)(uct_dcx_md_t *md, const uct_dcx_md_config_t *config);

    /* Destroys md->keys, and layouts that were not deregistered, with a
     * warning. The cache was destroyed before. */
    void (*close)(uct_dcx_md_t *md);

    /* Invalidates all that names the key @lkey, whose memory is about to be
     * deregistered. Returns 1 if the device has no layout with it any longer;
     * with @is_waiting, waits until then. */
    int (*region)(uct_dcx_md_t *md, uint32_t lkey, int is_waiting);

    /* Called before a handle is deregistered that layouts have named, or that
     * is a layout. Invalidates the layouts that name it. Frees a layout and its
     * handle, except one that its caller built (dcx_ext.h). */
    void (*handle)(uct_dcx_md_t *md, uct_dcx_mem_t *mem);
} uct_dcx_md_hook_t;


extern uct_component_t uct_dcx_component;

/* Sets the hook of all domains, before the first one is opened. */
void uct_dcx_md_set_hook(const uct_dcx_md_hook_t *hook);

/* Sets a hook that is called with each domain that was opened, and with each
 * that is about to be closed, in the thread that does so. */
void uct_dcx_md_set_watch(void (*watch)(uct_md_h md, int is_open));

/* Implements uct_md_mem_dereg_v2() for handles of memory, layouts and
 * places. */
ucs_status_t uct_dcx_md_mem_dereg(uct_md_h md,
                                  const uct_md_mem_dereg_params_t *params);

#endif
