/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The kernel's half of the device: emulates the answers of ib_uverbs and
 * mlx5_ib to the ioctls of libibverbs and libmlx5. Errors are -errno, those of
 * the kernel.
 *
 * A method (rdma/ib_user_ioctl_cmds.h) is a row: its attributes are data, its
 * handler gets a request whose attributes are already checked against them.
 * The old write commands arrive inside one ioctl (INVOKE_WRITE) and have rows
 * of their own. There is one file per kind of object; each exports its rows.
 *
 * A context belongs to one opened device file. Its mutex is held while a
 * handler runs and guards everything a context owns.
 *
 * uverbs/ is called by dispatch/, which finds the row of a request, and by
 * devx/, whose objects are made of the same parts. It knows neither descriptors
 * (except those of channels) nor the device's own commands. A header for each
 * kind of object declares the parts that other files use.
 */
#ifndef UVERBS_H
#define UVERBS_H

#include "softhca/obj/hca_objs.h"

#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

/* --- limits that the device reports and checks --------------------------- */
#define UVERBS_MAX_MR       ((1u << 20) - 1) /* size of the mkey table */
#define UVERBS_MAX_CQ       ((1u << 16) - 1)
#define UVERBS_MAX_SRQ      ((1u << 16) - 1)
#define UVERBS_MAX_PD       (1u << HCA_LOG_MAX_PDS)
#define UVERBS_MAX_AH       0x7fffffffu
#define UVERBS_MAX_WR       (1u << 15) /* WQEs of 64 bytes in a queue */
#define UVERBS_MAX_CQE      (1u << 22)
#define UVERBS_MAX_SQ_DESC  1024u /* bytes of one WQE */
#define UVERBS_MAX_RQ_DESC  512u
#define UVERBS_MAX_SGE      30u
#define UVERBS_MAX_DM_SIZE  (128u << 10) /* of one piece, and of all */
#define UVERBS_DM_LOG_MIN   6u      /* a piece has a multiple of 2^6 bytes */
#define UVERBS_DM_LOG_ALIGN 12u     /* log2 of every piece's alignment */
#define UVERBS_MAX_UAR      0xffffu /* CREATE_CQ has 16 bits for it */
#define UVERBS_NUM_VECTORS  1u
#define UVERBS_CLOCK_KHZ    1000000u /* CQE timestamps are nanoseconds */
#define UVERBS_CLOCK_MASK   (UINT64_MAX >> 1)
#define UVERBS_PART_ID      4123u /* ConnectX-6 */
#define UVERBS_FW_VER       ((20ull << 32) | (35ull << 16) | 1012)
#define UVERBS_UIDX_MASK    0xffffffu

/* --- contexts and their objects ------------------------------------------ */
struct uverbs_obj {
    uint16_t type; /* UVERBS_OBJECT_*, MLX5_IB_OBJECT_* */
    uint32_t handle;
    unsigned users; /* objects of the context that need this one */
    struct uverbs_ctx *ctx;
};

/* Events reported for an object in its life; its destroy command returns
 * them, and libibverbs waits until the program has acknowledged as many. */
struct uverbs_events {
    uint32_t comp, async;
};

struct uverbs_type {
    uint16_t id;
    const char *name;
    /* Undoes the object and drops its references; the caller then frees its
     * memory and handle. @param events filled in if not NULL.
     * @return 0; -ETIMEDOUT (hca_obj_hold_last()): the object stays. */
    int (*release)(struct uverbs_obj *obj, struct uverbs_events *events);
    bool is_closed; /* released with its descriptor, not by command */
};

struct uverbs_event;
struct uverbs_uar;

struct uverbs_ctx {
    pthread_mutex_t lock;
    unsigned dev;
    pid_t pid;    /* of the opener */
    dev_t st_dev; /* of its file (uverbs_mmap.h) */
    ino_t st_ino;
    unsigned refs;              /* descriptors and running ioctls */
    bool ready;                 /* GET_CONTEXT was answered */
    struct hca_mkey *null_mkey; /* reads zeros, discards writes */
    unsigned num_windows;
    unsigned unmapped;           /* cookies whose mapping is not known */
    struct uverbs_event *events; /* channels, by descriptor */
    struct uverbs_uar *uars;
    struct uverbs_obj **objs; /* by handle; free ones are linked */
    uint32_t num_objs;
    uint32_t free_obj;
    /* all types, in the order in which their objects are released */
    const struct uverbs_type *const *types;
    unsigned num_types;
};

