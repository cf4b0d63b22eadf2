/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DEVX: commands of the device's own interface, passed on as they are (PRM,
 * chapter "Command interface"). A command is a row of a table by its opcode,
 * its fields are rows of a table, too; it creates objects of the device like
 * those of verbs. Its answer is a status in the out mailbox, with a syndrome
 * that locates the reason in the in mailbox.
 *
 * Opcodes, layouts and statuses: mlx5_ifc.h. The kernel's work before and after
 * a command: its drivers/infiniband/hw/mlx5/devx.c. The mutex of the context is
 * held.
 *
 * devx/ is called by dispatch/, by its rows of methods and types. It uses the
 * objects of uverbs/, which knows nothing of devx/.
 */
#ifndef DEVX_H
#define DEVX_H

#include "common/prm_cmd.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/uverbs/uverbs.h"


/* --- fields -------------------------------------------------------------- */

/* Place of a field: byte offset of its 32-bit word (64-bit: of the first of
 * two), highest and lowest bit in it. */
#define DEVX_BITS(_offset, _high, _low) \
    (((uint32_t)(_offset) << 16) | ((_high) << 8) | (_low))
#define DEVX_WORD(_offset)  DEVX_BITS(_offset, 31, 0)
#define DEVX_QWORD(_offset) DEVX_BITS(_offset, 63, 0)

/* The place of a field of common/prm_cmd.h: part of a word, a word, half of
 * one, two. */
#define DEVX_FIELD(_struct, _member, _mask) \
    DEVX_BITS(offsetof(struct _struct, _member), 31 - __builtin_clz(_mask), \
              __builtin_ctz(_mask))
#define DEVX_FIELD32(_struct, _member) \
    DEVX_WORD(offsetof(struct _struct, _member))
#define DEVX_FIELD64(_struct, _member) \
    DEVX_QWORD(offsetof(struct _struct, _member))

uint64_t devx_get(const void *base, uint32_t bits);
void devx_set(void *base, uint32_t bits, uint64_t value);

/* A field that a command understands; bits without a row must be 0. */
struct devx_field {
    const char *name; /* NULL: end of the table */
    uint32_t bits;
    uint64_t max; /* the largest value */
};

#define DEVX_ANY    UINT64_MAX
#define DEVX_IF_OOO (DEVX_ANY - 1) /* 1, if the device may lose order */

/* --- commands ------------------------------------------------------------ */
enum devx_status {
    DEVX_OK            = 0x00,
    DEVX_BAD_OP        = 0x02,
    DEVX_BAD_PARAM     = 0x03,
    DEVX_BAD_RES       = 0x05, /* a number of no object of the caller */
    DEVX_RES_BUSY      = 0x06,
    DEVX_BAD_RES_STATE = 0x09,
    DEVX_NO_RES        = 0x0f,
    DEVX_BAD_QP_STATE  = 0x10,
    DEVX_BAD_INP_LEN   = 0x50,
    DEVX_BAD_OUTP_LEN  = 0x51
};

/* The method of the kernel that may carry a command. */
enum devx_class { DEVX_GENERAL, DEVX_CREATE, DEVX_MODIFY, DEVX_QUERY };

struct devx_obj;
struct devx_call;

struct devx_cmd {
    uint16_t opcode;
    uint8_t class;              /* enum devx_class */
    const char *name;           /* NULL: end of the table */
    uint16_t in_size, out_size; /* least sizes */
    bool has_list;              /* a list follows in_size */
    /* modify, query: command that made the object, place of its number */
    uint16_t creator;
    uint32_t number;
    enum devx_status (*run)(struct devx_call *call);
};

/* A command under execution. Both mailboxes are copies. */
struct devx_call {
    const struct devx_cmd *cmd;
    struct uverbs_ctx *ctx;
    const uint8_t *in;
    uint8_t *out;
    size_t in_len, out_len;
    uint32_t syndrome;
    struct devx_obj *obj; /* create: the new object */
    uint32_t number;      /* modify, query: of the device's object */
};

/* Header of the in mailbox: bits 31..16 of word 0 are the opcode, 15..0 the
 * uid, which the kernel itself writes; 15..0 of word 1 the modifier. Of the out
 * mailbox: status, then syndrome. */
#define DEVX_IN_OPCODE    DEVX_BITS(0x00, 31, 16)
#define DEVX_IN_UID       DEVX_BITS(0x00, 15, 0)
#define DEVX_IN_OP_MOD    DEVX_BITS(0x04, 15, 0)
#define DEVX_OUT_STATUS   DEVX_BITS(0x00, 31, 24)
#define DEVX_OUT_SYNDROME DEVX_WORD(0x04)
#define DEVX_OUT_NUMBER   DEVX_BITS(0x08, 23, 0) /* of the new object */

