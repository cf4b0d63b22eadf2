/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The objects of the NIC as data: memory keys, completion queues, shared
 * receive queues, queue pairs (DCI and DCT included), protection domains and
 * device memory. They lie in the tables of fabric/hca_obj.h.
 *
 * Lock order: qp.sq_lock (requester) -> obj.lock of a QP (responder) ->
 * obj.lock of an SRQ -> obj.lock of a CQ -> obj.lock of a channel. Two QPs
 * that send to each other hold one sq_lock each and meet only below it. The
 * mutex of the fabric is last.
 */
#ifndef HCA_OBJS_H
#define HCA_OBJS_H

#include "softhca/fabric/hca_obj.h"

#include <infiniband/verbs.h>

/* A ring in the arena; its size in entries is a power of two. */
struct hca_ring {
    hca_off_t buf;
    uint32_t log_cnt;
    uint32_t log_stride; /* log2 of the bytes of an entry */
};

/* Counts of PCIe: hca_pcie.h. */
enum hca_pcie_what {
    HCA_PCIE_MMIO,     /* stores to a register of a queue */
    HCA_PCIE_WQE,      /* reads of WQEs */
    HCA_PCIE_WQE_WAIT, /* reads of WQEs that sending has to wait for */
    HCA_PCIE_LIST,     /* reads of translations that WQEs name */
    HCA_PCIE_GATHER,   /* reads of data to send or write */
    HCA_PCIE_RESULT,   /* writes of data read, or of an atomic's result */
    HCA_PCIE_RECV_WQE,
    HCA_PCIE_RECV_DBREC,
    HCA_PCIE_REMOTE,  /* reads of a peer: its RDMA READs and atomics */
    HCA_PCIE_PAYLOAD, /* writes of a peer: messages, RDMA WRITEs, atomics */
    HCA_PCIE_SEND_CQE,
    HCA_PCIE_RECV_CQE,
    HCA_NUM_PCIE
};

struct hca_pcie_count {
    uint64_t times, bytes, lines; /* lines of 64 bytes */
};

struct hca_pcie {
    struct hca_pcie_count counts[HCA_NUM_PCIE];
    bool is_rung;   /* a doorbell's first WQE was not read yet */
    uint16_t known; /* doorbell record of receives, as last read */
    uint64_t line;  /* 1 + line of the last receive WQE */
};

/* XRC domain; shared by the processes that opened it on one inode. */
struct hca_xrcd {
    struct hca_obj obj;
    uint64_t st_dev, st_ino; /* 0, 0: private to its opener */
};

/* A block of numbers below 2^16. No QP has one of them: the upper bits of its
 * number, the life of its slot, are not 0. */
struct hca_qpns {
    struct hca_obj obj;
};

#define HCA_QPNS_LOG_COUNT 5u /* numbers of one object */

/* Most live objects on the fabric */
#define HCA_MAX_QPS     ((1u << 16) - 1)
#define HCA_LOG_MAX_PDS 18u
#define HCA_LOG_MAX_DMS 13u

/* Protection domain: mkeys and queues name it by obj.num. */
struct hca_pd {
    struct hca_obj obj; /* user_handle is its handle in uverbs/ */
};

/* Device memory: its slot is the index of its page. */
struct hca_dm {
    struct hca_obj obj;
};

/* Memory key: its kind says which memory it leads to. */
enum hca_mkey_type {
    HCA_MKEY_MR,      /* [iova, iova + length) at va of the owner */
    HCA_MKEY_NULL,    /* reads zeros, writes vanish */
    HCA_MKEY_MW,      /* window: starts invalid, bound by UMR */
    HCA_MKEY_INDIRECT /* list of entries: ranges of other keys */
};

/* Entry of an indirect key: a range, or one block of each row (`repeat`). */
struct hca_klm {
    uint64_t addr;  /* in the address space of `key` */
    uint64_t start; /* bytes of earlier entries; in a row, if there are any */
    union {
        uint32_t length;
        struct {
            uint16_t bytes;  /* of the block */
            uint16_t stride; /* from it to that of the next row */
        };
    };
    uint32_t key;
};

/* A part of an mkey's address space. */
struct hca_key_range {
    uint32_t key;
    uint64_t addr;
    uint64_t length;
};

#define HCA_MKEY_FEW 2 /* entries that need no memory of their own */

