/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The tables of the site's options, and where a value comes from; see
 * dcx_site.h. The prefixes and their order are those of UCX 1.13 to 1.22:
 * ib_iface.c, ib_md.c, rc_iface.c and dc_mlx5.c.
 */
#include "dcx_config.h"
#include "dcx_site.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <ucs/debug/log.h>


static const char *uct_dcx_mtu_names[] = {
    [0] = "default",           [IBV_MTU_256] = "256",   [IBV_MTU_512] = "512",
    [IBV_MTU_1024] = "1024",   [IBV_MTU_2048] = "2048", [IBV_MTU_4096] = "4096",
    [IBV_MTU_4096 + 1] = NULL,
};


static const char *uct_dcx_reach_names[] = {
    [UCT_DCX_REACH_ROUTE]        = "route",
    [UCT_DCX_REACH_LOCAL_SUBNET] = "local_subnet",
    [UCT_DCX_REACH_ALL]          = "all",
    [UCT_DCX_REACH_ALL + 1]      = NULL,
};

static UCS_CONFIG_DEFINE_ARRAY(uct_dcx_path_bits, sizeof(ucs_range_spec_t),
                               UCS_CONFIG_TYPE_RANGE_SPEC);


/* --- memory domains ------------------------------------------------------- */

ucs_config_field_t uct_dcx_site_md_table[] = {
    {"FORK_INIT", "try",
     "Call ibv_fork_init() to support fork(). Linux 5.12 and newer do not\n"
     "need it. \"try\" continues if the call fails, \"y\" fails, \"n\" does\n"
     "not call it.",
     ucs_offsetof(uct_dcx_site_md_config_t, fork_init),
     UCS_CONFIG_TYPE_TERNARY},

    {"ASYNC_EVENTS", "y",
     "Read and log asynchronous events of the device, in UCX's async thread:\n"
     "the port goes down or up, a queue or the device fails, addresses\n"
     "change. \"n\" does not report them, and operations on a device or queue\n"
     "that fails without a completion never end.",
     ucs_offsetof(uct_dcx_site_md_config_t, async_events),
     UCS_CONFIG_TYPE_BOOL},

    {"PCI_RELAXED_ORDERING", "auto",
     "Allow PCIe to write received messages and results of gets in any order,\n"
     "which some processors need for full bandwidth. \"try\" enables it if\n"
     "the device supports it, \"y\" fails if it does not, \"auto\" enables it\n"
     "if UCX knows that the processor benefits. Registers all memory twice.\n"
     "Puts and atomics of peers stay in order.",
     ucs_offsetof(uct_dcx_site_md_config_t, relaxed),
     UCS_CONFIG_TYPE_TERNARY_AUTO},

    {"REG_RETRY_CNT", "inf",
     "Number of times that a registration is tried again which the kernel\n"
     "refuses only for the moment (EAGAIN): memory on demand that changes\n"
     "meanwhile.",
     ucs_offsetof(uct_dcx_site_md_config_t, reg_retries),
     UCS_CONFIG_TYPE_ULUNITS},

    {"GPU_DIRECT_RDMA", "try",
     "Register memory of GPUs: as a dma-buf, or by peer memory of the kernel\n"
     "(nvidia_peermem, ROCm). \"try\" does so where kernel and device support\n"
     "it, \"y\" fails if they do not, \"n\" has UCX copy it through host\n"
     "memory.",
     ucs_offsetof(uct_dcx_site_md_config_t, gpu_direct),
     UCS_CONFIG_TYPE_TERNARY},

    {"SUBNET_PREFIX", "",
     "Use only InfiniBand ports of this subnet: the first half of their GIDs,\n"
     "such as fe80:0:0:0. An empty value uses ports of all subnets.",
     ucs_offsetof(uct_dcx_site_md_config_t, subnet_prefix),
     UCS_CONFIG_TYPE_STRING},

    {.name = NULL},
};


ucs_config_field_t uct_dcx_site_md_mlx5_table[] = {
    {"DEVX", "try",
     "Open the device with DEVX. dcx needs it to query capabilities, to\n"
     "create indirect mkeys (strided data, derived data types) and to\n"
     "invalidate memory if a peer fails. \"try\" continues without DEVX if\n"
     "the device or the kernel refuses it, \"y\" fails, \"n\" does not use\n"
     "it.",
     ucs_offsetof(uct_dcx_site_md_config_t, devx), UCS_CONFIG_TYPE_TERNARY},

    {.name = NULL},
};


