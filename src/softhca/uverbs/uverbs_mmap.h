/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mappings of the device file, which the program makes without an ioctl.
 */
#ifndef UVERBS_MMAP_H
#define UVERBS_MMAP_H

#include "uverbs.h"

#include <sys/stat.h>

enum uverbs_map_kind { UVERBS_MAP_UAR, UVERBS_MAP_DM };

/* Replaces the file of descriptor @fd by a new device file.
 * @return 0, or -errno: @fd is unchanged. */
int uverbs_map_file(int fd);

/* Returns true if a file is a device file, by its type and size. */
bool uverbs_map_is_file(const struct stat *st);

/* A mapping that the program will make through the device file at @offset. */
struct uverbs_map_plan {
    enum uverbs_map_kind kind;
    uint32_t id; /* page of UVERBS_MAP_UAR, hca_dm_index() of UVERBS_MAP_DM */
    uint64_t offset;
    void *mem; /* UVERBS_MAP_DM: memory to map there */
    size_t size;
};

/* Announces a mapping. Mappings found before stay, also at the same offset.
 * @return 0; -ENOMEM: the table is full; -errno of sigaction(). */
int uverbs_map_expect(struct uverbs_ctx *ctx,
                      const struct uverbs_map_plan *plan);

/* Returns true if a mapping is announced and has not been found yet. */
bool uverbs_map_is_expected(const struct uverbs_ctx *ctx,
                            enum uverbs_map_kind kind, uint32_t id);

/* Forgets all mappings of the context, without unmapping them. */
void uverbs_map_forget_all(struct uverbs_ctx *ctx);

/* Forgets all mappings of an object, without unmapping them. */
void uverbs_map_forget(struct uverbs_ctx *ctx, enum uverbs_map_kind kind,
                       uint32_t id);

/* Looks for the mappings announced and not yet found. Then stores to UAR pages
 * ring doorbells, and device memory is behind its mapping. Logs errors. */
void uverbs_map_resolve(struct uverbs_ctx *ctx);

#endif