struct hca_mkey {
    struct hca_obj obj; /* obj.num is the 24-bit index */
    uint8_t type;
    uint8_t variant; /* low 8 bits of the key */
    bool is_free;    /* no translation now (LOCAL_INV, new MW) */
    bool implicit_odp;
    bool has_umr;       /* a UMR WQE may give it another layout, or bind
                         * it */
    bool local_inv_ok;  /* LOCAL_INV may invalidate it */
    bool remote_inv_ok; /* SEND with invalidate may do so */
    bool no_local_read; /* it cannot be gathered from */
    uint32_t access;    /* enum ibv_access_flags */
    uint32_t pdn;
    uint32_t qpn;  /* 0xffffff: of any QP (type 2 MW binds one) */
    uint64_t iova; /* its first address in WQEs */
    uint64_t va;   /* address of iova in the owner's memory */
    uint64_t length;
    uint32_t base_key;         /* MW: key of the region it is bound to */
    uint64_t base_addr;        /* MW: its start in that region */
    uint32_t num_klms;         /* INDIRECT: entries */
    uint8_t klm_shift;         /* INDIRECT: log2 of the bytes of an entry; 0:
                               * entries have lengths */
    uint32_t max_klms;         /* room; of a strided layout one for its head */
    uint32_t repeat;           /* rows of a strided layout, 0: it is a list */
    uint32_t row_bytes;        /* of all its entries together */
    struct hca_key_range hull; /* of all entries and rows; length 0: none, as
                               * they are of several mkeys */
    _Atomic(uint32_t) change;  /* counts UMRs, twice each; odd: in one */
    hca_off_t klms;            /* struct hca_klm: in `few`, or the arena */
    hca_off_t faulted;         /* bitmap of hca_odp.h, in the arena, or 0 */
    uint8_t log_faulted;       /* its bits, log2 */
    struct hca_klm few[HCA_MKEY_FEW];
};

struct hca_cq {
    struct hca_obj obj;
    struct hca_ring ring; /* stride 64 or 128 */
    hca_off_t dbrec;      /* [0] consumer index, [1] arm */
    uint32_t pi;          /* producer index, 24 bits */
    uint32_t ci;          /* consumer index, as last read */
    uint32_t chan;        /* completion channel, 0 none */
    uint32_t uar;
    bool overrun : 1;      /* in error: takes no more */
    bool armed : 1;        /* a doorbell asked for an event */
    bool timestamp : 1;    /* CQEs carry the time */
    bool is_padded : 1;    /* all 128 bytes of an entry are written */
    bool armed_se;         /* for a solicited completion only */
    uint32_t solicited_pi; /* index after the last solicited CQE */
    uint32_t arm_word;     /* doorbell record of the last request */
    uint8_t arm_sn;        /* of it */
    uint8_t fired_sn;      /* arm_sn + 1 of the last event, 0 none yet */
    hca_off_t minis;       /* struct hca_minis, 0: no compression */
    uint16_t mod_count, mod_period_us; /* moderation; 0 off */
    uint16_t mod_pending;              /* completions since it was armed */
    bool ignore_overrun;
    uint32_t comp_events; /* events written for this CQ */
    struct hca_pcie pcie;
};

/* Attributes with which an SRQ fetches data from initiators of DC */
struct hca_srq_dc {
    bool is_on, is_set; /* it may fetch; the attributes are set */
    uint8_t mtu, sl, reverse_sl, ack_timeout;
    uint16_t pkey;
    uint64_t key;
};

#define HCA_SRQ_RETURNED 16u

struct hca_srq {
    struct hca_obj obj;
    struct hca_ring ring; /* linked list of WQEs */
    hca_off_t dbrec;      /* producer counter, 16 bits valid */
    uint32_t pdn;
    uint32_t xrcdn; /* XRC only */
    uint32_t cqn;   /* XRC and tag matching only */
    uint32_t uidx;
    hca_off_t tm;         /* struct hca_tm, 0: no tag matching */
    bool has_rndv;        /* it fetches data by rendezvous */
    struct hca_srq_dc dc; /* for requests of DC */
    struct {
        uint32_t number;  /* in a WQE, 0: WQEs are not divided */
        uint32_t next;    /* next one, of the WQE at `head` */
        uint8_t log_size; /* log2 of the bytes of one */
    } strides;
    uint16_t head;     /* next WQE to consume */
    uint16_t consumed; /* WQEs consumed so far, modulo 2^16 */
    uint16_t limit;    /* armed low-water mark, 0 none */
    /* WQEs that were taken and put back: taken first */
    uint16_t returned[HCA_SRQ_RETURNED];
    uint16_t num_returned;
    uint8_t is_xrc;
    bool is_cyclic; /* no list: WQEs are consumed in order */
    bool in_error;
    struct hca_pcie pcie;
};

enum hca_qp_type {
    HCA_QP_RC,
    HCA_QP_UC,
    HCA_QP_UD,
    HCA_QP_XRC_SEND,
    HCA_QP_XRC_RECV,
    HCA_QP_DCI,
    HCA_QP_DCT
};

/* Path to a destination, of a QP or an address vector. */
struct hca_path {
    uint16_t dlid;
    uint8_t sl;
    uint8_t reverse_sl; /* of the answers */
    bool grh;
    uint8_t dgid[16];
    uint8_t dmac[6];
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t tclass;
    uint8_t stat_rate;
    uint8_t src_path_bits;
    uint32_t flow_label;
};

/* The last path that led to a device: hca_path.h. */
struct hca_way {
    struct hca_path path;
    uint16_t to;
    bool is_set;
    bool has_gid; /* its addresses are GIDs */
};

