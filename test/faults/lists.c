/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Puts and gets of lists by UCT; see lists.h.
 */
#include "lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/async/async_fwd.h>
#include <uct/dcx/dcx.h>

enum { MAX_PIECES = LISTS_MAX / LISTS_PIECE };

/* A list as a request */
struct list {
    uct_pending_req_t pending; /* the first member */
    uct_completion_t comp;
    struct slot *slot;
    size_t length;
    uint64_t remote;
    bool is_get;
};

static struct {
    ucs_async_context_t *async;
    uct_component_h component;
    uct_md_h md;
    uct_worker_h worker;
    uct_iface_h iface;
    uct_mem_h memh; /* of rank.memory */
} lists;

static void lists_need(const char *what, ucs_status_t status)
{
    if (UCS_STATUS_IS_ERR(status)) {
        rank_fail("lists: %s: %s", what, ucs_status_string(status));
    }
}

/* --- interface ------------------------------------------------------------ */

/* Opens the first memory domain of a component named "dcx". */
static void lists_open_md(uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT,
    };
    uct_md_resource_desc_t mds[8];
    uct_md_config_t *config;

    lists_need("component", uct_component_query(component, &attr));
    if (strcmp(attr.name, "dcx") || (attr.md_resource_count == 0) ||
        (attr.md_resource_count > sizeof(mds) / sizeof(*mds))) {
        return;
    }
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = mds;
    lists_need("domains", uct_component_query(component, &attr));
    lists_need("options", uct_md_config_read(component, NULL, NULL, &config));
    lists_need("domain",
               uct_md_open(component, mds[0].md_name, config, &lists.md));
    uct_config_release(config);
    lists.component = component;
}

static void lists_find_md(void)
{
    uct_component_h *components;
    unsigned num;

    lists_need("components", uct_query_components(&components, &num));
    for (unsigned i = 0; i < num; i++) {
        lists_open_md(components[i]);
    }
    uct_release_component_list(components);
    if (lists.md == NULL) {
        rank_fail("lists: no domain of dcx");
    }
}

static ucs_status_t lists_ep_failed(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)arg;
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        if (rank.peer[i].list_ep == ep) {
            rank_ep_failed(&rank.peer[i], NULL, status);
        }
    }
    return UCS_OK;
}

static void lists_open_iface(void)
{
    uct_tl_resource_desc_t *devices;
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                      UCT_IFACE_PARAM_FIELD_DEVICE |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER,
        .open_mode   = UCT_IFACE_OPEN_MODE_DEVICE,
        .err_handler = lists_ep_failed,
    };
    uct_iface_config_t *config;
    unsigned num;

    lists_need("devices", uct_md_query_tl_resources(lists.md, &devices, &num));
    if (num == 0) {
        rank_fail("lists: no device of dcx");
    }
    params.mode.device.tl_name  = devices[0].tl_name;
    params.mode.device.dev_name = devices[0].dev_name;
    lists_need("options", uct_md_iface_config_read(lists.md, devices[0].tl_name,
                                                   NULL, NULL, &config));
    lists_need("interface", uct_iface_open(lists.md, lists.worker, &params,
                                           config, &lists.iface));
    uct_config_release(config);
    uct_release_tl_resource_list(devices);
    uct_iface_progress_enable(lists.iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

void lists_begin(void)
{
    lists_need("async", ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                                 &lists.async));
    lists_need("worker", uct_worker_create(lists.async, UCS_THREAD_MODE_SINGLE,
                                           &lists.worker));
    lists_find_md();
    lists_open_iface();
}

static uct_mem_h lists_reg(void *address, size_t length, ucs_status_t *status)
{
    unsigned flags = UCT_MD_MEM_ACCESS_ALL |
                     (ledger->options.pages_out ? UCT_MD_MEM_FLAG_NONBLOCK : 0);
    uct_mem_h memh;

    *status = uct_md_mem_reg(lists.md, address, length, flags, &memh);
    return (*status == UCS_OK) ? memh : NULL;
}

void lists_publish(void)
{
    struct rank_info *info = &ledger->rank[rank.me];
    uct_iface_attr_t attr;
    uct_md_attr_t md_attr;
    ucs_status_t status;

    lists.memh = lists_reg(rank.memory, rank.memory_length, &status);
    lists_need("memory", status);
    lists_need("attributes", uct_iface_query(lists.iface, &attr));
    lists_need("attributes of the domain", uct_md_query(lists.md, &md_attr));
    if ((attr.device_addr_len > MAX_LIST_ADDRESS) ||
        (attr.iface_addr_len > MAX_LIST_ADDRESS) ||
        (md_attr.rkey_packed_size > MAX_LIST_ADDRESS)) {
        rank_fail("lists: long addresses, or a long key");
    }
    lists_need("device address", uct_iface_get_device_address(
                                     lists.iface, (void *)info->list_device));
    lists_need("address",
               uct_iface_get_address(lists.iface, (void *)info->list_address));
    lists_need("key", uct_md_mkey_pack(lists.md, lists.memh, info->list_key));
}

