/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mappings of the device file, which the program makes without telling.
 */
#ifndef UVERBS_MMAP_H
#define UVERBS_MMAP_H

#include "uverbs.h"

#include <sys/stat.h>

enum uverbs_map_kind { UVERBS_MAP_UAR, UVERBS_MAP_DM };

/* What the file says of itself, so that another process that comes to have it knows
 * whose it is. */
struct uverbs_file {
    uint64_t magic;
    uint64_t fabric; /* hca_fabric.id */
    uint64_t id;     /* uverbs_ctx.file */
    uint32_t dev;
};

/* Puts the file of a context, of which there is no other, in the place of what
 * a descriptor refers to. @return 0 or -errno. */
int uverbs_map_file(int fd, unsigned dev, uint64_t *id);

/* Whether a file may be such, by its size. */
bool uverbs_map_is_file(const struct stat *st);

/* What the file of a descriptor says. @return false if it is none. */
bool uverbs_map_read_file(int fd, struct uverbs_file *file);

/* A mapping that the program will make through the device file at `offset`. */
struct uverbs_map_plan {
    enum uverbs_map_kind kind;
    uint32_t             id;
    uint64_t             offset;
    void                *mem; /* what is to be found there (device memory) */
    size_t               size;
};

/* Announces it, besides those found at that offset before. @return 0, -ENOMEM.
 */
int uverbs_map_expect(struct uverbs_ctx *ctx,
                      const struct uverbs_map_plan *plan);

/* Whether one is announced that has not been looked for, or not made, yet. */
bool uverbs_map_is_expected(const struct uverbs_ctx *ctx,
                            enum uverbs_map_kind kind, uint32_t id);

/* All of the context */
void uverbs_map_forget_all(struct uverbs_ctx *ctx);

/* Of all mappings of the object. */
void uverbs_map_forget(struct uverbs_ctx *ctx, enum uverbs_map_kind kind,
                       uint32_t id);

/* Looks for the mappings announced and not yet found. */
void uverbs_map_resolve(struct uverbs_ctx *ctx);

#endif
