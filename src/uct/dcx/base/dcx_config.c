/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Names, defaults and texts of an interface's options, as "ucx_info -cf" shows
 * them. Also converts a partition key, an ACK timeout and an RNR timer to the
 * device's codes. Ranges are checked in dcx_config_check.c; options of a whole
 * site are in dcx_site.c.
 */
#include "dcx_config.h"
#include "dcx_policy.h"
#include "dcx_site.h"

#include <stdlib.h>
#include <strings.h>
#include <ucs/sys/string.h>


const char *uct_dcx_mmio_mode_names[] = {
    [UCT_DCX_MMIO_MODE_AUTO]       = "auto",
    [UCT_DCX_MMIO_MODE_BF_POST]    = "bf_post",
    [UCT_DCX_MMIO_MODE_BF_POST_MT] = "bf_post_mt",
    [UCT_DCX_MMIO_MODE_DB]         = "db",
    [UCT_DCX_MMIO_MODE_DB + 1]     = NULL,
};


ucs_config_field_t uct_dcx_iface_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_dcx_iface_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

    {"SEG_SIZE", "8250",
     "Size of a receive buffer in bytes, and so of the greatest active\n"
     "message, its header of 2 bytes included, and of a copied put or get.\n"
     "Parts of a longer message are rounded down to multiples of 8: MPICH\n"
     "refuses one that ends within a number.\n"
     "Where processes of a job have different values, messages have to be\n"
     "kept below the smaller one: UCP does so with UCX_ADDRESS_VERSION=v2.",
     ucs_offsetof(uct_dcx_iface_config_t, seg_size), UCS_CONFIG_TYPE_MEMUNITS},

    {"NUM_DCI", "8",
     "Number of DC initiator QPs, 1-1024: how many endpoints can have\n"
     "operations in flight at a time. One is created when it is first needed.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.num_dci), UCS_CONFIG_TYPE_UINT},

    {"TX_POLICY", "dcs_quota",
     "How an endpoint gets a DC initiator:\n"
     "\n"
     "dcs        The one given back last; kept while operations are\n"
     "           outstanding.\n"
     "\n"
     "dcs_quota  The same, but while other endpoints wait for one, an\n"
     "           endpoint that has used its quota lets its operations\n"
     "           complete and joins the wait queue. No endpoint starves.\n"
     "\n"
     "rand       An endpoint gets one by lot when it is created, and shares\n"
     "           it with others. Behind a peer that does not answer they wait\n"
     "           until the retries are exhausted.\n"
     "\n"
     "hw_dcs     There is one, with streams that do not wait for each other\n"
     "           in the device; endpoints get a stream in turn when they are\n"
     "           created. NUM_DCI does not count. The device needs to have\n"
     "           streams.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.policy),
     UCS_CONFIG_TYPE_ENUM(uct_dcx_policy_names)},

    {"QUOTA", "32",
     "For TX_POLICY=dcs_quota: WQEBBs (building blocks of 64 bytes) that an\n"
     "endpoint may post in a turn while others wait. A short message takes 1\n"
     "or 2.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.quota), UCS_CONFIG_TYPE_UINT},

    {"NUM_DCI_STREAMS", "8",
     "For TX_POLICY=hw_dcs: streams of the shared DC initiator, a power of\n"
     "two: how many peers can be slow, or fail, at a time without being in\n"
     "the way of others in the device.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.num_streams),
     UCS_CONFIG_TYPE_UINT},

    {"RAND_SEED", "0",
     "For TX_POLICY=rand: a number from which the lots follow; 0 takes\n"
     "another one each time.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.rand_seed), UCS_CONFIG_TYPE_UINT},

    {"TX_QUEUE_LEN", "128",
     "Operations of the greatest size that fit in the send queue of one DC\n"
     "initiator; of small ones it takes up to four times as many.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.queue_len), UCS_CONFIG_TYPE_UINT},

    {"MMIO_MODE", "auto",
     "How a WQE gets to the device:\n"
     "\n"
     "bf_post     It is pushed to the device's register (BlueFlame), up to\n"
     "            256 bytes: the device need not read it from memory.\n"
     "\n"
     "bf_post_mt  The same for threads that take turns: a push has left a\n"
     "            processor before the next one begins.\n"
     "\n"
     "db          Eight bytes are stored to the register, and the device\n"
     "            reads the WQE.\n"
     "\n"
     "auto        bf_post for a worker of one thread, else bf_post_mt; db\n"
     "            where the platform has no write-combining.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.mmio_mode),
     UCS_CONFIG_TYPE_ENUM(uct_dcx_mmio_mode_names)},

    {"TX_MIN_INLINE", "64",
     "Bytes that am_short and put_short have to carry at least. Up to 172\n"
     "nothing changes; more makes WQEs and send queues longer.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.min_inline),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TX_MAX_POLL", "16",
     "Send completions that one call of progress takes at most; always fewer\n"
     "than a send queue has WQEBBs.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.max_poll), UCS_CONFIG_TYPE_UINT},

    {"TX_CQ_MODERATION", "64",
     "WQEBBs (building blocks of 64 bytes) that an endpoint may post on its\n"
     "own DC initiator before a short or copied operation requests a\n"
     "completion again; no more than a fourth of the send queue. 1: each\n"
     "does, as always with TX_POLICY=dcs and on shared initiators.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.cq_moderation),
     UCS_CONFIG_TYPE_UINT},

    {"RX_QUEUE_LEN", "1024",
     "Receive buffers posted at a time, shared by all peers. A peer that\n"
     "finds none left tries again after RNR_TIMEOUT.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.queue_len), UCS_CONFIG_TYPE_UINT},

    {"RX_INLINE", "64",
     "Bytes of a message that the device may put into the completion itself:\n"
     "0 for none, else 64.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.inl), UCS_CONFIG_TYPE_MEMUNITS},

    {"RX_MAX_POLL", "16",
     "Messages that one call of progress delivers at most; never more than\n"
     "RX_QUEUE_LEN.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.max_poll), UCS_CONFIG_TYPE_UINT},

    {"FC_ENABLE", "y",
     "Flow control of active messages: an endpoint sends no more of them than\n"
     "the receiver has granted, so that a slow receiver does not run out of\n"
     "buffers. All processes of a job need the same value.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.enable), UCS_CONFIG_TYPE_BOOL},

    {"FC_WINDOW", "auto",
     "Active messages that an endpoint of a peer may send before it hears\n"
     "from this process, at most. \"auto\" is FC_INITIAL and a fifth of\n"
     "RX_QUEUE_LEN for one alone, of several a sixteenth of that, or seven\n"
     "times FC_INITIAL if that is more.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.window), UCS_CONFIG_TYPE_ULUNITS},

    {"FC_INITIAL", "auto",
     "... and those that it begins with, and is granted at once whenever it\n"
     "asks: receive buffers that stand ready for each such endpoint. What\n"
     "goes beyond that is lent, from two fifths of RX_QUEUE_LEN for all.\n"
     "\"auto\" is a seventh of FC_WINDOW, or of what several have.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.initial), UCS_CONFIG_TYPE_ULUNITS},

    {"FC_THRESH", "0.25",
     "Part of what it was lent that is left when an endpoint asks for more,\n"
     "0-0.9.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.thresh), UCS_CONFIG_TYPE_DOUBLE},

    {"FC_RESEND_TIMEOUT", "1s",
     "Time after which an endpoint that got no answer looks whether the\n"
     "receiver is alive, or asks again.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.resend_timeout),
     UCS_CONFIG_TYPE_TIME},

    {"TM_ENABLE", "n",
     "Whether the device matches tagged messages with the buffers that are\n"
     "posted for them: \"try\" does so if it can, \"y\" fails if it cannot.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.enable), UCS_CONFIG_TYPE_TERNARY},

    {"TM_LIST_SIZE", "auto",
     "Tagged buffers that the device has at a time, 1-8192. What does not fit\n"
     "is matched by software. \"auto\" is 1023, or as many as the device takes;\n"
     "of another number it has fewer, too, unless TM_ENABLE=y: that fails.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.list_size),
     UCS_CONFIG_TYPE_ULUNITS},

    {"TM_SEG_SIZE", "auto",
     "What SEG_SIZE is when the device matches tags: the greatest tagged\n"
     "message that is not a rendezvous. \"auto\" is the same.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.seg_size),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TM_MIN_RECV", "auto",
     "The shortest buffer that the device is given, 64 at least. A message that\n"
     "it has matched and that is too long for its buffer makes the sender fail,\n"
     "where software would report that it was truncated. \"auto\" is a buffer\n"
     "that every message fits which is not a rendezvous.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.min_recv),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TM_COMMON_KEY", "y",
     "Processes whose device matches tags have one DC access key in common.\n"
     "\"n\" draws one for each, so that a late message of another job reaches\n"
     "none. Not every device fetches a rendezvous then: dcx_selftest tells\n"
     "which (tm_key).",
     ucs_offsetof(uct_dcx_iface_config_t, tm.common_key), UCS_CONFIG_TYPE_BOOL},

    {"STRIDED_MAX_PLAIN", "64",
     "Pieces of memory that an operation with strides, or with many entries,\n"
     "names in its WQE, 1-64; no more than the WQE takes.",
     ucs_offsetof(uct_dcx_iface_config_t, strided.max_plain),
     UCS_CONFIG_TYPE_UINT},

    {"STRIDED_COPY", "auto",
     "Bytes of such an operation, in more pieces than that, up to which they\n"
     "are copied to or from a buffer; no more than SEG_SIZE. \"auto\" is 2k,\n"
     "or as many as the processor copies while the device is given a layout,\n"
     "if dcx_selftest measured more than that; 32k at most.",
     ucs_offsetof(uct_dcx_iface_config_t, strided.copy),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"STRIDED_COPY_PIECE", "auto",
     "Bytes of an average piece up to which such an operation is copied\n"
     "whatever its length, if a buffer takes it. \"auto\" is 64, or as many as\n"
     "the processor copies while the device reads one entry of a layout, if\n"
     "dcx_selftest measured more than that; 1k at most.",
     ucs_offsetof(uct_dcx_iface_config_t, strided.copy_piece),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"MAX_RD_ATOMIC", "16",
     "Gets and atomics that a DC initiator has on the wire at a time, if the\n"
     "device allows as many.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.max_rd_atomic),
     UCS_CONFIG_TYPE_UINT},

    {"DDP_ENABLE", "try",
     "Direct data placement, which takes receive buffers out of order. dcx\n"
     "does not request it: \"y\" fails, \"try\" and \"n\" are the same.",
     ucs_offsetof(uct_dcx_iface_config_t, path.ddp_enable),
     UCS_CONFIG_TYPE_TERNARY},

    /* of the site, see dcx_site.h */
    {"DC_MLX5_", "", NULL, 0,
     UCS_CONFIG_TYPE_TABLE(uct_dcx_site_dc_mlx5_table)},

    {"IB_", "", NULL, 0, UCS_CONFIG_TYPE_TABLE(uct_dcx_site_port_table)},

    {.name = NULL},
};


const char *uct_dcx_config_variable(const char *option)
{
    return uct_dcx_site_variable(uct_dcx_iface_config_table, option);
}


int uct_dcx_config_pkey(const char *str, uint16_t *pkey)
{
    unsigned long value;
    char *end;

    if (!strcasecmp(str, "auto")) {
        *pkey = 0;
        return 1;
    }

    value = strtoul(str, &end, 0);
    *pkey = value;
    return (end != str) && (*end == '\0') && (value >= 1) && (value <= 0x7fff);
}


uint8_t uct_dcx_config_timeout_code(double seconds)
{
    double step  = 4.096e-6 * 2;
    uint8_t code = 1;

    while ((step < seconds) && (code < 31)) {
        step *= 2;
        ++code;
    }
    return code;
}


uint8_t uct_dcx_config_rnr_code(double seconds)
{
    /* in units of 10 us, for codes 1 and up; code 0 is the longest */
    static const uint16_t timers[] = {
        1,    2,    3,    4,    6,     8,     12,    16,    24,    32,   48,
        64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536, 2048,
        3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    };
    double units = seconds * 1e5;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(timers); ++i) {
        /* Allow 0.1 % for decimal fractions. */
        if (units <= timers[i] * 1.001) {
            return i + 1;
        }
    }
    return 0;
}
