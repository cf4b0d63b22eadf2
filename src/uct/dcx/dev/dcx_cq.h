/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A completion queue polled without libmlx5: the ring of CQEs, the consumer
 * index and the record in which the device sees it. Owned by the thread that
 * progresses the interface. Format: struct mlx5_cqe64 of mlx5dv.h; with
 * 128-byte entries that structure is the second half of each. Owner bit and
 * arming: PRM, "completion queues".
 */
#ifndef UCT_DCX_CQ_H
#define UCT_DCX_CQ_H

#include "common/prm.h"
#include "dcx_barrier.h"

#include <endian.h>
#include <ucs/config/types.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>


typedef struct uct_dcx_cq {
    uint8_t         *next;   /* entry 'ci', as cqe64 */
    uint8_t         owner;   /* owner bit that it gets */
    uint32_t        ci;      /* runs freely */
    uint32_t        size;    /* of an entry */
    uint32_t        count;   /* entries, a power of two */
    uint8_t         *cqe64;  /* the first entry's struct mlx5_cqe64 */
    uint8_t         *end;    /* what would be the one behind the last */
    volatile __be32 *dbrec;  /* [0] consumer index, [1] arm */
    void            *uar;
    uint32_t        cqn;
    uint32_t        arm_sn;  /* moves on with each event received */
    unsigned        unacked; /* events to acknowledge before destroying */
    const char       *what;  /* it is there for */
    struct ibv_cq   *cq;
} uct_dcx_cq_t;


/* Parameters of a new queue */
typedef struct uct_dcx_cq_params {
    struct ibv_context      *ctx;
    struct ibv_comp_channel *channel;
    unsigned                length;    /* entries wanted */
    unsigned                cqe_size;  /* 64 or 128 */
    const char              *what;     /* it is there for: "sends" */
    ucs_log_level_t         log_level; /* of errors */
} uct_dcx_cq_params_t;


static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_dcx_cq_entry(const uct_dcx_cq_t *cq, uint32_t index)
{
    return (struct mlx5_cqe64*)(cq->cqe64 +
                                (size_t)(index & (cq->count - 1)) * cq->size);
}


/* The entry as a completion, NULL if the device has not written it. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_dcx_cq_check_owner(void *entry, uint8_t owner)
{
    struct mlx5_cqe64 *cqe = (struct mlx5_cqe64*)entry;
    uint8_t op_own         = *(volatile uint8_t*)&cqe->op_own;

    if ((op_own ^ owner) & MLX5_CQE_OWNER_MASK) {
        return NULL;
    }

    /* nothing of the entry, nor of the data, is read before the owner bit */
    uct_dcx_from_device_barrier();
    return cqe;
}


/* The completion that comes next, NULL if it has not come: this is what most
 * calls of progress consist of. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_dcx_cq_next(const uct_dcx_cq_t *cq)
{
    return uct_dcx_cq_check_owner(cq->next, cq->owner);
}


/* It is taken; the entry stays ours until uct_dcx_cq_update(). 'size' is that
 * of the queue's entries. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_cq_advance(uct_dcx_cq_t *cq, uint32_t size)
{
    cq->ci++;
    cq->next += size;
    if (ucs_unlikely(cq->next == cq->end)) {
        cq->next   = cq->cqe64;
        cq->owner ^= MLX5_CQE_OWNER_MASK;
    }
}


/* Of a send queue: no error */
static UCS_F_ALWAYS_INLINE int uct_dcx_cqe_is_sent(const struct mlx5_cqe64 *cqe)
{
    return !(cqe->op_own & 0xf0); /* MLX5_CQE_REQ is 0 */
}


static UCS_F_ALWAYS_INLINE uint32_t
uct_dcx_cqe_qpn(const struct mlx5_cqe64 *cqe)
{
    return be32toh(cqe->sop_drop_qpn) & 0xffffff;
}


/* Gives the entries before ci back to the device. */
static UCS_F_ALWAYS_INLINE void uct_dcx_cq_update(uct_dcx_cq_t *cq)
{
    /* the entries are read before the device may write them again */
    uct_dcx_from_device_barrier();
    cq->dbrec[0] = htobe32(cq->ci & 0xffffff);
}


/* Creates a queue and takes it over from libmlx5. Its context in events is
 * 'cq'. Errors are logged. */
ucs_status_t
uct_dcx_cq_init(uct_dcx_cq_t *cq, const uct_dcx_cq_params_t *params);

void uct_dcx_cq_cleanup(uct_dcx_cq_t *cq);

/* Asks for one event; with 'solicited' only for messages that ask for it, and
 * for errors. */
void uct_dcx_cq_arm(uct_dcx_cq_t *cq, int solicited);

/* Notes that an event of this queue was read from its channel. */
void uct_dcx_cq_event(uct_dcx_cq_t *cq);

/* Takes the unread completions of a QP that was reset out, and gives their
 * entries back to the device. */
void uct_dcx_cq_remove(uct_dcx_cq_t *cq, uint32_t qpn);

/* The meaning of a completion with error */
typedef struct uct_dcx_syndrome {
    ucs_status_t status;  /* to UCT */
    const char   *reason; /* as the device has it */
    const char   *cause;  /* to the user, and what to look at */
} uct_dcx_syndrome_t;

const uct_dcx_syndrome_t *uct_dcx_cqe_syndrome(const struct mlx5_cqe64 *cqe);

#endif
