/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Causes in the options of UCX and in the MPI; see info_ucx.h. info_choice()
 * asks UCP itself which transport it would use between two processes, with an
 * endpoint to its own worker.
 */
#include "info_ucx.h"
#include "info_log.h"
#include "info_mpi.h"
#include "info_near.h"
#include "info_ompi.h"

#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

/* Transport and device that UCP uses: "dcx/mlx5_0:1" (info_lane_read()) */
static char info_lane[64];

const char *info_ucx_lane(void)
{
    return !strncmp(info_lane, "dcx/", 4) ? info_lane : NULL;
}

/* Reads the value that UCX uses, from the environment or from a file of UCX. */
static void info_ucx_value(const char *name, char *value, size_t max)
{
    size_t length = strlen(name), size;
    ucp_config_t *config;
    char *text, *line, *rest;
    FILE *stream;

    value[0] = '\0';
    if (ucp_config_read(NULL, NULL, &config) != UCS_OK) {
        return;
    }
    stream = open_memstream(&text, &size);
    ucp_config_print(config, stream, NULL, UCS_CONFIG_PRINT_CONFIG);
    fclose(stream);
    ucp_config_release(config);

    for (line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (!strncmp(line, name, length) && (line[length] == '=')) {
            snprintf(value, max, "%s", line + length + 1);
        }
    }
    free(text);
}

/* Returns the setting UCX_TLS=... that connections by socket address need.
 * NULL: none is needed, or UCX_TLS excludes transports: not checked. UCP
 * asks the connection manager for the network interface of the address, and
 * continues only if a transport has it. With rdma_cm it is that of the port;
 * otherwise only TCP has one (wireup_cm.c: ucp_cm_client_resolve_cb()). */
const char *info_ucx_sockaddr(void)
{
    static char variables[INFO_TEXT_MAX + sizeof("UCX_TLS=,tcp")];
    char value[INFO_TEXT_MAX];

    info_ucx_value("UCX_TLS", value, sizeof(value));
    if ((value[0] == '^') || info_list_has(value, "tcp") ||
        info_list_has(value, "all") ||
        (access("/dev/infiniband/rdma_cm", F_OK) == 0)) {
        return NULL;
    }
    snprintf(variables, sizeof(variables), "UCX_TLS=%s,tcp", value);
    return variables;
}

/* Reports a value of UCX_TLS without dcx. */
static void info_tls_blame(const char *value, struct info_verdict *verdict)
{
    size_t length;
    const char *entry = info_near_dcx(value, &length);

    if (entry == NULL) {
        info_blame(verdict, "UCX_TLS=%s does not list it", value);
        info_fix(verdict, "export UCX_TLS=dcx%s%.200s",
                 (value[0] == '\0') ? "" : ",", value);
    } else {
        info_blame(verdict,
                   "UCX_TLS=%s does not list it: is %.*s meant to be "
                   "dcx?",
                   value, (int)length, entry);
        info_fix(verdict, "export UCX_TLS=%.*sdcx%s", (int)(entry - value),
                 value, entry + length);
    }
}

static void info_tls(const struct info_report *report,
                     struct info_verdict *verdict)
{
    char value[INFO_TEXT_MAX];
    bool negated, listed;

    (void)report;
    info_ucx_value("UCX_TLS", value, sizeof(value));
    negated = (value[0] == '^');
    listed  = info_list_has(value + negated, "dcx") ||
             info_list_has(value + negated, "\\dcx");
    if (negated && listed) {
        info_blame(verdict, "UCX_TLS=%s excludes it", value);
        info_fix(verdict, "export UCX_TLS=dcx,self,sm");
    } else if (!negated && !listed && !info_list_has(value, "all")) {
        info_tls_blame(value, verdict);
    }
}

static void info_net_devices(const struct info_report *report,
                             struct info_verdict *verdict)
{
    const struct info_part *part, *usable = NULL;
    char value[INFO_TEXT_MAX];

