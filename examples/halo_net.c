/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "halo_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check(ucs_status_t status, const char *what)
{
    if (UCS_STATUS_IS_ERR(status)) {
        fprintf(stderr, "halo: %s: %s\n", what, ucs_status_string(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

void *alloc(size_t size)
{
    void *mem = calloc(1, size);

    check(mem ? UCS_OK : UCS_ERR_NO_MEMORY, "calloc");
    return mem;
}

static uct_component_h net_find(const char *name)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    uct_component_h *list, found = NULL;
    unsigned i, count;

    CHECK(uct_query_components(&list, &count));
    for (i = 0; i < count; i++) {
        CHECK(uct_component_query(list[i], &attr));
        found = strcmp(attr.name, name) ? found : list[i];
    }
    uct_release_component_list(list);
    check(found ? UCS_OK : UCS_ERR_NO_DEVICE, name);
    return found;
}

void net_open(struct net *net, const char *port)
{
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                      UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = "dcx",
        .mode.device.dev_name = port,
    };
    uct_md_config_t *md_config;
    uct_iface_config_t *config;
    char adapter[64];

    snprintf(adapter, sizeof(adapter), "%.*s", (int)strcspn(port, ":"), port);
    net->component = net_find("dcx");
    CHECK(uct_md_config_read(net->component, NULL, NULL, &md_config));
    CHECK(uct_md_open(net->component, adapter, md_config, &net->md));
    uct_config_release(md_config);
    CHECK(
        ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &net->async));
    CHECK(uct_worker_create(net->async, UCS_THREAD_MODE_SINGLE, &net->worker));
    CHECK(uct_md_iface_config_read(net->md, "dcx", NULL, NULL, &config));
    CHECK(uct_iface_open(net->md, net->worker, &params, config, &net->iface));
    uct_config_release(config);
    uct_iface_progress_enable(net->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

void net_close(struct net *net)
{
    uct_iface_close(net->iface);
    uct_worker_destroy(net->worker);
    ucs_async_context_destroy(net->async);
    uct_md_close(net->md);
}

void net_connect(struct net *net, MPI_Comm comm, uct_ep_h *eps, int count)
{
    uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                                            UCT_EP_PARAM_FIELD_IFACE_ADDR,
                              .iface = net->iface};
    uct_iface_attr_t attr;
    char *mine, *theirs;
    size_t length;
    int i;

    CHECK(uct_iface_query(net->iface, &attr));
    length = attr.device_addr_len + attr.iface_addr_len;
    mine   = alloc(length);
    theirs = alloc(count * length);
    CHECK(uct_iface_get_device_address(net->iface, (uct_device_addr_t *)mine));
    CHECK(uct_iface_get_address(
        net->iface, (uct_iface_addr_t *)(mine + attr.device_addr_len)));
    MPI_Neighbor_allgather(mine, length, MPI_BYTE, theirs, length, MPI_BYTE,
                           comm);
    for (i = 0; i < count; i++) {
        params.dev_addr = (uct_device_addr_t *)(theirs + i * length);
        params.iface_addr =
            (uct_iface_addr_t *)(theirs + i * length + attr.device_addr_len);
        CHECK(uct_ep_create(&params, &eps[i]));
    }
    free(theirs);
    free(mine);
}

int net_retry(struct net *net, ucs_status_t status)
{
    if (status != UCS_ERR_NO_RESOURCE) {
        check(status, "post");
        return 0;
    }
    uct_worker_progress(net->worker);
    return 1;
}

void net_flush(struct net *net)
{
    ucs_status_t status;

    do {
        uct_worker_progress(net->worker);
        status = uct_iface_flush(net->iface, 0, NULL);
    } while (net_retry(net, status) || (status == UCS_INPROGRESS));
}
