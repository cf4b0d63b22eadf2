/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The adaptation to UCX: the only room of the transport that knows the version
 * of UCX that dcx is built for. What differs between versions has one name and
 * one signature here; the rest of UCX is included directly. All rooms may use
 * it, and it calls none of them: functions of other rooms are in the ops tables
 * below.
 *
 * dcx_ucx_1_13 is for UCX 1.13, dcx_ucx_since for all later versions. configure
 * compiles one of the two and names its header, UCT_DCX_UCX_VERSION.
 * dcx_ucx_ucs is for UCS. The last two test UCT_VERNO_MINOR.
 *
 * If the signature of a function that UCX calls depends on the version, UCX
 * calls a wrapper in these sources; it finds our ops table by its member
 * @super. If only a parameter differs that dcx does not use, the header of the
 * version has a macro for it, and UCX calls our function. The macros *_OPS are
 * initializers of the first members, and end with a comma.
 */
#ifndef UCT_DCX_UCX_H
#define UCT_DCX_UCX_H

#include "dcx_ucx_ucs.h"
#include UCT_DCX_UCX_VERSION

#include <ucs/arch/cpu.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/memory/rcache.h>
#include <ucs/sys/math.h>
#include <ucs/sys/topo/base/topo.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>


/* Statistics of a UCX that is built without verbs have no tagged messages:
 * count them as active messages. */
#if !IBV_HW_TM
#define UCT_EP_STAT_TAG UCT_EP_STAT_AM
#endif


/* --- memory domains ------------------------------------------------------- */

/* Attributes of a memory domain for UCT. Types of memory are a mask of
 * UCS_BIT(UCS_MEMORY_TYPE_*). */
typedef struct uct_dcx_ucx_md_attr {
    uint64_t reg_mem_types;     /* can be registered */
    int has_dmabuf;             /* any type can be, as a dma-buf */
    uint64_t access_mem_types;  /* usable without registration */
    uint64_t demand_mem_types;  /* can be registered on demand: without delay,
                                 * by UCT_MD_MEM_FLAG_NONBLOCK, and with
                                 * mem_advise() */
    int needs_keys;             /* of both sides, for each operation */
    int can_invalidate;         /* keys can be revoked */
    int can_invalidate_atomics; /* keys for atomics, too */
    size_t max_reg;
    size_t rkey_size; /* bytes of a packed key */
    ucs_linear_func_t reg_cost;
    ucs_cpu_set_t local_cpus;
} uct_dcx_ucx_md_attr_t;


/* UCT_DCX_UCX_HAS_DMABUF: 1 since UCX 1.14, which passes dma-bufs, else 0 */

/* A dma-buf, and the place in it of memory to be registered */
typedef struct uct_dcx_ucx_dmabuf {
    int fd;
    uint64_t offset;
} uct_dcx_ucx_dmabuf_t;


/* Operations of a memory domain. @super begins with UCT_DCX_UCX_MD_OPS, which
 * sets the members whose form depends on the version, to functions that call
 * ours. */
typedef struct uct_dcx_ucx_md_ops {
    uct_md_ops_t super;

    /* All members of @attr are 0. */
    void (*query)(uct_md_h md, uct_dcx_ucx_md_attr_t *attr);

    /* @flags are UCT_MD_MEM_*; @buf is the dma-buf of the memory, or NULL */
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length,
                            uint64_t flags, const uct_dcx_ucx_dmabuf_t *buf,
                            uct_mem_h *memh_p);

    /* @invalidate: the key can be revoked */
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, int invalidate,
                              void *buffer);
} uct_dcx_ucx_md_ops_t;


static inline const uct_dcx_ucx_md_ops_t *uct_dcx_ucx_md_ops(uct_md_h md)
{
    return ucs_container_of(md->ops, uct_dcx_ucx_md_ops_t, super);
}


/* For programs that pack keys with uct_md_mkey_pack_v2():
 * UCT_DCX_UCX_PACK_INVALIDATE has the flags for a key that can be revoked,
 * UCT_DCX_UCX_MKEY_PACK_RANGE() the parameters of some versions. */


/* A component begins with UCT_DCX_UCX_COMPONENT_OPS. Its rkey_unpack() has
 * UCT_DCX_UCX_RKEY_UNPACK_ARG before the results: a parameter of some
 * versions. */


/* --- interfaces ----------------------------------------------------------- */