/* Rows of every command's header, op_mod being 0. */
#define DEVX_OP_CREATE_CQ  0x400
#define DEVX_OP_CREATE_QP  0x500
#define DEVX_OP_CREATE_DCT 0x710
#define DEVX_OP_CREATE_XRQ 0x717
#define DEVX_OP_CREATE_RMP 0x90c

/* clang-format off */
#define DEVX_HEADER_FIELDS \
    {"opcode", DEVX_IN_OPCODE, DEVX_ANY}, {"uid", DEVX_IN_UID, DEVX_ANY}
/* clang-format on */

/* Checks @size bytes of the in mailbox from @base on against their table.
 * @return DEVX_OK, or DEVX_BAD_PARAM after a line that names the field. */
enum devx_status devx_check(struct devx_call *call, size_t base, size_t size,
                            const struct devx_field *fields);

/* Checks that all behind the layout, @size bytes long, is zero.
 * @return DEVX_OK or DEVX_BAD_INP_LEN, logged. */
enum devx_status devx_check_rest(struct devx_call *call, size_t size);

/* Refuses a command: one line, and the syndrome. @param offset of the word. */
enum devx_status devx_refuse(struct devx_call *call, enum devx_status status,
                             size_t offset, const char *what, uint64_t got);

/* Refuses a command on an object that a stopped process holds. */
enum devx_status devx_held_up(struct devx_call *call);

/* Rows of each file. */
extern const struct devx_cmd devx_cap_cmds[], devx_mkey_cmds[], devx_cq_cmds[],
    devx_rmp_cmds[], devx_xrq_cmds[], devx_dct_cmds[], devx_qpn_cmds[];

/* A type of general objects (bit of the capability general_obj_types) */
#define DEVX_GENERAL_RESERVED_QPN 0x2c

/* --- objects ------------------------------------------------------------- */
#define DEVX_MAX_USES 8

struct devx_obj {
    struct uverbs_obj obj;
    const struct devx_cmd *cmd; /* its creator */
    uint32_t number;            /* number of the device's object */
    void *hw;                   /* struct hca_* */
    /* Destroys the device's object. */
    void (*release)(struct devx_obj *obj);
    struct uverbs_obj *uses[DEVX_MAX_USES]; /* held while it lives */
};

/* The type and the methods of each file that has some. */
extern const struct uverbs_type devx_obj_type, devx_umem_type, devx_event_type;
extern const struct uverbs_method devx_methods[], devx_umem_methods[],
    devx_event_methods[];

/* Makes call->obj; the caller fills in number, hw and release at the end, when
 * nothing can fail any more. @return DEVX_OK, DEVX_NO_RES. */
enum devx_status devx_obj_new(struct devx_call *call);

/* Undoes devx_obj_new() after a failure. */
void devx_obj_undo(struct devx_call *call);

/* Keep another object while this one lives; devx_obj_use(): while call->obj
 * does. */
void devx_obj_hold(struct devx_obj *obj, struct uverbs_obj *used);

static inline void devx_obj_use(struct devx_call *call, struct uverbs_obj *used)
{
    devx_obj_hold(call->obj, used);
}

/* Finds the protection domain of a number in the mailbox.
 * @return NULL if the context has none. */
struct uverbs_pd *devx_find_pd(const struct devx_call *call, uint32_t pdn);

/* Find the completion queue, and the shared receive queue, of verbs or of DEVX.
 * @return NULL if the context has none. */
struct uverbs_obj *devx_find_cq(const struct devx_call *call, uint32_t cqn);
struct uverbs_obj *devx_find_srq(const struct devx_call *call, uint32_t srqn);

/* Returns true if the port is a bond of DEVX_LAG_PORTS (devx_cap.c): a queue
 * pair may then choose one of them, which makes no difference here. */
#define DEVX_LAG_PORTS 2
bool devx_is_bond(const struct devx_call *call);

/* Entries of an indirect mkey: the limit of klm_octowords of a UMR WQE (16
 * bits). A command has room for fewer: its mailbox is an attribute of an ioctl,
 * at most 65535 bytes (struct ib_uverbs_attr). */
#define DEVX_LOG_MAX_KLMS 16

/* --- umems --------------------------------------------------------------- */

/* Part of a umem that an object is made of. */
struct devx_umem_use {
    uint32_t id;
    uint64_t offset;
    size_t size;
    size_t field;  /* of the mailbox, for refusals */
    hca_off_t off; /* out: its offset in the arena */
};

/* Finds the memory of a queue, in whole blocks of 64 bytes, and that of its
 * doorbell record, whose size is known, and keeps both for call->obj.
 * @return DEVX_OK, or a refusal. */
enum devx_status devx_find_ring(struct devx_call *call,
                                struct devx_umem_use *ring,
                                struct devx_umem_use *dbrec);

#endif