/* Attributes that a change of state gives a QP. In RESET it has none. */
struct hca_qp_attr {
    struct hca_path path;
    uint32_t access; /* enum ibv_access_flags: of a peer */
    uint32_t dest_qpn, qkey;
    uint32_t sq_psn, rq_psn;
    uint16_t pkey_index;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint8_t mig_state;   /* enum ibv_mig_state: has no effect */
    uint8_t log_msg_max; /* longest message to send; constant */
    bool no_atomics;     /* atomic mode 0, despite all rights */
    uint8_t dp_ordering; /* enum hca_dp_ordering (hca_order.h) */
    bool dp_force;       /* it overrides the device's own */
    bool full_handshake; /* DCT: an initiator sends data after an answer */
};

/* Attempts at a WQE that is not completed yet. */
struct hca_tries {
    uint8_t retries;     /* attempts without an answer */
    uint8_t rnr_retries; /* attempts answered by RNR */
    bool executed;       /* the peer executed it, its answer was lost:
                          * of DC, or for a rendezvous */
    bool was_late;       /* a fault has held the next attempt up */
    bool is_paged;       /* it has waited for local pages (hca_odp.h) */
    uint64_t fault_ns;   /* time of the first RNR because of a page fault; 0:
                          * there was none */
    union {
        uint64_t atomic;  /* of an atomic: the lost answer */
        uint64_t arrived; /* of a SEND: bytes that strides hold */
    };
};

/* Requester half, under sq_lock. Only the owner's process runs it; any process
 * that puts the QP in error may flush it. */
struct hca_req {
    uint16_t ci; /* next basic block to execute; if some are fetched,
                        * the next one to complete */
    struct hca_tries tries;
    bool attached;     /* hca_sq_of() is not NULL in the owner's process: for
                        * other processes */
    bool waiting;      /* for a timer; nothing is executed until then */
    uint8_t err_looks; /* looks at the RQ since the QP is in error */
    bool ticking;      /* the timer will run the queue (hca_late.h) */
    bool due;          /* the timer runs it now */
    bool behind_umr;   /* the next WQE was rung before the UMR in front of it
                        * had completed */
    uint8_t reads;     /* RDMA READs, atomics maybe under way */
    uint16_t fetched;  /* basic blocks from ci on that are fetched and have
                        * not completed (hca_stream.h) */
    uint32_t psn;
    uint32_t target;    /* number of the last one, 0: none yet */
    struct hca_way way; /* to the last target */
};

/* Responder half, under obj.lock. */
struct hca_resp {
    uint16_t ci;          /* next RQ WQE */
    uint32_t psn;         /* expected next */
    uint32_t msn;         /* messages executed since RTR */
    uint64_t last_atomic; /* result of the last one, for its repetition */
    struct hca_way way;   /* back to dest_qpn */
};

/* Counts of a port: hca_traffic.h. */
enum hca_traffic_what {
    HCA_OUT_PACKETS,
    HCA_OUT_BYTES, /* of payload, padded */
    HCA_IN_PACKETS,
    HCA_IN_BYTES,
    HCA_IN_SENDS, /* messages that arrived, in the order of enum hca_msg_op */
    HCA_IN_WRITES,
    HCA_IN_READS,
    HCA_IN_ATOMICS,
    HCA_NUM_TRAFFIC
};

struct hca_traffic {
    uint64_t counts[HCA_NUM_TRAFFIC];
};

struct hca_qp {
    struct hca_obj obj;
    struct hca_mutex sq_lock;
    uint8_t type;           /* enum hca_qp_type */
    _Atomic(uint8_t) state; /* enum ibv_qp_state; changed under both locks;
                             * to ERR under obj.lock */
    bool wq_sig;            /* WQEs carry a signature */
    bool has_tm;            /* its SRQ matches what it receives */
    bool has_rndv;          /* its SRQ may read through it */
    uint8_t cs_req, cs_res; /* scatter to CQE: bytes, 0 off */
    bool has_streams;       /* DCI */
    uint8_t log_streams;    /* log2 of the streams that may wait at once */
    uint8_t log_errored;    /* log2 of the streams in error that fail the DCI */
    uint32_t pdn, scqn, rcqn, srqn, xrcdn;
    uint32_t uar;           /* page its doorbell is on */
    uint32_t uidx;          /* user index reported in CQEs */
    struct hca_ring sq, rq; /* sq: 64-byte basic blocks */
    hca_off_t dbrec;        /* [0] RQ, [1] SQ producer, 16 bits valid */
    uint64_t dc_key;        /* DCT */
    uint16_t pkey;          /* P_Key of attr.pkey_index */
    struct hca_qp_attr attr;
    uint32_t num_resets; /* work begun before the last one is void */
    struct hca_req req;
    struct hca_traffic asked; /* as requester, under sq_lock */
    struct hca_resp resp;
    struct hca_traffic answered; /* as responder, under obj.lock */
    struct hca_pcie pcie;
};

/* Returns the first number of the block. */
uint32_t hca_qpns_first(const struct hca_qpns *qpns);

/* Returns the slot of @dm in the fabric's table of device memories. */
uint32_t hca_dm_index(const struct hca_dm *dm);


#endif
