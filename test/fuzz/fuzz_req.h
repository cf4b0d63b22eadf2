/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Declarations for the fuzz target of uverbs. fuzz_req.c makes requests from an
 * input, fuzz_mlx5.c requests of libmlx5, fuzz_devx.c commands of DEVX,
 * fuzz_uverbs.c requests that no library sends, fuzz_tm.c tag matching,
 * fuzz_umr.c layouts of keys.
 */
#ifndef FUZZ_REQ_H
#define FUZZ_REQ_H

#include "softhca/uverbs/uverbs.h"

#define FUZZ_BUF_SIZE      16384
#define FUZZ_RING_SIZE     (1u << 20)
#define FUZZ_OUT           12288 /* offset of answers in fuzz_buf */
#define FUZZ_COUNT(_table) (sizeof(_table) / sizeof((_table)[0]))

/* Rest of the input; reads past its end return zero. */
extern const uint8_t *fuzz_data;
extern size_t fuzz_left;

extern uint8_t *fuzz_buf;  /* program memory; the page behind it is unmapped */
extern uint8_t *fuzz_ring; /* ring memory, in the arena */

void fuzz_input(const uint8_t *data, size_t size);
void fuzz_bytes(void *dst, size_t size);
uint32_t fuzz_int(unsigned bytes);
uint32_t fuzz_below(uint32_t count); /* count <= 256 */

/* Returns an address for the device to write to or to read from. */
uint64_t fuzz_addr(size_t size);

/* Returns an address of a ring or a doorbell record. */
uint64_t fuzz_ring_addr(void);

/* Returns a handle, in most cases of a live or destroyed object of the type. */
uint64_t fuzz_handle(uint16_t type);

struct fuzz_req {
    unsigned num_attrs;
    struct ib_uverbs_attr attrs[32];
};

struct ib_uverbs_attr *fuzz_attr(struct fuzz_req *req, uint16_t id,
                                 uint16_t len, uint64_t data);
void fuzz_const(struct fuzz_req *req, uint16_t id, uint16_t len,
                uint64_t value);
void fuzz_in(struct fuzz_req *req, uint16_t id, const void *src, size_t size);
void fuzz_out(struct fuzz_req *req, uint16_t id, size_t size); /* sometimes to a
                                                                * bad address */
int fuzz_send(int fd, const struct fuzz_req *req, uint16_t object,
              uint16_t method);

/* Fills in the handles that a write command names. */
void fuzz_command_handles(uint64_t cmd, uint8_t *in, size_t size);

/* Send a write command; fuzz_write_uhw() with the attributes that are already
 * in the request. */
void fuzz_write_uhw(int fd, struct fuzz_req *req, uint64_t cmd);
void fuzz_write(int fd, uint64_t cmd, const void *in, size_t in_size);

/* --- fuzz_mlx5.c --- */
int fuzz_get_context(int fd);

/* Maps a doorbell page as a program does. @return its number. */
uint32_t fuzz_alloc_uar(int fd, void **page);

typedef void (*fuzz_op)(int fd, uint32_t uar);

void fuzz_devx(int fd, uint32_t uar); /* fuzz_devx.c */
void fuzz_tm(int fd, uint32_t uar);   /* fuzz_tm.c */
void fuzz_umr(int fd, uint32_t uar);  /* fuzz_umr.c */

extern const fuzz_op fuzz_mlx5_ops[];
extern const unsigned fuzz_num_mlx5_ops;

/* Event channels of the context: descriptors for CREATE_CQ */
#define FUZZ_MAX_FDS 64
extern int fuzz_fds[FUZZ_MAX_FDS], fuzz_num_fds;

#endif
