/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opens dcx through UCT, and exchanges messages with the peer; see perf_uct.h.
 */
#include "perf_uct.h"
#include "perf_say.h"

#include <ucs/async/async_fwd.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PERF_TL "dcx"

enum { PERF_AM_ID = 1 };

void perf_uct_check(ucs_status_t status, const char *what)
{
    if (UCS_STATUS_IS_ERR(status)) {
        perf_fail("%s: %s", what, ucs_status_string(status));
    }
}

/* --- the domain ----------------------------------------------------------- */
/* Returns true if the domain has the device, or any device if @device is
 * NULL. */
static bool perf_uct_md_has(struct perf_uct *uct, const char *device)
{
    uct_tl_resource_desc_t *list;
    bool found = false;
    unsigned num;

    if (uct_md_query_tl_resources(uct->md, &list, &num) != UCS_OK) {
        return false;
    }
    for (unsigned i = 0; (i < num) && !found; i++) {
        found = !strcmp(list[i].tl_name, PERF_TL) &&
                ((device == NULL) || !strcmp(list[i].dev_name, device));
        snprintf(uct->device, sizeof(uct->device), "%s", list[i].dev_name);
    }
    uct_release_tl_resource_list(list);
    return found;
}

static size_t perf_uct_max_pieces(uct_md_config_t *config)
{
    char value[32];

    return (uct_config_get(config, "UMR_MAX_ENTRIES", value, sizeof(value)) ==
            UCS_OK) ?
               strtoul(value, NULL, 10) :
               0;
}

static bool perf_uct_open_md(struct perf_uct *uct, const char *name,
                             const char *device)
{
    uct_md_config_t *config;
    bool found = false;

    perf_uct_check(uct_md_config_read(uct->component, NULL, NULL, &config),
                   "options of dcx");
    if (uct_md_open(uct->component, name, config, &uct->md) == UCS_OK) {
        found = perf_uct_md_has(uct, device);
        if (!found) {
            uct_md_close(uct->md);
        }
    }
    uct->max_pieces = perf_uct_max_pieces(config);
    uct_config_release(config);
    return found;
}

/* Opens the component's first domain that has the device. */
static bool perf_uct_search(struct perf_uct *uct, const char *device)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT,
    };
    bool found = false;

    perf_uct_check(uct_component_query(uct->component, &attr), "dcx");
    if (strcmp(attr.name, PERF_TL) || (attr.md_resource_count == 0)) {
        return false;
    }
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count,
                               sizeof(*attr.md_resources));
    perf_uct_check((attr.md_resources == NULL) ?
                       UCS_ERR_NO_MEMORY :
                       uct_component_query(uct->component, &attr),
                   "dcx");
    for (unsigned i = 0; (i < attr.md_resource_count) && !found; i++) {
        found = perf_uct_open_md(uct, attr.md_resources[i].md_name, device);
    }
    free(attr.md_resources);
    return found;
}

static void perf_uct_find(struct perf_uct *uct, const char *device)
{
    uct_component_h *list;
    bool found = false;
    unsigned num;

    perf_uct_check(uct_query_components(&list, &num), "UCT");
    for (unsigned i = 0; (i < num) && !found; i++) {
        uct->component = list[i];
        found          = perf_uct_search(uct, device);
    }
    uct_release_component_list(list);
    if (!found) {
        perf_fail("there is no device %s%sthat dcx can use: dcx_info says why; "
                  "dcx-run --soft %s ... needs none",
                  (device == NULL) ? "" : device, (device == NULL) ? "" : " ",
                  program_invocation_short_name);
    }
}

/* --- the interface -------------------------------------------------------- */
static ucs_status_t perf_uct_mail(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    struct perf_uct *uct = arg;

    (void)flags;
    if (uct->has_mail || (length > sizeof(uint64_t) + PERF_MAIL_MAX)) {
        perf_fail("the peer sent an invalid message");
    }
    memcpy(uct->mail, (uint8_t *)data + sizeof(uint64_t),
           length - sizeof(uint64_t));
    uct->has_mail = true;
    return UCS_OK;
}

static ucs_status_t perf_uct_failure(void *arg, uct_ep_h ep,
                                     ucs_status_t status)
{
    struct perf_uct *uct = arg;

    (void)ep;
    (void)status;
    uct->has_failed = true;
    return UCS_OK;
}

