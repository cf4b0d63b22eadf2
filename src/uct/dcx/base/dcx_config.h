/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of an interface, UCX_DCX_*. UCX reads them into this structure;
 * the interface checks and resolves them once, when it opens (dcx_iface.c).
 * Each option has a field here, a row with its text in the table of
 * dcx_config.c (of dcx_site.c if a whole site sets it), and, if it is a number,
 * a range in dcx_config_check.c.
 *
 * base/ has the code that needs no device: options, the choice of initiators,
 * the arithmetic of credits, memory for many objects. All other folders may
 * call it; it calls only ucx/.
 */
#ifndef UCT_DCX_CONFIG_H
#define UCT_DCX_CONFIG_H

#include "dcx_credit.h"

#include <ucs/config/parser.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <uct/base/uct_iface.h>


/* Smallest maximum of WQEBBs of a WQE: libmlx5 sizes a queue for four */
#define UCT_DCX_MIN_MAX_BB 4

/* Bytes. The maximum is that of UCP's addresses: 16 bits for the longest
 * message, in units of 64 bytes */
#define UCT_DCX_MIN_SEG_SIZE 512
#define UCT_DCX_MAX_SEG_SIZE (4 * UCS_MBYTE)

#define UCT_DCX_MIN_RX_QUEUE_LEN 4

/* Bytes of the longest request of a rendezvous. A device that matches it, but
 * does not fetch the data, writes the request to the tagged buffer. */
#define UCT_DCX_MAX_TM_REQUEST 64


/* Ways to pass a WQE to the device, indices in uct_dcx_mmio_mode_names */
enum {
    UCT_DCX_MMIO_MODE_AUTO,
    UCT_DCX_MMIO_MODE_BF_POST,
    UCT_DCX_MMIO_MODE_BF_POST_MT,
    UCT_DCX_MMIO_MODE_DB
};


/* Most that MAX_RD_ATOMIC=auto sets: each mlx5 device answers 16 */
#define UCT_DCX_AUTO_RD_ATOMIC 16


/* Values of ROCE_REACHABILITY_MODE, indices in the names of dcx_site.c */
enum { UCT_DCX_REACH_ROUTE, UCT_DCX_REACH_LOCAL_SUBNET, UCT_DCX_REACH_ALL };


typedef struct uct_dcx_iface_config {
    uct_iface_config_t super;
    size_t seg_size; /* bytes */
    int report;      /* counts, and prints a table at the end */

    struct {
        unsigned num_dci;
        unsigned policy;      /* index in uct_dcx_policy_names */
        unsigned quota;       /* WQEBBs */
        unsigned num_streams; /* a power of two */
        unsigned rand_seed;   /* 0: a new seed for each interface */
        unsigned queue_len;   /* WQEs of the maximum size */
        unsigned mmio_mode;   /* UCT_DCX_MMIO_MODE_* */
        size_t min_inline;    /* bytes */
        unsigned max_poll;
        unsigned cq_moderation;      /* WQEBBs */
        unsigned long max_rd_atomic; /* or UCS_ULUNITS_AUTO */
        double timeout;              /* seconds */
        unsigned retry_count;
        unsigned rnr_retry_count;
    } tx;

    struct {
        size_t size; /* bytes of a segment */
        unsigned count;
    } dm;

    struct {
        unsigned queue_len; /* receive buffers */
        size_t inl;         /* bytes */
        unsigned max_poll;
        double rnr_timeout; /* seconds */
        int full_handshake; /* ucs_ternary_auto_value_t, no "auto" */
    } rx;

    struct {
        int enable;
        unsigned long window;  /* credits, or UCS_ULUNITS_AUTO */
        unsigned long initial; /* credits, or UCS_ULUNITS_AUTO */
        double thresh;         /* fraction of a grant beyond @initial */
        double resend_timeout; /* seconds */
    } fc;

    struct {
        int enable;              /* ucs_ternary_auto_value_t, no "auto" */
        unsigned long list_size; /* tagged buffers, or UCS_ULUNITS_AUTO */
        size_t seg_size;         /* bytes, or UCS_MEMUNITS_AUTO */
        size_t min_recv;         /* bytes, or UCS_MEMUNITS_AUTO */
        int common_key;
    } tm;

    struct {
        unsigned max_plain; /* pieces of memory */
        size_t copy;        /* bytes, or UCS_MEMUNITS_AUTO */
        size_t copy_piece;  /* bytes, or UCS_MEMUNITS_AUTO */
    } strided;

    struct {
        unsigned long sl;            /* or UCS_ULUNITS_AUTO */
        unsigned long reverse_sl;    /* or UCS_ULUNITS_AUTO */
        int ar_enable;               /* ucs_ternary_auto_value_t */
        int ddp_enable;              /* ucs_ternary_auto_value_t, no
                                      * "auto" */
        unsigned long traffic_class; /* or UCS_ULUNITS_AUTO */
        unsigned long gid_index;     /* or UCS_ULUNITS_AUTO */
        char *pkey;                  /* see uct_dcx_config_pkey() */
        unsigned mtu;                /* enum ibv_mtu, 0: the port's */
        int is_global;
        int flid_route;
        unsigned hop_limit;
        unsigned long num_paths; /* or UCS_ULUNITS_AUTO */
        UCS_CONFIG_ARRAY_FIELD(ucs_range_spec_t, ranges) lid_path_bits;
        unsigned roce_path_factor;
        ucs_config_allow_list_t roce_subnets; /* "192.168.0.0/16" */
        unsigned roce_reach;                  /* UCT_DCX_REACH_* */
        int roce_local_subnet;
        unsigned long roce_prefix_len; /* bits, or UCS_ULUNITS_AUTO, _INF */
    } path;
} uct_dcx_iface_config_t;


extern ucs_config_field_t uct_dcx_iface_config_table[];
extern const char *uct_dcx_mmio_mode_names[];

/* Returns the name of the variable that sets an interface's option, for
 * messages; see dcx_site.h. */
const char *uct_dcx_config_variable(const char *option);

/* Checks each number against its range, and related options against each other
 * except FC_WINDOW and FC_INITIAL (uct_dcx_fc_init()). If any is wrong, logs
 * the first one with its variable, and returns UCS_ERR_INVALID_PARAM. */
ucs_status_t uct_dcx_config_check(const uct_dcx_iface_config_t *config);

/* Stores the number of a partition, 1 to 0x7fff, in @pkey; 0 for "auto". UCX's
 * own type would take 0xfffe for "auto". Returns 0 if @str is neither. */
int uct_dcx_config_pkey(const char *str, uint16_t *pkey);

/* Returns FC_WINDOW or FC_INITIAL as uct_dcx_credit_bank() takes it. */
static inline unsigned uct_dcx_config_credits(unsigned long value)
{
    return (value == UCS_ULUNITS_AUTO) ? UCT_DCX_CREDIT_AUTO : value;
}

/* Returns the code of a local ACK timeout, 1 to 31: 4.096 us * 2^code, rounded
 * up. */
uint8_t uct_dcx_config_timeout_code(double seconds);

/* Returns the code of an RNR timer (InfiniBand specification, "RNR NAK timer"):
 * the shortest that is at least @seconds, otherwise the longest. */
uint8_t uct_dcx_config_rnr_code(double seconds);

#endif
