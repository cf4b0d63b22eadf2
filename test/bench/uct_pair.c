/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Opening and closing of a pair (uct_pair.h) */
#include "uct_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void bench_check(ucs_status_t status, const char *what)
{
    if (UCS_STATUS_IS_ERR(status)) {
        fprintf(stderr, "bench: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static void *bench_alloc(size_t size)
{
    void *mem = calloc(1, size ? size : 1);

    bench_check(mem ? UCS_OK : UCS_ERR_NO_MEMORY, "calloc");
    return mem;
}

static int bench_md_has(uct_md_h md, const char *tl, const char *dev)
{
    uct_tl_resource_desc_t *list;
    unsigned i, count;
    int found = 0;

    if (uct_md_query_tl_resources(md, &list, &count) != UCS_OK) {
        return 0;
    }
    for (i = 0; i < count; i++) {
        found |= !strcmp(list[i].tl_name, tl) && !strcmp(list[i].dev_name, dev);
    }
    uct_release_tl_resource_list(list);
    return found;
}

/* Opens the first memory domain of 'component' that has the transport. */
static int bench_open_md(struct bench_pair *pair, uct_component_h component,
                         const char *tl, const char *dev)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT,
    };
    uct_md_config_t *config;
    unsigned i;
    int found = 0;

    BENCH_CHECK(uct_component_query(component, &attr));
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources =
        bench_alloc(attr.md_resource_count * sizeof(*attr.md_resources));
    BENCH_CHECK(uct_component_query(component, &attr));
    for (i = 0; (i < attr.md_resource_count) && !found; i++) {
        BENCH_CHECK(uct_md_config_read(component, NULL, NULL, &config));
        if (uct_md_open(component, attr.md_resources[i].md_name, config,
                        &pair->md) == UCS_OK) {
            found = bench_md_has(pair->md, tl, dev);
            if (!found) {
                uct_md_close(pair->md);
            }
        }
        uct_config_release(config);
    }
    free(attr.md_resources);
    return found;
}

static void bench_find_md(struct bench_pair *pair, const char *tl,
                          const char *dev)
{
    uct_component_h *list;
    unsigned i, count;
    int found = 0;

    BENCH_CHECK(uct_query_components(&list, &count));
    for (i = 0; (i < count) && !found; i++) {
        pair->component = list[i];
        found           = bench_open_md(pair, list[i], tl, dev);
    }
    uct_release_component_list(list);
    if (!found) {
        fprintf(stderr, "bench: no transport %s on %s\n", tl, dev);
        exit(1);
    }
}

static ucs_status_t unexpected_rndv(void *arg, unsigned flags, uint64_t tag,
                                    const void *header, unsigned header_length,
                                    uint64_t addr, size_t length,
                                    const void *rkey)
{
    (void)arg;
    (void)flags;
    (void)tag;
    (void)header;
    (void)header_length;
    (void)addr;
    (void)length;
    (void)rkey;
    fprintf(stderr, "bench: unexpected rendezvous\n");
    exit(1);
    return UCS_OK;
}

/* Parameters of an interface for tag matching, in addition to the others */
enum {
    TM_FIELDS = UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB |
                UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_ARG |
                UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_CB
};

static void bench_side_open_with(struct bench_pair *pair,
                                 struct bench_side *side, const char *tl,
                                 const char *dev, int tm_fields,
                                 uct_tag_unexp_eager_cb_t eager_cb,
                                 void *eager_arg)
{
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                      UCT_IFACE_PARAM_FIELD_DEVICE | tm_fields,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = tl,
        .mode.device.dev_name = dev,
        .eager_cb             = eager_cb,
        .eager_arg            = eager_arg,
        .rndv_cb              = unexpected_rndv,
    };
    uct_iface_config_t *config;

    BENCH_CHECK(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &side->async));
    BENCH_CHECK(
        uct_worker_create(side->async, UCS_THREAD_MODE_SINGLE, &side->worker));
    BENCH_CHECK(uct_md_iface_config_read(pair->md, tl, NULL, NULL, &config));
    BENCH_CHECK(
        uct_iface_open(pair->md, side->worker, &params, config, &side->iface));
    uct_config_release(config);
    BENCH_CHECK(uct_iface_query(side->iface, &side->attr));
    uct_iface_progress_enable(side->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);

    side->dev_addr   = bench_alloc(side->attr.device_addr_len);
    side->iface_addr = bench_alloc(side->attr.iface_addr_len);
    BENCH_CHECK(uct_iface_get_device_address(side->iface, side->dev_addr));
    BENCH_CHECK(uct_iface_get_address(side->iface, side->iface_addr));
}