static ucs_status_t perf_uct_open_iface(struct perf_uct *uct,
                                        const uct_iface_params_t *more)
{
    uct_iface_params_t params = {};
    uct_iface_config_t *config;
    ucs_status_t status;

    if (more != NULL) {
        params = *more;
    }
    params.field_mask |= UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                         UCT_IFACE_PARAM_FIELD_DEVICE |
                         UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                         UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = PERF_TL;
    params.mode.device.dev_name = uct->device;
    params.err_handler          = perf_uct_failure;
    params.err_handler_arg      = uct;
    perf_uct_check(
        uct_md_iface_config_read(uct->md, PERF_TL, NULL, NULL, &config),
        "options of dcx");
    status = uct_iface_open(uct->md, uct->worker, &params, config, &uct->iface);
    uct_config_release(config);
    if (status != UCS_OK) {
        return status;
    }

    perf_uct_check(uct_iface_query(uct->iface, &uct->attr), "the interface");
    perf_uct_check(
        uct_iface_set_am_handler(uct->iface, PERF_AM_ID, perf_uct_mail, uct, 0),
        "the interface");
    uct_iface_progress_enable(uct->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return UCS_OK;
}

void perf_uct_open(struct perf_uct *uct, const struct perf_boot *boot,
                   const char *device)
{
    perf_uct_check(perf_uct_open_with(uct, boot, device, NULL),
                   "opening the interface");
}

ucs_status_t perf_uct_open_with(struct perf_uct *uct,
                                const struct perf_boot *boot,
                                const char *device,
                                const uct_iface_params_t *more)
{
    memset(uct, 0, sizeof(*uct));
    uct->boot = boot;
    perf_uct_check(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &uct->async),
                   "UCS");
    perf_uct_check(
        uct_worker_create(uct->async, UCS_THREAD_MODE_SINGLE, &uct->worker),
        "UCT");
    perf_uct_find(uct, device);
    return perf_uct_open_iface(uct, more);
}

void perf_uct_address(struct perf_uct *uct, struct perf_address *address)
{
    if ((uct->attr.device_addr_len > sizeof(address->device)) ||
        (uct->attr.iface_addr_len > sizeof(address->iface))) {
        perf_fail("addresses of this version of dcx are too long for this "
                  "dcx_perf");
    }
    memset(address, 0, sizeof(*address));
    perf_uct_check(uct_iface_get_device_address(
                       uct->iface, (uct_device_addr_t *)address->device),
                   "the device's address");
    perf_uct_check(
        uct_iface_get_address(uct->iface, (uct_iface_addr_t *)address->iface),
        "the interface's address");
}

void perf_uct_connect(struct perf_uct *uct, const struct perf_address *peer)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = uct->iface,
        .dev_addr   = (const uct_device_addr_t *)peer->device,
        .iface_addr = (const uct_iface_addr_t *)peer->iface,
    };

    if (!uct_iface_is_reachable(uct->iface, params.dev_addr,
                                params.iface_addr)) {
        perf_fail("the peer's port is not reachable from %s: it is on another "
                  "network, or has another version of dcx",
                  uct->device);
    }
    perf_uct_check(uct_ep_create(&params, &uct->ep), "the endpoint");
}

void perf_uct_close(struct perf_uct *uct)
{
    uct_ep_destroy(uct->ep);
    uct_iface_close(uct->iface);
    uct_md_close(uct->md);
    uct_worker_destroy(uct->worker);
    ucs_async_context_destroy(uct->async);
}

/* --- waiting -------------------------------------------------------------- */
/* Checks the endpoint once a second: this fails if the peer is gone. */
static void perf_uct_ask(struct perf_uct *uct)
{
    static time_t asked;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != asked) {
        asked = now.tv_sec;
        (void)uct_ep_check(uct->ep, 0, NULL);
    }
}

/* Returns true if the peer is gone. Its last message may have come just before
 * its end was seen. */
static bool perf_uct_is_gone(struct perf_uct *uct)
{
    if (uct->has_mail || !uct->boot->is_gone()) {
        return false;
    }
    while (uct_worker_progress(uct->worker) > 0) {
    }
    return !uct->has_mail;
}

void perf_uct_look_after(struct perf_uct *uct)
{
    if (!uct->may_end) {
        if (uct->has_failed || perf_uct_is_gone(uct)) {
            perf_fail("the peer has ended");
        }
        perf_uct_ask(uct);
    }
    sched_yield(); /* there may be fewer cores than processes */
}

void perf_uct_send(struct perf_uct *uct, const void *mail, size_t length)
{
    ucs_status_t status;

    while ((status = uct_ep_am_short(uct->ep, PERF_AM_ID, 0, mail, length)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(uct);
    }
    perf_uct_check(status, "a message to the peer");
}

void perf_uct_receive(struct perf_uct *uct, void *mail, size_t length)
{
    while (!uct->has_mail) {
        perf_uct_progress(uct);
    }
    memcpy(mail, uct->mail, length);
    uct->has_mail = false;
}

void perf_uct_flush(struct perf_uct *uct)
{
    ucs_status_t status;

    while ((status = uct_iface_flush(uct->iface, 0, NULL)) != UCS_OK) {
        if (status != UCS_ERR_NO_RESOURCE) {
            perf_uct_check(status, "a flush");
        }
        perf_uct_progress(uct);
    }
}