void lists_end(void)
{
    uct_iface_close(lists.iface);
    lists_need("deregistration", uct_md_mem_dereg(lists.md, lists.memh));
    uct_md_close(lists.md);
    uct_worker_destroy(lists.worker);
    ucs_async_context_destroy(lists.async);
}

/* --- endpoints ------------------------------------------------------------ */

void lists_connect(struct peer *peer)
{
    const struct rank_info *info = &ledger->rank[peer->rank];
    uct_ep_params_t params       = {.iface = lists.iface};

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                        UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.dev_addr   = (const void *)info->list_device;
    params.iface_addr = (const void *)info->list_address;
    lists_need("endpoint", uct_ep_create(&params, &peer->list_ep));
    lists_need("remote key", uct_rkey_unpack(lists.component, info->list_key,
                                             &peer->list_key));
}

void lists_close(struct peer *peer)
{
    uct_ep_h ep = peer->list_ep;

    peer->list_ep = NULL; /* an error no longer concerns the peer */
    uct_ep_destroy(ep);
    lists_need("release of a key",
               uct_rkey_release(lists.component, &peer->list_key));
}

/* --- lists ---------------------------------------------------------------- */

static void lists_ended(struct list *list, ucs_status_t status)
{
    struct slot *slot = list->slot;

    free(list);
    rank.requests--;
    op_part_end(slot, status);
}

static void lists_completed(uct_completion_t *comp)
{
    lists_ended(ucs_container_of(comp, struct list, comp), comp->status);
}

/* Returns piece @i in the order of the list: 2, 3, 0, 1, 6, 7, ... Those of a
 * pair are adjacent and share a WQE. */
static size_t lists_piece(size_t i, size_t num)
{
    return ((i ^ 2) < num) ? i ^ 2 : i;
}

static ucs_status_t lists_try(struct list *list)
{
    struct slot *slot = list->slot;
    struct peer *peer = slot->peer;
    size_t num        = (list->length + LISTS_PIECE - 1) / LISTS_PIECE, at;
    void *buffers[MAX_PIECES];
    size_t lengths[MAX_PIECES];
    uct_mem_h memhs[MAX_PIECES];
    uint64_t remotes[MAX_PIECES];
    uct_rkey_t rkeys[MAX_PIECES];

    for (size_t i = 0; i < num; i++) {
        at         = lists_piece(i, num) * LISTS_PIECE;
        buffers[i] = slot->buffer + at;
        lengths[i] = (list->length - at < LISTS_PIECE) ? list->length - at :
                                                         LISTS_PIECE;
        memhs[i]   = slot->list_memh;
        remotes[i] = list->remote + at;
        rkeys[i]   = peer->list_key.rkey;
    }
    return (list->is_get ? uct_dcx_get_sgl_zcopy : uct_dcx_put_sgl_zcopy)(
        peer->list_ep, buffers, lengths, memhs, remotes, rkeys, NULL, NULL, num,
        &list->comp);
}

/* Posts a pending list. */
static ucs_status_t lists_pending(uct_pending_req_t *req)
{
    struct list *list   = (struct list *)req;
    ucs_status_t status = lists_try(list);

    if (status == UCS_ERR_NO_RESOURCE) {
        return status;
    }
    if (status != UCS_INPROGRESS) {
        lists_ended(list, status);
    }
    return UCS_OK;
}

static void lists_purged(uct_pending_req_t *req, void *arg)
{
    struct peer *peer = arg;

    lists_ended((struct list *)req,
                ledger_flow(rank.me, peer->rank)->handler_status);
}

void lists_progress(void)
{
    struct peer *peer;

    uct_worker_progress(lists.worker);
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        peer = &rank.peer[i];
        if ((peer->list_ep != NULL) && peer->has_failed) {
            uct_ep_pending_purge(peer->list_ep, lists_purged, peer);
        }
    }
}

void lists_post(struct slot *slot, size_t length, uint64_t remote, bool is_get)
{
    struct list *list   = malloc(sizeof(*list));
    ucs_status_t status = UCS_OK;

    *list = (struct list){
        .pending = {.func = lists_pending},
        .comp    = {.func = lists_completed, .count = 1},
        .slot    = slot,
        .length  = length,
        .remote  = remote,
        .is_get  = is_get,
    };
    rank.requests++;
    if (slot->list_memh == NULL) {
        slot->list_memh = lists_reg(slot->buffer, op_room(), &status);
    }
    if (status == UCS_OK) {
        status = lists_try(list);
    }
    while ((status == UCS_ERR_NO_RESOURCE) &&
           (uct_ep_pending_add(slot->peer->list_ep, &list->pending, 0) !=
            UCS_OK)) {
        status = lists_try(list);
    }
    ledger->pending += (status == UCS_ERR_NO_RESOURCE);
    if ((status != UCS_INPROGRESS) && (status != UCS_ERR_NO_RESOURCE)) {
        lists_ended(list, status);
    }
}

void lists_end_slot(struct slot *slot)
{
    if (slot->list_memh != NULL) {
        lists_need("deregistration",
                   uct_md_mem_dereg(lists.md, slot->list_memh));
    }
}