void bench_side_open(struct bench_pair *pair, struct bench_side *side,
                     const char *tl, const char *dev)
{
    bench_side_open_with(pair, side, tl, dev, 0, NULL, NULL);
}

void bench_side_close(struct bench_side *side)
{
    uct_iface_close(side->iface);
    uct_worker_destroy(side->worker);
    ucs_async_context_destroy(side->async);
    free(side->dev_addr);
    free(side->iface_addr);
}

static ucs_status_t bench_dropped(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    (void)arg;
    (void)data;
    (void)length;
    (void)flags;
    return UCS_OK;
}

void bench_side_drop(struct bench_side *side, uint8_t id)
{
    BENCH_CHECK(
        uct_iface_set_am_handler(side->iface, id, bench_dropped, NULL, 0));
}

void bench_side_flush(const struct bench_side *side,
                      const struct bench_side *peer)
{
    ucs_status_t status;

    while ((status = uct_iface_flush(side->iface, 0, NULL)) != UCS_OK) {
        bench_check((status == UCS_ERR_NO_RESOURCE) ? UCS_OK : status,
                    "uct_iface_flush");
        uct_worker_progress(peer->worker);
        uct_worker_progress(side->worker);
    }
}

static void bench_register(struct bench_pair *pair)
{
    uct_md_attr_t attr;
    void *packed;

    BENCH_CHECK(uct_md_query(pair->md, &attr));
    pair->mem = mmap(NULL, BENCH_MEM_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench_check((pair->mem != MAP_FAILED) ? UCS_OK : UCS_ERR_NO_MEMORY, "mmap");
    BENCH_CHECK(uct_md_mem_reg(pair->md, pair->mem, BENCH_MEM_SIZE,
                               UCT_MD_MEM_ACCESS_ALL, &pair->memh));
    packed = bench_alloc(attr.rkey_packed_size);
    BENCH_CHECK(uct_md_mkey_pack(pair->md, pair->memh, packed));
    BENCH_CHECK(uct_rkey_unpack(pair->component, packed, &pair->rkey));
    free(packed);
}

uct_ep_h bench_pair_connect(const struct bench_pair *pair)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = pair->a.iface,
        .dev_addr   = pair->b.dev_addr,
        .iface_addr = pair->b.iface_addr,
    };
    uct_ep_h ep;

    BENCH_CHECK(uct_ep_create(&params, &ep));
    return ep;
}

static void bench_pair_open_with(struct bench_pair *pair, const char *tl,
                                 const char *dev, int tm_fields,
                                 uct_tag_unexp_eager_cb_t eager_cb,
                                 void *eager_arg)
{
    memset(pair, 0, sizeof(*pair));
    bench_find_md(pair, tl, dev);
    bench_side_open_with(pair, &pair->a, tl, dev, tm_fields, eager_cb,
                         eager_arg);
    bench_side_open_with(pair, &pair->b, tl, dev, tm_fields, eager_cb,
                         eager_arg);
    bench_register(pair);
    pair->ep = bench_pair_connect(pair);
}

void bench_pair_open(struct bench_pair *pair, const char *tl, const char *dev)
{
    bench_pair_open_with(pair, tl, dev, 0, NULL, NULL);
}

void bench_pair_open_tm(struct bench_pair *pair, const char *tl,
                        const char *dev, uct_tag_unexp_eager_cb_t eager_cb,
                        void *eager_arg)
{
    setenv("UCX_DCX_TM_ENABLE", "y", 1);
    setenv("UCX_DCX_TM_LIST_SIZE", "1023", 1);
    setenv("UCX_DC_MLX5_TM_ENABLE", "y", 1);
    bench_pair_open_with(pair, tl, dev, TM_FIELDS, eager_cb, eager_arg);
    bench_check((pair->b.attr.cap.flags & UCT_IFACE_FLAG_TAG_EAGER_BCOPY) ?
                    UCS_OK :
                    UCS_ERR_UNSUPPORTED,
                "tag matching");
}

void bench_pair_flush(const struct bench_pair *pair)
{
    bench_side_flush(&pair->a, &pair->b);
}

void bench_pair_close(struct bench_pair *pair)
{
    bench_pair_flush(pair);
    uct_ep_destroy(pair->ep);
    BENCH_CHECK(uct_rkey_release(pair->component, &pair->rkey));
    BENCH_CHECK(uct_md_mem_dereg(pair->md, pair->memh));
    bench_side_close(&pair->a);
    bench_side_close(&pair->b);
    uct_md_close(pair->md);
    munmap(pair->mem, BENCH_MEM_SIZE);
}