/* Adds an object of @size bytes, zeroed except for its header (struct
 * uverbs_obj, its first member). @objp: address of a pointer to it.
 * @return 0, -ENOMEM. */
int uverbs_obj_new(struct uverbs_ctx *ctx, uint16_t type, size_t size,
                   void *objp);

/* Frees the handle and the memory of an object, which is not released. */
void uverbs_obj_delete(struct uverbs_obj *obj);

#define UVERBS_ANY_TYPE UINT16_MAX

/* @return the object; NULL with *err = -ENOENT or -EINVAL (a negative handle,
 * or another type than @type). */
void *uverbs_obj_find(struct uverbs_ctx *ctx, uint16_t type, uint64_t handle,
                      int *err);

/* Finds the object of a type for which @is returns true, given @number.
 * @return NULL if there is none. */
void *uverbs_obj_search(struct uverbs_ctx *ctx, uint16_t type,
                        bool (*is)(const struct uverbs_obj *obj,
                                   uint32_t number),
                        uint32_t number);

/* Destroys an object. @events, if not NULL, is filled in. @return 0; -EBUSY if
 * another object needs it; -ETIMEDOUT if a stopped process has it locked. */
int uverbs_obj_destroy(struct uverbs_obj *obj, struct uverbs_events *events);

/* Releases all objects, in the order of ctx->types. */
void uverbs_obj_destroy_all(struct uverbs_ctx *ctx);

/* Undoes GET_CONTEXT. */
void uverbs_context_cleanup(struct uverbs_ctx *ctx);

/* The type of each file. */
extern const struct uverbs_type uverbs_qp_type, uverbs_srq_type, uverbs_cq_type,
    uverbs_ah_type, uverbs_mw_type, uverbs_mr_type, uverbs_dm_type,
    uverbs_xrcd_type, uverbs_pd_type, uverbs_uar_type, uverbs_event_type,
    uverbs_async_type;

static inline void uverbs_ref(struct uverbs_obj *obj)
{
    if (obj != NULL) {
        obj->users++;
    }
}

static inline void uverbs_unref(struct uverbs_obj *obj)
{
    if (obj != NULL) {
        obj->users--;
    }
}

/* References of members that may be NULL. */
#define uverbs_hold(_ptr) uverbs_ref((_ptr) ? &(_ptr)->obj : NULL)
#define uverbs_drop(_ptr) uverbs_unref((_ptr) ? &(_ptr)->obj : NULL)

/* --- requests ------------------------------------------------------------ */
enum uverbs_attr_kind {
    UVERBS_IN,  /* bytes from the program, inline up to 8 */
    UVERBS_OUT, /* bytes to the program */
    UVERBS_IDR, /* handle of an object */
    UVERBS_FD,  /* descriptor of an event channel */
    UVERBS_NEW, /* handle of the object that the method makes */
};

enum {
    UVERBS_MANDATORY = 1, /* a request without it is refused */
    UVERBS_TRAILING  = 2  /* may be longer if the rest is zero */
};

struct uverbs_attr_spec {
    uint16_t id;
    uint8_t kind;
    uint8_t flags;
    uint16_t min, max; /* bytes */
    uint16_t type;     /* UVERBS_IDR, UVERBS_FD: of the object */
};

#define UVERBS_MAX_SPECS 18
#define UVERBS_MAX_ATTRS \
    ((4096 - sizeof(struct ib_uverbs_ioctl_hdr)) / \
     sizeof(struct ib_uverbs_attr))

struct uverbs_req;

struct uverbs_method {
    uint16_t object, id;
    bool uhw;     /* takes the driver's own data */
    bool is_end;  /* destroys an object: possible when the device has failed */
    bool may_end; /* its handler says so for each command that it carries */
    const char *name;
    const struct uverbs_attr_spec *attrs;
    unsigned num_attrs;
    int (*handler)(struct uverbs_req *req);
};

/* Initializer of the two members of a method that name its attributes. */
#define UVERBS_ATTRS(_table) \
    .attrs = _table, .num_attrs = sizeof(_table) / sizeof(_table[0])

/* A write command: IB_USER_VERBS_CMD_*, with IB_USER_VERBS_CMD_FLAG_EXTENDED
 * for IB_USER_VERBS_EX_CMD_*. Sizes are the least it is called with. */
struct uverbs_write {
    uint32_t cmd;
    const char *name;
    uint16_t req_size, resp_size;
    int (*handler)(struct uverbs_req *req);
};

#define UVERBS_EX(_cmd) (IB_USER_VERBS_CMD_FLAG_EXTENDED | (_cmd))

