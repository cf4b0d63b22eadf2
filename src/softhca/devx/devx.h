/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DEVX: executes commands of the device's own interface, which the kernel
 * passes on as they are (PRM, chapter "Command interface"). Tables have a row
 * for each opcode, and for each field of a mailbox. Commands create the same
 * objects of the device as verbs. The out mailbox gets a status and, as
 * syndrome, the offset of the refused word in the in mailbox.
 *
 * Opcodes, layouts and statuses: mlx5_ifc.h. The kernel's work before and after
 * a command: its drivers/infiniband/hw/mlx5/devx.c. The mutex of the context is
 * held.
 *
 * dispatch/ calls devx/ through its tables of methods and types. devx/ uses the
 * objects of uverbs/, which knows nothing of devx/.
 */
#ifndef DEVX_H
#define DEVX_H

#include "common/prm_cmd.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/uverbs/uverbs.h"


/* --- fields -------------------------------------------------------------- */

/* Place of a field: byte offset of its 32-bit word (64-bit: of the first of
 * two), highest and lowest bit in it. Bit 0 is the least significant. */
#define DEVX_BITS(_offset, _high, _low) \
    (((uint32_t)(_offset) << 16) | ((_high) << 8) | (_low))
#define DEVX_WORD(_offset)  DEVX_BITS(_offset, 31, 0)
#define DEVX_QWORD(_offset) DEVX_BITS(_offset, 63, 0)

/* Place of a member of common/prm_cmd.h: @_mask of a 32-bit word, a whole word,
 * two words */
#define DEVX_FIELD(_struct, _member, _mask) \
    DEVX_BITS(offsetof(struct _struct, _member), 31 - __builtin_clz(_mask), \
              __builtin_ctz(_mask))
#define DEVX_FIELD32(_struct, _member) \
    DEVX_WORD(offsetof(struct _struct, _member))
#define DEVX_FIELD64(_struct, _member) \
    DEVX_QWORD(offsetof(struct _struct, _member))

/* Read and write a field of the structure at @base, in host order. devx_set()
 * ignores bits of @value that the field has no place for. */
uint64_t devx_get(const void *base, uint32_t bits);
void devx_set(void *base, uint32_t bits, uint64_t value);

/* A field that a command understands; bits without a row must be 0. */
struct devx_field {
    const char *name; /* NULL: end of the table */
    uint32_t bits;
    uint64_t max; /* the largest value */
};

#define DEVX_ANY    UINT64_MAX
#define DEVX_IF_OOO (DEVX_ANY - 1) /* max 1 with HCA_ORDER_OOO, else 0 */

/* --- commands ------------------------------------------------------------ */
enum devx_status {
    DEVX_OK            = 0x00,
    DEVX_BAD_OP        = 0x02,
    DEVX_BAD_PARAM     = 0x03,
    DEVX_BAD_RES       = 0x05, /* the context has no such object */
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
    uint16_t in_size, out_size; /* least sizes in bytes */
    bool has_list;              /* run() handles the bytes after in_size */
    bool is_end;                /* a device that has failed takes it for done */
    /* modify, query: opcode that made the object, place of its number */
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
    uint32_t syndrome;    /* set by devx_refuse() */
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

/* Opcodes of objects that other commands name */
#define DEVX_OP_CREATE_CQ  0x400
#define DEVX_OP_CREATE_QP  0x500
#define DEVX_OP_CREATE_DCT 0x710
#define DEVX_OP_CREATE_XRQ 0x717
#define DEVX_OP_CREATE_RMP 0x90c

/* Rows of every command's header; op_mod must be 0. */
/* clang-format off */
#define DEVX_HEADER_FIELDS \
    {"opcode", DEVX_IN_OPCODE, DEVX_ANY}, {"uid", DEVX_IN_UID, DEVX_ANY}
/* clang-format on */

/* Checks @size bytes (at most 512) of the in mailbox from @base on against
 * their table. @return DEVX_OK, or DEVX_BAD_PARAM, logged. */
enum devx_status devx_check(struct devx_call *call, size_t base, size_t size,
                            const struct devx_field *fields);

/* Checks that all bytes after the layout of @size bytes are zero.
 * @return DEVX_OK or DEVX_BAD_INP_LEN, logged. */
enum devx_status devx_check_rest(struct devx_call *call, size_t size);

/* Logs that @what has the bad value @got, and sets the syndrome to @offset, the
 * place of its word in the in mailbox. @return @status. */
enum devx_status devx_refuse(struct devx_call *call, enum devx_status status,
                             size_t offset, const char *what, uint64_t got);

/* Commands of each file. */
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
    /* Destroys the device's object. @return as uverbs_type.release. */
    int (*release)(struct devx_obj *obj);
    struct uverbs_obj *uses[DEVX_MAX_USES]; /* referenced until it ends */
};

/* Types and methods, for the tables of dispatch/. */
extern const struct uverbs_type devx_obj_type, devx_umem_type, devx_event_type;
extern const struct uverbs_method devx_methods[], devx_umem_methods[],
    devx_event_methods[];

/* Makes call->obj, before run() of a command that creates. run() fills in
 * number, hw and release once nothing can fail.
 * @return DEVX_OK, DEVX_NO_RES. */
enum devx_status devx_obj_new(struct devx_call *call);

/* Undoes devx_obj_new() after run() failed; call->obj is NULL then. */
void devx_obj_undo(struct devx_call *call);

/* Reference @used while @obj (devx_obj_use(): call->obj) lives; at most
 * DEVX_MAX_USES for each object. */
void devx_obj_hold(struct devx_obj *obj, struct uverbs_obj *used);

static inline void devx_obj_use(struct devx_call *call, struct uverbs_obj *used)
{
    devx_obj_hold(call->obj, used);
}

/* Finds a protection domain by its number, without a reference.
 * @return NULL if the context has none of this number. */
struct uverbs_pd *devx_find_pd(const struct devx_call *call, uint32_t pdn);

/* Find a CQ, or an SRQ, RMP or XRQ, that verbs or DEVX created, by its number,
 * without a reference. @return NULL if the context has none of this number. */
struct uverbs_obj *devx_find_cq(const struct devx_call *call, uint32_t cqn);
struct uverbs_obj *devx_find_srq(const struct devx_call *call, uint32_t srqn);

/* Returns true if the port is a bond of DEVX_LAG_PORTS. A queue pair may then
 * choose one of them; this device ignores the choice. */
#define DEVX_LAG_PORTS 2
bool devx_is_bond(const struct devx_call *call);

/* log2 of the most entries of an indirect mkey, by the 16 bits of klm_octowords
 * of a UMR WQE. A command has room for fewer: its mailbox is an attribute of an
 * ioctl, at most 65535 bytes (struct ib_uverbs_attr). */
#define DEVX_LOG_MAX_KLMS 16

/* --- umems --------------------------------------------------------------- */

/* Part of a umem, of which an object is made */
struct devx_umem_use {
    uint32_t id;
    uint64_t offset; /* in the umem, bytes */
    size_t size;     /* bytes */
    size_t field;    /* offset in the mailbox, for refusals */
    hca_off_t off;   /* out: offset in the arena */
};

/* Finds the memory of a queue, which must be aligned to 64 bytes, and that of
 * its doorbell record (8 bytes, aligned to 8; its size is set here). Both umems
 * are referenced by call->obj.
 * @return DEVX_OK, DEVX_BAD_RES or DEVX_BAD_PARAM, logged. */
enum devx_status devx_find_ring(struct devx_call *call,
                                struct devx_umem_use *ring,
                                struct devx_umem_use *dbrec);

#endif