/* --- interfaces ----------------------------------------------------------- */

/* UCX has this option with the domain, so no UCX_RC_* or UCX_DC_* overrides
 * it. */
ucs_config_field_t uct_dcx_site_port_table[] = {
    {"GID_INDEX", "auto",
     "Index of the port's GID to use. On InfiniBand \"auto\" is 0, or 1 if\n"
     "that one has an FLID and FLID_ROUTE is set. On RoCE it is the first one\n"
     "of RoCE v2 with an IPv4 address, else with an IPv6 address, link-local\n"
     "ones last; else of RoCE v1 in the same order.",
     ucs_offsetof(uct_dcx_iface_config_t, path.gid_index),
     UCS_CONFIG_TYPE_ULUNITS},

    {.name = NULL},
};


static ucs_config_field_t uct_dcx_site_ib_table[] = {
    {"SL", "auto",
     "InfiniBand service level, 0-15; on RoCE the priority, 0-7. \"auto\" is\n"
     "the lowest one that AR_ENABLE allows.",
     ucs_offsetof(uct_dcx_iface_config_t, path.sl), UCS_CONFIG_TYPE_ULUNITS},

    {"REVERSE_SL", "auto",
     "InfiniBand service level of acknowledgements and other answers of a\n"
     "peer, 0-15; on RoCE their priority, 0-7. \"auto\" is SL.",
     ucs_offsetof(uct_dcx_iface_config_t, path.reverse_sl),
     UCS_CONFIG_TYPE_ULUNITS},

    {"AR_ENABLE", "auto",
     "Adaptive routing, which may deliver RDMA out of order: a fence then\n"
     "waits until all previous operations are complete. On InfiniBand the\n"
     "service level determines it:\n"
     "\n"
     "y     Use a service level with adaptive routing. Fails if there is\n"
     "      none, or if SL is one without.\n"
     "\n"
     "n     Use a service level without adaptive routing. Fails if there is\n"
     "      none, or if SL is one with it.\n"
     "\n"
     "try   Use a service level with adaptive routing if there is one.\n"
     "\n"
     "auto  Use SL, or 0, with or without adaptive routing.\n"
     "\n"
     "On RoCE this option is ignored: the configuration of the device\n"
     "applies.",
     ucs_offsetof(uct_dcx_iface_config_t, path.ar_enable),
     UCS_CONFIG_TYPE_TERNARY_AUTO},

    {"TRAFFIC_CLASS", "auto",
     "Traffic class in the global route header, 0-255. \"auto\" on RoCE v2 is\n"
     "the class that the administrator has set for the whole port, or 106; on\n"
     "other ports 0.",
     ucs_offsetof(uct_dcx_iface_config_t, path.traffic_class),
     UCS_CONFIG_TYPE_ULUNITS},

    {"PKEY", "auto",
     "Partition key without the membership bit, 0x1-0x7fff. \"auto\" is the\n"
     "first one with full membership. Peers in other partitions are not\n"
     "reachable. Two limited members cannot reach each other.",
     ucs_offsetof(uct_dcx_iface_config_t, path.pkey), UCS_CONFIG_TYPE_STRING},

    {"PATH_MTU", "default",
     "Maximum packet size: 256, 512, 1024, 2048 or 4096 bytes. \"default\" is\n"
     "the MTU of the port.",
     ucs_offsetof(uct_dcx_iface_config_t, path.mtu),
     UCS_CONFIG_TYPE_ENUM(uct_dcx_mtu_names)},

    {"IS_GLOBAL", "n",
     "Send a global route header on InfiniBand, even within a subnet.\n"
     "Required to reach other subnets; set it in all processes of the job.",
     ucs_offsetof(uct_dcx_iface_config_t, path.is_global),
     UCS_CONFIG_TYPE_BOOL},

    {"FLID_ROUTE", "y",
     "On InfiniBand, reach ports of other subnets by their FLID, if the\n"
     "subnet manager has given one to this port, too, in its GID 1.\n"
     "IS_GLOBAL is not needed for that.",
     ucs_offsetof(uct_dcx_iface_config_t, path.flid_route),
     UCS_CONFIG_TYPE_BOOL},

    {"HOP_LIMIT", "255", "Hop limit of the global route header, 0-255.",
     ucs_offsetof(uct_dcx_iface_config_t, path.hop_limit),
     UCS_CONFIG_TYPE_UINT},

    {"NUM_PATHS", "auto",
     "Number of paths through the network to each peer, 1-128. UCP splits a\n"
     "large message over all of them. On InfiniBand they use different LIDs\n"
     "if the subnet has an LMC, on RoCE v2 different UDP source ports.\n"
     "\"auto\" is 2 on bonded ports (RoCE LAG), the number of LID_PATH_BITS\n"
     "that the LMC allows, 2 on NDR, else 1.",
     ucs_offsetof(uct_dcx_iface_config_t, path.num_paths),
     UCS_CONFIG_TYPE_ULUNITS},

    {"LID_PATH_BITS", "0-127",
     "Low bits of the LIDs of each path on InfiniBand, such as 0,2-3. Values\n"
     "of 2^LMC and above are skipped. Further paths start with the first one\n"
     "again.",
     ucs_offsetof(uct_dcx_iface_config_t, path.lid_path_bits),
     UCS_CONFIG_TYPE_ARRAY(uct_dcx_path_bits)},

    {"ROCE_PATH_FACTOR", "1",
     "Difference of the UDP source ports of two paths on RoCE v2, 0-16383.\n"
     "Switches and bonded ports choose a link by the port. 0 uses one port\n"
     "for all paths to a peer.",
     ucs_offsetof(uct_dcx_iface_config_t, path.roce_path_factor),
     UCS_CONFIG_TYPE_UINT},

    {"ROCE_LOCAL_SUBNET", "n",
     "On RoCE v2, treat only peers of the same IP subnet as reachable: \"y\"\n"
     "is ROCE_REACHABILITY_MODE=local_subnet. \"n\" has no effect.",
     ucs_offsetof(uct_dcx_iface_config_t, path.roce_local_subnet),
     UCS_CONFIG_TYPE_BOOL},

    {"ROCE_REACHABILITY_MODE", "all",
     "Peers that are reachable on RoCE v2, of those whose address is of the\n"
     "same family:\n"
     "\n"
     "route         The network interface with the port's address has a route\n"
     "              to the peer, and no other one has a longer prefix. The\n"
     "              routes are read when the port opens.\n"
     "\n"
     "local_subnet  The peer is in the port's IP subnet.\n"
     "\n"
     "all           All of them.",
     ucs_offsetof(uct_dcx_iface_config_t, path.roce_reach),
     UCS_CONFIG_TYPE_ENUM(uct_dcx_reach_names)},

    {"ROCE_SUBNETS", "all",
     "IP subnets to choose a GID from on RoCE, such as 10.1.0.0/16. With ^\n"
     "before the first one, GIDs of all other subnets. Do not set it together\n"
     "with GID_INDEX.",
     ucs_offsetof(uct_dcx_iface_config_t, path.roce_subnets),
     UCS_CONFIG_TYPE_ALLOW_LIST},

    {"ROCE_SUBNET_PREFIX_LEN", "auto",
     "Length of the prefix in bits that peers have to share if only those of\n"
     "the same IP subnet are reachable: 0-32 for IPv4, 0-128 for IPv6.\n"
     "\"auto\" is that of the network interface with the address. \"inf\"\n"
     "compares all bits, so that only this port is reachable.",
     ucs_offsetof(uct_dcx_iface_config_t, path.roce_prefix_len),
     UCS_CONFIG_TYPE_ULUNITS},

    {.name = NULL},
};