    info_ucx_value("UCX_NET_DEVICES", value, sizeof(value));
    for (part = report->first; part != NULL; part = part->next) {
        if (part->is_port && info_part_usable(part)) {
            if (info_list_has(value, part->name)) {
                return;
            }
            usable = (usable == NULL) ? part : usable;
        }
    }
    if (!info_list_has(value, "all")) {
        info_blame(verdict, "UCX_NET_DEVICES=%s has no port that dcx can use",
                   value);
        info_fix(verdict, "export UCX_NET_DEVICES=%s", usable->name);
    }
}

static void info_bad_value(const struct info_report *report,
                           struct info_verdict *verdict)
{
    if (report->error[0] != '\0') {
        info_blame(verdict, "%s", report->error);
        info_fix_variable(verdict, report->error);
    }
}

/* --- the choice of UCP ---------------------------------------------------- */
/* Reads the first lane, which carries messages:
 * "#  lane[0]:  0:dcx/mlx5_0:1.0 md[0] ..." */
static void info_lane_read(ucp_ep_h ep)
{
    char *text, *lane;
    FILE *stream;
    size_t size;

    stream = open_memstream(&text, &size);
    ucp_ep_print_info(ep, stream);
    fclose(stream);
    lane = strstr(text, "lane[");
    if (lane != NULL) {
        sscanf(lane, "lane[%*d]: %*d:%63[^. ]", info_lane);
    }
    free(text);
}

static ucs_status_t info_lane_connect(ucp_worker_h worker)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_request_param_t close = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags        = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t request;
    ucp_address_t *address;
    ucs_status_t status;
    size_t length;
    ucp_ep_h ep;

    status = ucp_worker_get_address(worker, &address, &length);
    if (status != UCS_OK) {
        return status;
    }
    params.address = address;
    status         = ucp_ep_create(worker, &params, &ep);
    if (status == UCS_OK) {
        info_lane_read(ep);
        request = ucp_ep_close_nbx(ep, &close);
        while (UCS_PTR_IS_PTR(request) &&
               (ucp_request_check_status(request) == UCS_INPROGRESS)) {
            ucp_worker_progress(worker);
        }
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
    }
    ucp_worker_release_address(worker, address);
    return status;
}

/* Asks UCP for its lane. Disables shared memory and loopback, which do not
 * exist between machines and would be preferred here. */
static ucs_status_t info_lane_find(void)
{
    ucp_worker_params_t worker_params = {};
    ucp_params_t params               = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                         .features   = UCP_FEATURE_TAG};
    ucp_config_t *config;
    ucp_context_h context;
    ucp_worker_h worker;
    ucs_status_t status;

    status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    ucp_config_modify(config, "SELF_DEVICES", "");
    ucp_config_modify(config, "SHM_DEVICES", "");
    status = ucp_init(&params, config, &context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        return status;
    }

    status = ucp_worker_create(context, &worker_params, &worker);
    if (status == UCS_OK) {
        status = info_lane_connect(worker);
        ucp_worker_destroy(worker);
    }
    ucp_cleanup(context);
    return status;
}

static void info_choice(const struct info_report *report,
                        struct info_verdict *verdict)
{
    ucs_status_t status;
    const char *error;

    (void)report;
    info_log_take();
    status = info_lane_find();
    error  = info_log_take();
    if (info_ucx_lane() != NULL) {
        return;
    }
    if (strstr(error, "ulimit") != NULL) {
        info_blame(verdict, "%s", error);
        info_advise_limit('l', 0, verdict->fix);
    } else if (info_lane[0] != '\0') {
        info_blame(verdict, "it prefers %s", info_lane);
        info_fix(verdict, "export UCX_TLS=dcx,self,sm");
    } else {
        info_blame(verdict, "%s",
                   (error[0] != '\0') ? error : ucs_status_string(status));
        info_fix_variable(verdict, error);
    }
}

const info_cause_t info_ucx_causes[] = {
    info_tls,  info_net_devices, info_bad_value, info_choice,
    info_ompi, info_mpi,         NULL,
};
