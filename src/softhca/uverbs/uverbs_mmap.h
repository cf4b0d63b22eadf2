/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mappings of the device file, which the program makes without an ioctl.
 */
#ifndef UVERBS_MMAP_H
#define UVERBS_MMAP_H

#include "uverbs.h"

#include <sys/stat.h>

enum uverbs_map_kind { UVERBS_MAP_UAR, UVERBS_MAP_DM };

/* Contents of the file, by which another process that gets it knows its
 * owner. */
struct uverbs_file {
    uint64_t magic;
    uint64_t fabric; /* hca_fabric.id */
    uint64_t id;     /* uverbs_ctx.file */
    uint32_t dev;
};

/* Replaces the file of a descriptor by a new one for a context, and sets @id to
 * the number of that file. @return 0 or -errno. */
int uverbs_map_file(int fd, unsigned dev, uint64_t *id);

/* Returns true if a file may be a device file, by its size. */
bool uverbs_map_is_file(const struct stat *st);

/* Reads the contents of a descriptor's file. @return false if it is none. */
bool uverbs_map_read_file(int fd, struct uverbs_file *file);

/* A mapping that the program will make through the device file at @offset. */
struct uverbs_map_plan {
    enum uverbs_map_kind kind;
    uint32_t id;
    uint64_t offset;
    void *mem; /* memory to map there (device memory) */
    size_t size;
};

/* Announces a mapping, besides those found at that offset before.
 * @return 0, -ENOMEM. */
int uverbs_map_expect(struct uverbs_ctx *ctx,
                      const struct uverbs_map_plan *plan);

/* Returns true if a mapping is announced and has not been found yet. */
bool uverbs_map_is_expected(const struct uverbs_ctx *ctx,
                            enum uverbs_map_kind kind, uint32_t id);

/* Forgets all mappings of the context. */
void uverbs_map_forget_all(struct uverbs_ctx *ctx);

/* Forgets all mappings of the object. */
void uverbs_map_forget(struct uverbs_ctx *ctx, enum uverbs_map_kind kind,
                       uint32_t id);

/* Looks for the mappings announced and not yet found. */
void uverbs_map_resolve(struct uverbs_ctx *ctx);

#endif