static ucs_config_field_t uct_dcx_site_rc_table[] = {
    {"IB_", "", NULL, 0, UCS_CONFIG_TYPE_TABLE(uct_dcx_site_ib_table)},

    {"MAX_RD_ATOMIC", "auto",
     "Maximum number of gets and atomics of one DCI that are on the wire at a\n"
     "time, 1-128. Fails if the device allows less. \"auto\" is 16, or the\n"
     "limit of the device if that is lower. More than 16 need peers whose\n"
     "devices answer as many: dcx does not ask them.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.max_rd_atomic),
     UCS_CONFIG_TYPE_ULUNITS},

    {"TIMEOUT", "1.0s",
     "Time until a packet without an acknowledgement is sent again, up to\n"
     "8796s. The device rounds it up to 4.096us * 2^n. An operation to a dead\n"
     "peer fails after about TIMEOUT * (RETRY_COUNT + 1).",
     ucs_offsetof(uct_dcx_iface_config_t, tx.timeout), UCS_CONFIG_TYPE_TIME},

    {"RETRY_COUNT", "7",
     "Number of times that a packet without an acknowledgement is sent again\n"
     "before its operation fails. Values above 7 are treated as 7.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.retry_count),
     UCS_CONFIG_TYPE_UINT},

    {"RNR_TIMEOUT", "1ms",
     "Time that a peer waits before it sends again if this process has no\n"
     "receive buffer, up to 655.36ms.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.rnr_timeout),
     UCS_CONFIG_TYPE_TIME},

    {"RNR_RETRY_COUNT", "7",
     "Number of times that a message is sent again if the peer has no receive\n"
     "buffer. 7 and above retry without a limit.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.rnr_retry_count),
     UCS_CONFIG_TYPE_UINT},

    {.name = NULL},
};


