/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The border to UCX: the one room that knows which version of UCX dcx is built
 * for. What differs from version to version has one name and one form here; all
 * else is included from UCX by whoever uses it. All rooms may use it, and it
 * calls none of them: what is above it comes in by the tables below.
 *
 * UCT_DCX_UCX_VERSION, from configure, is the header of the version, and its
 * source is the one that is compiled: dcx_ucx_1_13, or dcx_ucx_since for all
 * later ones, which tells them apart by UCT_VERNO_MINOR; what is of UCS is in
 * a source for all versions, dcx_ucx_ucs. A function that UCX
 * calls in a form of its version is defined there; it finds our table by the
 * member of it that is UCX's, and calls on in our form. Where the form differs
 * in a parameter that dcx does not look at, the header of the version names
 * that, and ours is called as it is.
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


/* --- memory domains ------------------------------------------------------- */

/* What a memory domain of registered memory tells UCT about itself. Types of
 * memory are a mask of UCS_BIT(UCS_MEMORY_TYPE_*). */
typedef struct uct_dcx_ucx_md_attr {
    uint64_t          reg_mem_types;    /* that it registers */
    uint64_t          access_mem_types; /* ... or moves without registering */
    int               needs_keys;       /* of both sides, for each operation */
    int               can_invalidate;   /* keys can be taken back */
    int               can_invalidate_atomics; /* those for atomics, too */
    size_t            max_reg;
    size_t            rkey_size;      /* bytes of a packed key */
    ucs_linear_func_t reg_cost;
    ucs_cpu_set_t     local_cpus;
} uct_dcx_ucx_md_attr_t;


/* Operations of a memory domain. 'super' begins with UCT_DCX_UCX_MD_OPS, which
 * sets the members of which the form differs, to functions that call ours. */
typedef struct uct_dcx_ucx_md_ops {
    uct_md_ops_t super;

    void         (*query)(uct_md_h md, uct_dcx_ucx_md_attr_t *attr);

    /* 'flags' are UCT_MD_MEM_* */
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length,
                            uint64_t flags, uct_mem_h *memh_p);

    /* 'invalidate': the key is one that can be taken back */
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, int invalidate,
                              void *buffer);
} uct_dcx_ucx_md_ops_t;


static inline const uct_dcx_ucx_md_ops_t *uct_dcx_ucx_md_ops(uct_md_h md)
{
    return ucs_container_of(md->ops, uct_dcx_ucx_md_ops_t, super);
}


/* A program that packs keys by uct_md_mkey_pack_v2() has these:
 * UCT_DCX_UCX_PACK_INVALIDATE are flags for one that can be taken back,
 * UCT_DCX_UCX_MKEY_PACK_RANGE() parameters that some versions have. */


/* A component begins with UCT_DCX_UCX_COMPONENT_OPS. Its rkey_unpack() has
 * UCT_DCX_UCX_RKEY_UNPACK_ARG before the results: the parameter that some
 * versions have there. */


/* --- interfaces ----------------------------------------------------------- */

/* UCT_DCX_UCX_IFACE_FLAGS: flags beyond those of 1.13 for an interface of a
 * network. */


/* UCT's internal operations of an interface. 'super' begins with
 * UCT_DCX_UCX_IFACE_OPS. ep_invalidate() takes one argument more than the
 * endpoint, a uct_dcx_ucx_ep_invalidate_arg_t. */
typedef struct uct_dcx_ucx_iface_ops {
    uct_iface_internal_ops_t super;

    /* whether the endpoint leads to the interface of these addresses */
    int                      (*ep_is_connected)(
            uct_ep_h ep, const uct_device_addr_t *dev_addr,
            const uct_iface_addr_t *iface_addr);
} uct_dcx_ucx_iface_ops_t;


/* --- the registration cache ----------------------------------------------- */

/* dcx_ucx_ucs.h has uct_dcx_ucx_rcache_config_t and UCT_DCX_UCX_RCACHE_TABLE:
 * the options of a cache and their table. UCT_DCX_UCX_RCACHE_DEFAULT: whether a
 * memory domain should have one, "n" where UCP has one above all domains.
 * UCT_DCX_UCX_RCACHE_OPS: what an ucs_rcache_ops_t begins with. */

/* Creates a cache of host memory; ucs_rcache_destroy() ends it. */
ucs_status_t
uct_dcx_ucx_rcache_create(const uct_dcx_ucx_rcache_config_t *config,
                          size_t region_size, const ucs_rcache_ops_t *ops,
                          void *context, const char *name,
                          ucs_rcache_t **rcache_p);

/* Finds the region of a buffer, which has the rights PROT_*, or registers
 * it. */
ucs_status_t
uct_dcx_ucx_rcache_get(ucs_rcache_t *rcache, void *address, size_t length,
                       int prot, void *arg, ucs_rcache_region_t **region_p);

/* Seconds that it takes to find a region. */
double uct_dcx_ucx_rcache_overhead(const uct_dcx_ucx_rcache_config_t *config);


/* --- memory pools, devices, options --------------------------------------- */

/* A pool of objects, each on cache lines of its own, 'chunk' of them at a time;
 * ucs_mpool_cleanup() ends it. */
ucs_status_t
uct_dcx_ucx_mpool_init(ucs_mpool_t *mp, size_t size, unsigned chunk,
                       unsigned max, ucs_mpool_ops_t *ops, const char *name);

/* A pool of buffers of registered memory without an upper limit; what is
 * 'align_offset' bytes inside of them is a multiple of 'align'. */
ucs_status_t
uct_dcx_ucx_mpool_init_registered(uct_base_iface_t *iface, ucs_mpool_t *mp,
                                  size_t size, size_t align_offset,
                                  size_t align, unsigned chunk,
                                  uct_iface_mpool_init_obj_cb_t init_obj,
                                  const char *name);

/* What UCX calls a PCI device in its log. */
void uct_dcx_ucx_name_device(ucs_sys_device_t device, const char *name);

/* True if UCX knows that the processor gains by relaxed ordering of PCIe. */
int uct_dcx_ucx_cpu_prefers_relaxed(void);

/* Options as the environment (UCX_<prefix><name>) and UCX's files have them. */
ucs_status_t
uct_dcx_ucx_read_options(void *options, ucs_config_field_t *table,
                         const char *prefix);

#endif
