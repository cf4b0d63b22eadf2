/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Features that the devices of this process lack, and their limits:
 * SOFTHCA_MODEL, SOFTHCA_LACKS, SOFTHCA_HAS, SOFTHCA_LIMITS, SOFTHCA_MEMLOCK,
 * SOFTHCA_SHARE. Read while attaching (hca_dev.c). A missing feature is neither
 * reported as a capability nor executed.
 */
#ifndef HCA_CAPS_H
#define HCA_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum streams of a DCI, and of these in error: log2 */
#define HCA_MAX_LOG_STREAMS 8u
#define HCA_MAX_LOG_ERRORED 4u

enum hca_lack {
    HCA_LACK_DC,          /* the transport */
    HCA_LACK_DEVX,        /* contexts of DEVX */
    HCA_LACK_SM,          /* a subnet manager: ports stay in INIT */
    HCA_LACK_ACCESS,      /* the right to open /dev/infiniband/uverbsN */
    HCA_LACK_UVERBS,      /* the kernel's module ib_uverbs */
    HCA_LACK_WC,          /* write-combining pages */
    HCA_LACK_ATOMICS,     /* executed by the responder */
    HCA_LACK_DM,          /* device memory */
    HCA_LACK_FREE_CLOCK,  /* timestamps of a free-running clock */
    HCA_LACK_RTS2RST,     /* RESET of a QP in RTS */
    HCA_LACK_LAG_DCT,     /* DC targets on a bond */
    HCA_LACK_TM,          /* tag matching */
    HCA_LACK_TM_ROCE,     /* tag matching on Ethernet */
    HCA_LACK_TM_DC,       /* rendezvous by DC, with tag matching */
    HCA_LACK_TM_INDIRECT, /* tag matching into indirect mkeys */
    HCA_LACK_TM_OWN_KEY,  /* rendezvous by the DC access key of its RAVH */
    HCA_LACK_STRIDES,     /* tag matching with receives in strides */
    HCA_LACK_UMR_ATOMIC,  /* UMR that grants atomics */
    HCA_LACK_UMR_FENCE,   /* a small fence orders WQEs behind a UMR */
    HCA_LACK_REPEAT,      /* repeated blocks in an mkey's layout */
    HCA_LACK_REPEAT_NEST, /* repeated blocks over mkeys that have some */
    HCA_LACK_ODP,         /* on-demand paging */
    HCA_LACK_ODP_ATOMIC,  /* atomics on memory on demand */
    HCA_LACK_DMABUF,      /* regions of dma-bufs */
    HCA_NUM_LACKS
};

enum hca_limit {
    HCA_LIMIT_QP,          /* max_qp */
    HCA_LIMIT_QP_WR,       /* max_qp_wr */
    HCA_LIMIT_CQE,         /* max_cqe */
    HCA_LIMIT_SRQ_WR,      /* max_srq_wr */
    HCA_LIMIT_TAGS,        /* max_num_tags */
    HCA_LIMIT_RD_ATOMIC,   /* reads and atomics of a DCI */
    HCA_LIMIT_INDIRECTION, /* nesting of indirect mkeys */
    HCA_LIMIT_INLINE_KLM,  /* translations inside a UMR WQE */
    HCA_LIMIT_DM,          /* bytes of device memory */
    HCA_NUM_LIMITS
};

struct hca_caps {
    unsigned lacks;                  /* bits 1 << enum hca_lack */
    uint32_t limits[HCA_NUM_LIMITS]; /* 0: the device's own */
    uint8_t log_streams;             /* of a DCI, log2 */
    uint8_t log_errored;             /* of these in error at once, log2 */
    bool is_roce;                    /* the model has Ethernet ports */
    bool memlock;                    /* regions count against RLIMIT_MEMLOCK */
    bool share;                      /* peers map registered memory */
};

extern struct hca_caps hca_caps;

/* Reads the variables. @return 0, or -EINVAL after logging a line that names
 * the variable, its value and the allowed values. */
int hca_caps_init(void);

/* Sets @value by a variable that is y or n, if it is set. @return 0, or -EINVAL
 * after logging a line. */
int hca_caps_bool(const char *name, bool *value);

/* Sets @ns by a variable that is a number of microseconds, if it is set. A
 * wrong value logs an error and leaves @ns as it is. */
void hca_caps_us(const char *name, uint64_t *ns);

/* Removes features that devices of this link layer do not have. */
void hca_caps_set_link(bool is_roce);

static inline bool hca_lacks(enum hca_lack lack)
{
    return (hca_caps.lacks >> lack) & 1;
}

/* Returns true if the device fetches rendezvous that DC targets receive. */
static inline bool hca_has_dc_rndv(void)
{
    return !hca_lacks(HCA_LACK_DC) && !hca_lacks(HCA_LACK_TM) &&
           !hca_lacks(HCA_LACK_TM_DC);
}

/* Returns a limit of the device: @own, or SOFTHCA_LIMITS' if that is less. */
static inline uint32_t hca_limit(enum hca_limit limit, uint32_t own)
{
    uint32_t asked = hca_caps.limits[limit];

    return ((asked != 0) && (asked < own)) ? asked : own;
}

#endif
