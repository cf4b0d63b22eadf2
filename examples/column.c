/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A column of a matrix put into a column of another one, in one process and
 * without MPI: the least that a program needs to open dcx and to use a layout
 * (uct_dcx_layout_create(3)). Two programs would exchange the addresses of
 * their interfaces and the packed key.
 *
 *     cc column.c -o column $(pkg-config --cflags --libs dcx)
 *     dcx-run ./column mlx5_0:1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uct/dcx/dcx.h>

enum { ROWS = 1000, COLUMNS = 64 };

static double from[ROWS][COLUMNS], to[ROWS][COLUMNS];

#define CHECK(_call) check(_call, #_call)

static void check(ucs_status_t status, const char *call)
{
    if (UCS_STATUS_IS_ERR(status)) {
        fprintf(stderr, "column: %s: %s\n", call, ucs_status_string(status));
        exit(1);
    }
}

static uct_component_h find_component(void)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    uct_component_h *list, found = NULL;
    unsigned i, count;

    CHECK(uct_query_components(&list, &count));
    for (i = 0; i < count; i++) {
        CHECK(uct_component_query(list[i], &attr));
        if (!strcmp(attr.name, "dcx")) {
            found = list[i];
        }
    }
    uct_release_component_list(list);
    check(found ? UCS_OK : UCS_ERR_NO_DEVICE, "dcx: started by dcx-run?");
    return found;
}

static uct_md_h open_md(uct_component_h component, const char *port)
{
    uct_md_config_t *config;
    char device[64];
    uct_md_h md;

    snprintf(device, sizeof(device), "%.*s", (int)strcspn(port, ":"), port);
    CHECK(uct_md_config_read(component, NULL, NULL, &config));
    CHECK(uct_md_open(component, device, config, &md));
    uct_config_release(config);
    return md;
}

static uct_iface_h open_iface(uct_md_h md, uct_worker_h worker,
                              const char *port)
{
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                      UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = "dcx",
        .mode.device.dev_name = port,
    };
    uct_iface_config_t *config;
    uct_iface_h iface;

    CHECK(uct_md_iface_config_read(md, "dcx", NULL, NULL, &config));
    CHECK(uct_iface_open(md, worker, &params, config, &iface));
    uct_config_release(config);
    uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return iface;
}

/* An endpoint that leads to its own interface */
static uct_ep_h connect_to_self(uct_iface_h iface)
{
    char device[64], address[64];
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = iface,
        .dev_addr   = (uct_device_addr_t *)device,
        .iface_addr = (uct_iface_addr_t *)address,
    };
    uct_iface_attr_t attr;
    uct_ep_h ep;

    CHECK(uct_iface_query(iface, &attr));
    check((attr.device_addr_len <= sizeof(device)) &&
                  (attr.iface_addr_len <= sizeof(address)) ?
              UCS_OK :
              UCS_ERR_BUFFER_TOO_SMALL,
          "addresses");
    CHECK(uct_iface_get_device_address(iface, (uct_device_addr_t *)device));
    CHECK(uct_iface_get_address(iface, (uct_iface_addr_t *)address));
    CHECK(uct_ep_create(&params, &ep));
    return ep;
}

/* A layout of one column of a registered matrix: ROWS blocks of a double */
static uct_mem_h make_column(uct_iface_h iface, uct_worker_h worker,
                             double *first, uct_mem_h matrix)
{
    const uct_dcx_block_t block = {
        .address = (uintptr_t)first,
        .length  = sizeof(*first),
        .skip    = (COLUMNS - 1) * sizeof(*first),
        .memh    = matrix,
    };
    const uct_dcx_layout_params_t params = {
        .access = UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE |
                  UCT_MD_MEM_ACCESS_REMOTE_PUT,
        .repeat = ROWS,
        .num    = 1,
        .blocks = &block,
    };
    uct_mem_h column;

    CHECK(
        uct_dcx_layout_create(iface, uct_dcx_layout_pieces(&params), &column));
    CHECK(uct_dcx_layout_set(column, &params));
    while (uct_dcx_layout_test(column) == UCS_INPROGRESS) {
        uct_worker_progress(worker);
    }
    CHECK(uct_dcx_layout_test(column));
    return column;
}

/* Unpacks a remote key, as a peer does with the one it was sent. */
static uct_rkey_bundle_t get_rkey(uct_component_h component, uct_md_h md,
                                  uct_mem_h memh)
{
    uct_rkey_bundle_t rkey;
    uct_md_attr_t attr;
    void *packed;

    CHECK(uct_md_query(md, &attr));
    packed = malloc(attr.rkey_packed_size);
    check(packed ? UCS_OK : UCS_ERR_NO_MEMORY, "malloc");
    CHECK(uct_md_mkey_pack(md, memh, packed));
    CHECK(uct_rkey_unpack(component, packed, &rkey));
    free(packed);
    return rkey;
}

/* Puts all bytes of one column into the other, and waits until they are there.
 * Addresses in a layout are offsets: both sides begin at 0. */
static void put_column(uct_ep_h ep, uct_iface_h iface, uct_worker_h worker,
                       uct_mem_h column, uct_rkey_t rkey)
{
    const uct_iov_t iov = {
        .buffer = NULL,
        .length = ROWS * sizeof(double),
        .memh   = column,
        .count  = 1,
    };
    ucs_status_t status;

    CHECK(uct_ep_put_zcopy(ep, &iov, 1, 0, rkey, NULL));
    do {
        uct_worker_progress(worker);
        status = uct_iface_flush(iface, 0, NULL);
    } while ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE));
    check(status, "uct_iface_flush");
}

static unsigned count_wrong(void)
{
    unsigned wrong = 0;
    unsigned i, j;

    for (i = 0; i < ROWS; i++) {
        for (j = 0; j < COLUMNS; j++) {
            wrong += (to[i][j] != ((j == 3) ? from[i][5] : 0));
        }
    }
    return wrong;
}

int main(int argc, char **argv)
{
    const char *port = (argc > 1) ? argv[1] : "mlx5_0:1";
    uct_mem_h memh[2], column[2];
    ucs_async_context_t *async;
    uct_component_h component;
    uct_rkey_bundle_t rkey;
    uct_worker_h worker;
    uct_iface_h iface;
    unsigned i, wrong;
    uct_md_h md;
    uct_ep_h ep;

    component = find_component();
    md        = open_md(component, port);
    CHECK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async));
    CHECK(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker));
    iface = open_iface(md, worker, port);
    ep    = connect_to_self(iface);

    for (i = 0; i < ROWS; i++) {
        from[i][5] = i + 1;
    }
    CHECK(uct_md_mem_reg(md, from, sizeof(from), UCT_MD_MEM_ACCESS_ALL,
                         &memh[0]));
    CHECK(uct_md_mem_reg(md, to, sizeof(to), UCT_MD_MEM_ACCESS_ALL, &memh[1]));
    column[0] = make_column(iface, worker, &from[0][5], memh[0]);
    column[1] = make_column(iface, worker, &to[0][3], memh[1]);
    rkey      = get_rkey(component, md, column[1]);

    put_column(ep, iface, worker, column[0], rkey.rkey);
    wrong = count_wrong();
    printf("%d doubles, %u wrong\n", ROWS * COLUMNS, wrong);

    uct_rkey_release(component, &rkey);
    for (i = 0; i < 2; i++) { /* layouts first, then what they name */
        CHECK(uct_md_mem_dereg(md, column[i]));
        CHECK(uct_md_mem_dereg(md, memh[i]));
    }
    uct_ep_destroy(ep);
    uct_iface_close(iface);
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
    uct_md_close(md);
    return wrong != 0;
}