struct uverbs_req {
    struct uverbs_ctx *ctx;
    const struct uverbs_method *method;
    struct ib_uverbs_attr *user_attrs;
    unsigned num_attrs;
    struct uverbs_slot {
        struct ib_uverbs_attr *attr; /* NULL: not given */
        struct uverbs_obj *obj;
    } slots[UVERBS_MAX_SPECS]; /* of method->attrs; last two: UHW_IN, _OUT */
    struct ib_uverbs_attr attrs[UVERBS_MAX_ATTRS];
};

/* Reads the attributes, UVERBS_MAX_ATTRS at most, from req->user_attrs, checks
 * them against req->method and finds their objects. @return 0 or -errno. */
int uverbs_req_parse(struct uverbs_req *req,
                     const struct ib_uverbs_ioctl_hdr *hdr);

/* Return true if the program gave the attribute, and its bytes (0 if not). */
bool uverbs_has(const struct uverbs_req *req, uint16_t id);
size_t uverbs_len(const struct uverbs_req *req, uint16_t id);

/* Copies an attribute in: the program may give fewer bytes (the rest reads as
 * zero) or more (-EOPNOTSUPP unless these are zero). A missing attribute reads
 * as zero.
 * @return 0, -EFAULT, -EOPNOTSUPP. */
int uverbs_get(struct uverbs_req *req, uint16_t id, void *dst, size_t size);

/* Returns an attribute of 8 bytes or less, which the request holds inline; 0 if
 * it was not given. */
uint64_t uverbs_get_const(const struct uverbs_req *req, uint16_t id);

/* Copies an answer out as far as there is room, and zeroes the rest of it.
 * Does nothing for an attribute that the program did not give.
 * @return 0, -EFAULT. */
int uverbs_put(struct uverbs_req *req, uint16_t id, const void *src,
               size_t size);

/* Answers with the handle (or the descriptor) of a new object, in a mandatory
 * attribute. @return 0, -EFAULT. */
int uverbs_put_handle(struct uverbs_req *req, uint16_t id, uint64_t value);

/* Returns the checked object of an attribute; NULL if it was not given. */
void *uverbs_get_obj(const struct uverbs_req *req, uint16_t id);

/* Reads the program's memory. @return 0, -EFAULT. */
int uverbs_copy_in(void *dst, uint64_t src, size_t size);

/* Copy the parts of a write command. */
#define uverbs_core_in(_req, _dst) \
    uverbs_get(_req, UVERBS_ATTR_CORE_IN, _dst, sizeof(*(_dst)))
#define uverbs_core_out(_req, _src) \
    uverbs_put(_req, UVERBS_ATTR_CORE_OUT, _src, sizeof(*(_src)))
#define uverbs_uhw_in(_req, _dst) \
    uverbs_get(_req, UVERBS_ATTR_UHW_IN, _dst, sizeof(*(_dst)))
#define uverbs_uhw_out(_req, _src) \
    uverbs_put(_req, UVERBS_ATTR_UHW_OUT, _src, sizeof(*(_src)))

/* Handler of every method whose one attribute is the object to destroy. */
int uverbs_destroy(struct uverbs_req *req);

/* Handler of every method whose attributes are the object to destroy and a
 * response with only the number of its async events (QP, SRQ). */
int uverbs_destroy_counted(struct uverbs_req *req);

/* Handler of INVOKE_WRITE. */
int uverbs_write(struct uverbs_req *req);

/* Returns the name of the write command in a request, for the log. */
const char *uverbs_write_name(const struct uverbs_req *req);

/* Rows of each file, ending with one without a handler. */
extern const struct uverbs_method uverbs_context_methods[],
    uverbs_port_methods[], uverbs_pd_methods[], uverbs_mr_methods[],
    uverbs_odp_methods[], uverbs_mw_methods[], uverbs_dm_methods[],
    uverbs_cq_methods[], uverbs_srq_methods[], uverbs_xrcd_methods[],
    uverbs_ah_methods[], uverbs_qp_methods[], uverbs_event_methods[],
    uverbs_uar_methods[], uverbs_dmabuf_methods[];
extern const struct uverbs_write uverbs_device_writes[], uverbs_pd_writes[],
    uverbs_mr_writes[], uverbs_mw_writes[], uverbs_cq_writes[],
    uverbs_srq_writes[], uverbs_xrcd_writes[], uverbs_ah_writes[],
    uverbs_qp_writes[], uverbs_event_writes[];

#endif