static ucs_config_field_t uct_dcx_site_dc_table[] = {
    {"RC_", "", NULL, 0, UCS_CONFIG_TYPE_TABLE(uct_dcx_site_rc_table)},

    {"DCT_FULL_HANDSHAKE", "n",
     "Make initiators wait for an answer of this process before they send it\n"
     "data, each time that they connect to it. Costs a round trip. Needs\n"
     "DEVX. \"try\" does without if the device refuses it, \"y\" fails.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.full_handshake),
     UCS_CONFIG_TYPE_TERNARY},

    {.name = NULL},
};


ucs_config_field_t uct_dcx_site_dc_mlx5_table[] = {
    {"DC_", "", NULL, 0, UCS_CONFIG_TYPE_TABLE(uct_dcx_site_dc_table)},

    {.name = NULL},
};


/* --- sources -------------------------------------------------------------- */

static int uct_dcx_site_is_bad(const ucs_config_field_t *field,
                               const char *value)
{
    union {
        uint64_t number;
        ucs_config_allow_list_t list;
    } scratch; /* the types in the tables */

    if (field->parser.read(value, &scratch, field->parser.arg) != 1) {
        return 1;
    }

    field->parser.release(&scratch, field->parser.arg);
    return 0;
}


/* Reads UCX_<prefix><option> only; @source is unchanged if it is not set. */
static void uct_dcx_site_read(const char *prefix,
                              const ucs_config_field_t *field,
                              uct_dcx_site_source_t *source)
{
    static const char unset[]  = "\n"; /* no variable has this value */
    ucs_config_field_t table[] = {
        {field->name, unset, NULL, 0, UCS_CONFIG_TYPE_STRING},
        {.name = NULL},
    };
    char *value;

    if (uct_dcx_ucx_read_options(&value, table, prefix) != UCS_OK) {
        return;
    }

    if (strcmp(value, unset) != 0) {
        snprintf(source->variable, sizeof(source->variable), "UCX_%s%s", prefix,
                 field->name);
        snprintf(source->value, sizeof(source->value), "%s", value);
        source->is_set = 1;
        source->is_bad = uct_dcx_site_is_bad(field, value);
    }
    ucs_config_parser_release_opts(&value, table);
}


/* Searches inner tables first, as UCX's parser does: an outer prefix takes
 * precedence, and the first bad value ends the search. Returns the option's
 * row, or NULL if @table has none. */
static const ucs_config_field_t *
uct_dcx_site_search(const ucs_config_field_t *table, const char *prefix,
                    const char *option, uct_dcx_site_source_t *source)
{
    const ucs_config_field_t *field, *found;
    const char *inner;

    for (field = table; field->name != NULL; ++field) {
        if (field->parser.read == ucs_config_sscanf_table) {
            inner = (field->name[0] == '\0') ? prefix : field->name;
            found = uct_dcx_site_search(field->parser.arg, inner, option,
                                        source);
        } else {
            found = strcmp(field->name, option) ? NULL : field;
        }
        if (found != NULL) {
            if (!source->is_bad) {
                uct_dcx_site_read(prefix, found, source);
            }
            return found;
        }
    }
    return NULL;
}