/* UCT_DCX_UCX_IFACE_FLAGS: UCT_IFACE_FLAG_INTER_NODE since UCX 1.18, else 0 */


/* The type of uct_ep_put_sgl_zcopy() and uct_ep_get_sgl_zcopy(), which UCX has
 * since 1.22 and 1.23 */
typedef ucs_status_t
uct_dcx_ucx_sgl_zcopy_t(uct_ep_h ep, void *const *buffers,
                        const size_t *lengths, uct_mem_h const *memhs,
                        const uint64_t *remote_addrs, uct_rkey_t const *rkeys,
                        const size_t *counts, const size_t *strides,
                        size_t count, uct_completion_t *comp);


/* UCT's internal operations of an interface. @super begins with
 * UCT_DCX_UCX_IFACE_OPS, and has UCT_DCX_UCX_SGL_OPS() for puts and gets of
 * lists. ep_invalidate() has a second argument, a
 * uct_dcx_ucx_ep_invalidate_arg_t. */
typedef struct uct_dcx_ucx_iface_ops {
    uct_iface_internal_ops_t super;

    /* Returns non-zero if the endpoint leads to the interface of these
     * addresses. UCX calls it since 1.16. */
    int (*ep_is_connected)(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                           const uct_iface_addr_t *iface_addr);

    /* Returns the maximum of pieces of a list; NULL: there are no lists. */
    size_t (*max_sgl)(uct_iface_h iface);
} uct_dcx_ucx_iface_ops_t;


/* --- the registration cache ----------------------------------------------- */

/* dcx_ucx_ucs.h has uct_dcx_ucx_rcache_config_t and UCT_DCX_UCX_RCACHE_TABLE:
 * the options of a cache and their table. UCT_DCX_UCX_RCACHE_DEFAULT: the
 * default of UCX_DCX_RCACHE; "auto" if UCP has a cache above all domains.
 * UCT_DCX_UCX_RCACHE_OPS: the first members of an ucs_rcache_ops_t. */

/* Creates a cache of memory; free it with ucs_rcache_destroy(). @events are
 * UCM_EVENT_* that remove memory from it. */
ucs_status_t
uct_dcx_ucx_rcache_create(const uct_dcx_ucx_rcache_config_t *config, int events,
                          size_t region_size, const ucs_rcache_ops_t *ops,
                          void *context, const char *name,
                          ucs_rcache_t **rcache_p);

/* Finds the region of a buffer, with the rights PROT_*, or registers it with
 * @arg; release it with ucs_rcache_region_put(). */
ucs_status_t uct_dcx_ucx_rcache_get(ucs_rcache_t *rcache, void *address,
                                    size_t length, int prot, void *arg,
                                    ucs_rcache_region_t **region_p);

/* Returns the cost of a lookup in seconds. */
double uct_dcx_ucx_rcache_overhead(const uct_dcx_ucx_rcache_config_t *config);


/* --- memory pools, devices, options --------------------------------------- */

/* Creates a pool of objects, each on its own cache lines, allocated in chunks
 * of @chunk objects, at most @max (UINT_MAX: without a limit); free it with
 * ucs_mpool_cleanup(). */
ucs_status_t uct_dcx_ucx_mpool_init(ucs_mpool_t *mp, size_t size,
                                    unsigned chunk, unsigned max,
                                    ucs_mpool_ops_t *ops, const char *name);

/* Creates a pool of buffers of registered memory without an upper limit; in
 * each buffer, the address at @align_offset bytes is a multiple of @align. */
ucs_status_t uct_dcx_ucx_mpool_init_registered(
    uct_base_iface_t *iface, ucs_mpool_t *mp, size_t size, size_t align_offset,
    size_t align, unsigned chunk, uct_iface_mpool_init_obj_cb_t init_obj,
    const char *name);

/* Sets the name of a PCI device in UCX's log. */
void uct_dcx_ucx_name_device(ucs_sys_device_t device, const char *name);

/* Returns non-zero if UCX knows that relaxed ordering of PCIe is faster on this
 * processor. */
int uct_dcx_ucx_cpu_prefers_relaxed(void);

/* Reads options from the environment (UCX_<prefix><name>) and ucx.conf; free
 * them with ucs_config_parser_release_opts(). */
ucs_status_t uct_dcx_ucx_read_options(void *options, ucs_config_field_t *table,
                                      const char *prefix);

#endif
