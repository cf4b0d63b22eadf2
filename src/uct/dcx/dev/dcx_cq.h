/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A completion queue that is polled without libmlx5: the ring of CQEs, the
 * consumer index, and the record in which the device reads it. Used by one
 * thread at a time. Format: struct mlx5_cqe64 of mlx5dv.h; with 128-byte
 * entries it is the second half of each entry. Owner bit and arming: PRM,
 * "completion queues".
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
    uint8_t *next;          /* entry @ci, as cqe64 */
    uint8_t owner;          /* owner bit of @next once it is written */
    uint32_t ci;            /* consumer index; runs freely */
    uint32_t size;          /* bytes of an entry: 64 or 128 */
    uint32_t count;         /* entries, a power of two */
    uint8_t *cqe64;         /* the first entry's struct mlx5_cqe64 */
    uint8_t *end;           /* end of the ring: one past the last cqe64 */
    volatile __be32 *dbrec; /* [0] consumer index, [1] arm */
    void *uar;
    uint32_t cqn;
    uint32_t arm_sn;  /* sequence number, incremented by each event */
    unsigned unacked; /* events to acknowledge before destroying */
    int has_failed;   /* set by the thread of events, dcx_async.c */
    const char *what; /* purpose, for messages */
    struct ibv_cq *cq;
} uct_dcx_cq_t;


/* Parameters of a new queue */
typedef struct uct_dcx_cq_params {
    struct ibv_context *ctx;
    struct ibv_comp_channel *channel; /* NULL: no events */
    unsigned length;                  /* minimum number of entries */
    unsigned cqe_size;                /* 64 or 128 */
    const char *what;                 /* purpose: "sends"; not copied */
    ucs_log_level_t log_level;        /* level of a failure to create it */
} uct_dcx_cq_params_t;


static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_dcx_cq_entry(const uct_dcx_cq_t *cq, uint32_t index)
{
    return (struct mlx5_cqe64 *)(cq->cqe64 +
                                 (size_t)(index & (cq->count - 1)) * cq->size);
}


/* Returns the entry as a completion, or NULL if the device has not written
 * it. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_dcx_cq_check_owner(void *entry, uint8_t owner)
{
    struct mlx5_cqe64 *cqe = (struct mlx5_cqe64 *)entry;
    uint8_t op_own         = *(volatile uint8_t *)&cqe->op_own;

    if ((op_own ^ owner) & MLX5_CQE_OWNER_MASK) {
        return NULL;
    }

    /* Read nothing of the entry, nor of the data, before the owner bit. */
    uct_dcx_from_device_barrier();
    return cqe;
}


/* Returns the next completion, or NULL if there is none. */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_dcx_cq_next(const uct_dcx_cq_t *cq)
{
    return uct_dcx_cq_check_owner(cq->next, cq->owner);
}


/* Takes the completion. The device cannot reuse its entry before
 * uct_dcx_cq_update(). @size is the bytes of an entry. */
static UCS_F_ALWAYS_INLINE void uct_dcx_cq_advance(uct_dcx_cq_t *cq,
                                                   uint32_t size)
{
    cq->ci++;
    cq->next += size;
    if (ucs_unlikely(cq->next == cq->end)) {
        cq->next = cq->cqe64;
        cq->owner ^= MLX5_CQE_OWNER_MASK;
    }
}


/* Returns non-zero for a send completion without error. */
static UCS_F_ALWAYS_INLINE int uct_dcx_cqe_is_sent(const struct mlx5_cqe64 *cqe)
{
    return !(cqe->op_own & 0xf0); /* MLX5_CQE_REQ is 0 */
}


static UCS_F_ALWAYS_INLINE uint32_t
uct_dcx_cqe_qpn(const struct mlx5_cqe64 *cqe)
{
    return be32toh(cqe->sop_drop_qpn) & 0xffffff;
}


/* Gives the entries before @ci back to the device. */
static UCS_F_ALWAYS_INLINE void uct_dcx_cq_update(uct_dcx_cq_t *cq)
{
    /* Read the entries before the device may write them again. */
    uct_dcx_from_device_barrier();
    cq->dbrec[0] = htobe32(cq->ci & 0xffffff);
}


/* Creates a queue and takes it over from libmlx5. Events have @cq as their
 * context, so @cq must not move. Logs errors. */
ucs_status_t uct_dcx_cq_init(uct_dcx_cq_t *cq,
                             const uct_dcx_cq_params_t *params);

void uct_dcx_cq_cleanup(uct_dcx_cq_t *cq);

/* Requests one event; with @solicited only for solicited messages, and for
 * errors. */
void uct_dcx_cq_arm(uct_dcx_cq_t *cq, int solicited);

/* Records that an event of this queue was read from its channel. */
void uct_dcx_cq_event(uct_dcx_cq_t *cq);

/* Removes the unread completions of a QP that was reset or destroyed, and gives
 * their entries back to the device. */
void uct_dcx_cq_remove(uct_dcx_cq_t *cq, uint32_t qpn);

/* The meaning of an error completion */
typedef struct uct_dcx_syndrome {
    ucs_status_t status; /* for UCT */
    const char *reason;  /* the device's term */
    const char *cause;   /* for the user, with a hint */
} uct_dcx_syndrome_t;

/* Returns the meaning of @cqe, also of an unknown syndrome; never NULL. */
const uct_dcx_syndrome_t *uct_dcx_cqe_syndrome(const struct mlx5_cqe64 *cqe);

#endif