void uct_dcx_site_find(const ucs_config_field_t *table, const char *option,
                       uct_dcx_site_source_t *source)
{
    memset(source, 0, sizeof(*source));
    snprintf(source->variable, sizeof(source->variable), "UCX_DCX_%s", option);
    uct_dcx_site_search(table, "DCX_", option, source);
}


/* Warns of bad values in @fields, a table in @table; @is_site: it has UCX's
 * prefix. Logs values that are taken from UCX's variables. */
static void uct_dcx_site_walk(const ucs_config_field_t *table,
                              const ucs_config_field_t *fields, int is_site)
{
    const ucs_config_field_t *field;
    uct_dcx_site_source_t source;

    for (field = fields; field->name != NULL; ++field) {
        if (field->parser.read == ucs_config_sscanf_table) {
            uct_dcx_site_walk(table, field->parser.arg,
                              is_site || (field->name[0] != '\0'));
        } else if (is_site) {
            uct_dcx_site_find(table, field->name, &source);
            if (source.is_bad) {
                ucs_warn("%s=%s is not a valid value of UCX_DCX_%s, so dcx "
                         "fails to open; 'ucx_info -cf' shows the valid ones",
                         source.variable, source.value, field->name);
            } else if (source.is_set && !uct_dcx_site_is_own(source.variable)) {
                ucs_info("%s=%s is used, as UCX_DCX_%s is not set",
                         source.variable, source.value, field->name);
            }
        }
    }
}


void uct_dcx_site_warn(const ucs_config_field_t *table)
{
    uct_dcx_site_walk(table, table, 0);
}


void uct_dcx_site_log_ignored(void)
{
    static const char *names[]    = {"DCI_FULL_HANDSHAKE", "LAG_PORT_AFFINITY",
                                     "DCT_PORT_AFFINITY",  "EXP_BACKOFF",
                                     "LOG_ACK_REQ_FREQ",   "ECE",
                                     "TX_NUM_GET_BYTES",   "REG_MT_THRESH"};
    static const char *prefixes[] = {"DC_MLX5_", "DC_", "RC_MLX5_", "RC_",
                                     "IB_"};
    ucs_config_field_t field      = {.parser = UCS_CONFIG_TYPE_STRING};
    uct_dcx_site_source_t source;
    unsigned i, j;

    for (i = 0; i < ucs_static_array_size(names); ++i) {
        field.name = names[i];
        for (j = 0; j < ucs_static_array_size(prefixes); ++j) {
            memset(&source, 0, sizeof(source));
            uct_dcx_site_read(prefixes[j], &field, &source);
            if (source.is_set) {
                ucs_info("%s=%s has no effect on dcx", source.variable,
                         source.value);
            }
        }
    }
}


const char *uct_dcx_site_variable(const ucs_config_field_t *table,
                                  const char *option)
{
    static __thread uct_dcx_site_source_t source;

    uct_dcx_site_find(table, option, &source);
    return source.variable;
}


ucs_status_t uct_dcx_site_subnet(const uct_dcx_site_md_config_t *config,
                                 const ucs_config_field_t *table,
                                 uint64_t *prefix)
{
    const char *str = config->subnet_prefix;
    int length      = 0;
    uint16_t group[4];

    *prefix = 0;
    if (str[0] == '\0') {
        return UCS_OK;
    }

    /* the format that UCX reads (ib_md.c) */
    if ((sscanf(str, "%hx:%hx:%hx:%hx%n", &group[0], &group[1], &group[2],
                &group[3], &length) != 4) ||
        (str[length] != '\0')) {
        ucs_error("%s=%s is not the prefix of a subnet: set it to four groups "
                  "of hexadecimal digits, such as fe80:0:0:0",
                  uct_dcx_site_variable(table, "SUBNET_PREFIX"), str);
        return UCS_ERR_INVALID_PARAM;
    }

    *prefix = htobe64(((uint64_t)group[0] << 48) | ((uint64_t)group[1] << 32) |
                      ((uint64_t)group[2] << 16) | group[3]);
    return UCS_OK;
}
