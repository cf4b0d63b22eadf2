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
    /* The user sees why an endpoint has failed. */
    {"", "FAILURE=warn", NULL, ucs_offsetof(uct_dcx_iface_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

    {"SEG_SIZE", "8250",
     "Size of a receive buffer in bytes. It limits active messages (header of\n"
     "2 bytes included) and copied puts and gets. UCP sends longer messages\n"
     "in fragments, whose size is rounded down to a multiple of 8. Set the\n"
     "same value in all processes of a job. If values differ, also set\n"
     "UCX_ADDRESS_VERSION=v2: UCP then keeps to the smaller one.",
     ucs_offsetof(uct_dcx_iface_config_t, seg_size), UCS_CONFIG_TYPE_MEMUNITS},

    {"NUM_DCI", "8",
     "Maximum number of DC initiators (DCIs), 1-1024. A DCI is a send queue\n"
     "that serves one endpoint at a time, so this many endpoints can have\n"
     "operations in flight. One is created for each endpoint that sends, up\n"
     "to this number; then the one that was assigned longest ago changes its\n"
     "endpoint. Raise this if a process sends to many peers at the same time.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.num_dci), UCS_CONFIG_TYPE_UINT},

    {"TX_POLICY", "dcs_quota",
     "How an endpoint gets a DCI:\n"
     "\n"
     "dcs        The endpoint takes the DCI that it used last, or the next\n"
     "           idle one if another endpoint has used it since, and keeps it\n"
     "           while operations are outstanding.\n"
     "\n"
     "dcs_quota  Like dcs. If other endpoints wait for a DCI, an endpoint\n"
     "           that has used up its QUOTA stops sending, releases its DCI\n"
     "           when its operations are complete, and joins the end of the\n"
     "           wait queue.\n"
     "\n"
     "rand       The endpoint is assigned a random DCI when it is created,\n"
     "           and shares it with other endpoints. If one peer does not\n"
     "           answer, they wait until its retries are exhausted.\n"
     "\n"
     "hw_dcs     All endpoints share one DCI with NUM_DCI_STREAMS streams,\n"
     "           which the device sends independently. An endpoint is\n"
     "           assigned a stream round-robin when it is created. NUM_DCI is\n"
     "           ignored. Requires a device with DCI streams.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.policy),
     UCS_CONFIG_TYPE_ENUM(uct_dcx_policy_names)},

    {"QUOTA", "32",
     "Number of WQEBBs (units of 64 bytes in a send queue) that an endpoint\n"
     "may post while others wait for a DCI, with TX_POLICY=dcs_quota. A short\n"
     "message takes 1 or 2. Lower values are fairer; higher values keep a\n"
     "send queue busy for longer.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.quota), UCS_CONFIG_TYPE_UINT},

    {"NUM_DCI_STREAMS", "8",
     "Number of streams of the shared DCI with TX_POLICY=hw_dcs, a power of\n"
     "two. A slow or failed peer holds up one stream in the device. Raise\n"
     "this if more peers may be slow at the same time.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.num_streams),
     UCS_CONFIG_TYPE_UINT},

    {"RAND_SEED", "0",
     "Seed of the random choice of DCIs with TX_POLICY=rand. 0 uses a\n"
     "different seed each time.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.rand_seed), UCS_CONFIG_TYPE_UINT},

    {"TX_QUEUE_LEN", "128",
     "Number of operations of the largest size that fit in the send queue of\n"
     "one DCI. Up to four times as many small operations fit.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.queue_len), UCS_CONFIG_TYPE_UINT},

    {"MMIO_MODE", "auto",
     "How a WQE is passed to the device:\n"
     "\n"
     "bf_post     Write it to the BlueFlame register, up to 256 bytes. The\n"
     "            device does not need to read it from memory.\n"
     "\n"
     "bf_post_mt  Like bf_post, for a worker that several threads use one\n"
     "            after another: flushes each write before the next one.\n"
     "\n"
     "db          Write 8 bytes to the doorbell register. The device reads\n"
     "            the WQE from memory.\n"
     "\n"
     "auto        bf_post if the worker has one thread, else bf_post_mt; db\n"
     "            if the platform has no write-combining memory.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.mmio_mode),
     UCS_CONFIG_TYPE_ENUM(uct_dcx_mmio_mode_names)},

    {"TX_MIN_INLINE", "64",
     "Minimum size in bytes that am_short and put_short have to support.\n"
     "Values up to 172 change nothing; higher ones enlarge WQEs and send\n"
     "queues.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.min_inline),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"DM_SIZE", "2k",
     "Size in bytes of a segment of device memory, up to 64k. A copied\n"
     "operation that is too long for a WQE, and fits in a free segment with\n"
     "16 bytes to spare, is copied there: the device does not need to read it\n"
     "from memory. 0 disables this.",
     ucs_offsetof(uct_dcx_iface_config_t, dm.size), UCS_CONFIG_TYPE_MEMUNITS},

    {"DM_COUNT", "1",
     "Number of segments of device memory of an interface, up to 1024. An\n"
     "operation keeps its segment until it completes. If all are in use, or\n"
     "the device has no memory left, operations are copied to a buffer.",
     ucs_offsetof(uct_dcx_iface_config_t, dm.count), UCS_CONFIG_TYPE_UINT},

    {"TX_MAX_POLL", "16",
     "Maximum number of send completions handled in one call of progress. The\n"
     "value used is always smaller than the number of WQEBBs of a send queue.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.max_poll), UCS_CONFIG_TYPE_UINT},

    {"TX_CQ_MODERATION", "64",
     "Number of WQEBBs (units of 64 bytes in a send queue) after which a\n"
     "short or copied operation requests a completion; at most a fourth of\n"
     "the send queue. 1 requests a completion for each operation, as is\n"
     "always done with TX_POLICY=dcs and on shared DCIs.",
     ucs_offsetof(uct_dcx_iface_config_t, tx.cq_moderation),
     UCS_CONFIG_TYPE_UINT},

    {"RX_QUEUE_LEN", "1024",
     "Number of receive buffers of the interface, shared by all peers. A peer\n"
     "that finds no buffer tries again after RNR_TIMEOUT. Raise this if many\n"
     "peers send to one process; lower it to save memory. Half of them are\n"
     "used until many peers send. With tag matching by the device there are\n"
     "half as many, unless TM_SEG_SIZE is set.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.queue_len), UCS_CONFIG_TYPE_UINT},

    {"RX_INLINE", "64",
     "Number of bytes of a message that the device may write into the\n"
     "completion instead of the receive buffer: 0, or 64 for any other value.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.inl), UCS_CONFIG_TYPE_MEMUNITS},

    {"RX_MAX_POLL", "16",
     "Maximum number of messages delivered in one call of progress. The value\n"
     "used is at most RX_QUEUE_LEN.",
     ucs_offsetof(uct_dcx_iface_config_t, rx.max_poll), UCS_CONFIG_TYPE_UINT},

    {"FC_ENABLE", "y",
     "Enable flow control of active messages: an endpoint sends only as many\n"
     "as the receiver has granted it credits for, so that a slow receiver\n"
     "does not run out of buffers. Set the same value in all processes of a\n"
     "job.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.enable), UCS_CONFIG_TYPE_BOOL},

    {"FC_WINDOW", "auto",
     "Maximum number of credits of an endpoint: active messages that it may\n"
     "send before this process grants more. \"auto\" is FC_INITIAL plus a\n"
     "fifth of RX_QUEUE_LEN if one endpoint sends. If several send, each gets\n"
     "up to a sixteenth of RX_QUEUE_LEN, or seven times FC_INITIAL if that is\n"
     "more.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.window), UCS_CONFIG_TYPE_ULUNITS},

    {"FC_INITIAL", "auto",
     "Number of credits of an endpoint at the start, and at least at each\n"
     "request; this many receive buffers are kept for it. Credits beyond that\n"
     "come from a pool of two fifths of RX_QUEUE_LEN, at most three fifths of\n"
     "the buffers, for all endpoints.\n"
     "\"auto\" is a seventh of FC_WINDOW, or about a hundredth of\n"
     "RX_QUEUE_LEN if FC_WINDOW is \"auto\", too.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.initial), UCS_CONFIG_TYPE_ULUNITS},

    {"FC_THRESH", "0.25",
     "Fraction of its granted credits (those beyond FC_INITIAL) that an\n"
     "endpoint has left when it requests more, 0-0.9. Higher values request\n"
     "earlier.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.thresh), UCS_CONFIG_TYPE_DOUBLE},

    {"FC_RESEND_TIMEOUT", "1s",
     "Time after which an endpoint without an answer to its request for\n"
     "credits checks if the receiver is alive, or sends the request again, and\n"
     "a rendezvous whose end is not reported asks its receiver.",
     ucs_offsetof(uct_dcx_iface_config_t, fc.resend_timeout),
     UCS_CONFIG_TYPE_TIME},

    {"TM_ENABLE", "n",
     "Enable tag matching by the device. \"try\" enables it if the device\n"
     "supports it, \"y\" fails if it does not.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.enable), UCS_CONFIG_TYPE_TERNARY},

    {"TM_LIST_SIZE", "auto",
     "Maximum number of receives that are posted to the device, 1-8192; UCP\n"
     "matches further ones. \"auto\" is 255, or the device's limit if that\n"
     "is lower. If another value exceeds the limit, TM_ENABLE=y fails, and\n"
     "TM_ENABLE=try uses the limit.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.list_size),
     UCS_CONFIG_TYPE_ULUNITS},

    {"TM_SEG_SIZE", "auto",
     "Size in bytes of a receive buffer with tag matching by the device. It\n"
     "limits tagged messages that are not a rendezvous (header of 16 bytes\n"
     "included), copied puts and gets, and active messages if it is below\n"
     "SEG_SIZE. \"auto\" is twice SEG_SIZE, with half of RX_QUEUE_LEN\n"
     "buffers.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.seg_size),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TM_MIN_RECV", "auto",
     "Size in bytes of the shortest receive that is posted to the device, 64\n"
     "or more. If the device matches a message that is too long for its\n"
     "receive, the sender fails, while UCP would report a truncated message.\n"
     "\"auto\" posts only receives that any message fits which is not a\n"
     "rendezvous.",
     ucs_offsetof(uct_dcx_iface_config_t, tm.min_recv),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TM_COMMON_KEY", "y",
     "Use the same DC access key in all processes with tag matching by the\n"
     "device. \"n\" uses a random key in each process, so that late messages\n"
     "of another job are rejected. Not every device can fetch a rendezvous\n"
     "then: set it only if dcx_selftest reports \"tm_key own\".",
     ucs_offsetof(uct_dcx_iface_config_t, tm.common_key), UCS_CONFIG_TYPE_BOOL},

    {"STRIDED_MAX_PLAIN", "64",
     "Maximum number of pieces of memory, 1-64, that an operation with\n"
     "strides or many entries names in its WQE; less if the WQE has no room.\n"
     "An operation with more pieces is copied, or uses an mkey with its\n"
     "layout.",
     ucs_offsetof(uct_dcx_iface_config_t, strided.max_plain),
     UCS_CONFIG_TYPE_UINT},

    {"STRIDED_COPY", "auto",
     "Size in bytes up to which an operation with more than STRIDED_MAX_PLAIN\n"
     "pieces is copied through a buffer, at most SEG_SIZE. \"auto\" is 2k, or\n"
     "the bytes that the processor copies in the time of a UMR if\n"
     "dcx_selftest measured more than that; at most 32k.",
     ucs_offsetof(uct_dcx_iface_config_t, strided.copy),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"STRIDED_COPY_PIECE", "auto",
     "Average size in bytes of the pieces up to which such an operation is\n"
     "copied even if it is longer than STRIDED_COPY; at most SEG_SIZE in all.\n"
     "\"auto\" is 64, or the bytes that the processor copies while the device\n"
     "reads one entry of a layout if dcx_selftest measured more than that; at\n"
     "most 1k.",
     ucs_offsetof(uct_dcx_iface_config_t, strided.copy_piece),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"REPORT", "n",
     "Count operations, bytes, waits, registrations and failures. The process\n"
     "prints a table to stderr when it ends; \"dcx_info --live PID\" prints\n"
     "it while the process runs. \"n\" costs only a pointer test in lists.",
     ucs_offsetof(uct_dcx_iface_config_t, report), UCS_CONFIG_TYPE_BOOL},

    {"DDP_ENABLE", "try",
     "Direct data placement, which consumes receive buffers out of order. dcx\n"
     "does not support it: \"y\" fails, \"try\" and \"n\" have no effect.",
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
