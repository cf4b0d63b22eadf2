/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mappings of the device file, which the program makes without telling.
 */
#ifndef UVERBS_MMAP_H
#define UVERBS_MMAP_H

#include "uverbs.h"

enum uverbs_map_kind { UVERBS_MAP_UAR, UVERBS_MAP_DM };

/* Puts the file of a context, of which there is no other, in the place of what
 * a descriptor refers to. @return 0 or -errno. */
int uverbs_map_file(int fd);

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

/* Of all mappings of the object. */
void uverbs_map_forget(struct uverbs_ctx *ctx, enum uverbs_map_kind kind,
                       uint32_t id);

/* Looks for the mappings announced and not yet found. */
void uverbs_map_resolve(struct uverbs_ctx *ctx);

#endif
