/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Allocates and registers the memory of a case, and makes its layout; see
 * perf_mem.h.
 */
#include "perf_mem.h"
#include "perf_say.h"

#include <uct/dcx/dcx.h>

#include <stdlib.h>
#include <string.h>

#define PERF_PAGE 4096

static uint8_t *perf_mem_alloc(size_t size)
{
    size_t pages = (size + PERF_PAGE - 1) / PERF_PAGE;
    void *memory = aligned_alloc(PERF_PAGE, pages * PERF_PAGE);

    if (memory == NULL) {
        perf_fail("failed to allocate %zu bytes", size);
    }
    memset(memory, 0, size);
    return memory;
}

static uct_mem_h perf_mem_register(const struct perf_mem *mem, void *address,
                                   size_t size)
{
    uct_mem_h memh;

    perf_uct_check(uct_md_mem_reg(mem->uct->md, address, size,
                                  UCT_MD_MEM_ACCESS_RMA, &memh),
                   "registering memory");
    return memh;
}

/* --- layouts -------------------------------------------------------------- */
/* The blocks of a layout: repeated ones, or a list */
struct perf_blocks {
    uct_dcx_layout_params_t params;
    uct_dcx_block_t run;
    uct_dcx_block_t *list; /* NULL: none */
};

static void perf_blocks_init(struct perf_blocks *blocks, size_t repeat,
                             const uct_dcx_block_t *list, size_t num)
{
    blocks->params = (uct_dcx_layout_params_t){.access = UCT_MD_MEM_ACCESS_RMA,
                                               .repeat = repeat,
                                               .num    = num,
                                               .blocks = list};
}

/* Describes all rows from the first to the last one of the shape, including
 * rows between the planes of a box. */
static void perf_blocks_of_rows(struct perf_blocks *blocks,
                                const struct perf_mem *mem)
{
    const struct perf_shape *shape = &mem->shape;

    blocks->run =
        (uct_dcx_block_t){.address = (uintptr_t)mem->buffer + PERF_GUARD,
                          .length  = shape->block,
                          .skip    = shape->stride - shape->block,
                          .memh    = mem->buffer_memh};
    perf_blocks_init(blocks, (shape->planes - 1) * shape->pitch + shape->rows,
                     &blocks->run, 1);
}

/* Describes a box: its planes, as bytes of the layout of all rows */
static void perf_blocks_of_planes(struct perf_blocks *blocks,
                                  const struct perf_mem *mem)
{
    const struct perf_shape *shape = &mem->shape;

    blocks->run =
        (uct_dcx_block_t){.length = shape->rows * shape->block,
                          .skip   = (shape->pitch - shape->rows) * shape->block,
                          .memh   = mem->rows};
    perf_blocks_init(blocks, shape->planes, &blocks->run, 1);
}

static void perf_blocks_of_list(struct perf_blocks *blocks,
                                const struct perf_mem *mem)
{
    const struct perf_shape *shape = &mem->shape;

    blocks->list = calloc(shape->num, sizeof(*blocks->list));
    if (blocks->list == NULL) {
        perf_fail("failed to allocate a list of %zu pieces", shape->num);
    }
    for (size_t i = 0; i < shape->num; i++) {
        blocks->list[i].address = (uintptr_t)mem->buffer +
                                  shape->pieces[i].offset;
        blocks->list[i].length = shape->pieces[i].length;
        blocks->list[i].memh   = mem->buffer_memh;
    }
    perf_blocks_init(blocks, 1, blocks->list, shape->num);
}

static void perf_blocks_of(struct perf_blocks *blocks,
                           const struct perf_mem *mem)
{
    blocks->list = NULL;
    if (mem->shape.form == PERF_COMPOSITE) {
        perf_blocks_of_list(blocks, mem);
    } else if (mem->shape.form == PERF_BOX) {
        perf_blocks_of_planes(blocks, mem);
    } else {
        perf_blocks_of_rows(blocks, mem);
    }
}

/* Makes a key for a layout. @return NULL if no key has room for so many pieces,
 * or all are in use */
static uct_mem_h perf_layout_create(const struct perf_mem *mem,
                                    const struct perf_blocks *blocks)
{
    size_t pieces = uct_dcx_layout_pieces(&blocks->params);
    ucs_status_t status;
    uct_mem_h memh;

    if (pieces > mem->uct->max_pieces) {
        return NULL;
    }
    status = uct_dcx_layout_create(mem->uct->iface, pieces, &memh);
    if ((status == UCS_ERR_UNSUPPORTED) || (status == UCS_ERR_EXCEEDS_LIMIT)) {
        return NULL;
    }
    perf_uct_check(status, "a key for a layout");
    return memh;
}

static void perf_layout_set(uct_mem_h memh, const struct perf_blocks *blocks)
{
    ucs_status_t status;

    while ((status = uct_dcx_layout_set(memh, &blocks->params)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_dcx_layout_test(memh);
    }
    perf_uct_check(status, "a layout");
    while ((status = uct_dcx_layout_test(memh)) == UCS_INPROGRESS) {
    }
    perf_uct_check(status, "a layout");
}

static bool perf_mem_create_rows(struct perf_mem *mem)
{
    struct perf_blocks blocks;

    perf_blocks_of_rows(&blocks, mem);
    mem->rows = perf_layout_create(mem, &blocks);
    if (mem->rows != NULL) {
        perf_layout_set(mem->rows, &blocks);
    }
    return mem->rows != NULL;
}

static void perf_mem_create_layout(struct perf_mem *mem)
{
    struct perf_blocks blocks;

    if ((mem->shape.form == PERF_CONTIGUOUS) ||
        ((mem->shape.form == PERF_BOX) && !perf_mem_create_rows(mem))) {
        return;
    }
    perf_blocks_of(&blocks, mem);
    mem->layout = perf_layout_create(mem, &blocks);
    if (mem->layout != NULL) {
        perf_layout_set(mem->layout, &blocks);
    }
    free(blocks.list);
}

void perf_mem_set_layout(const struct perf_mem *mem)
{
    struct perf_blocks blocks;

    perf_blocks_of(&blocks, mem);
    perf_layout_set(mem->layout, &blocks);
    free(blocks.list);
}

/* --- a side --------------------------------------------------------------- */
void perf_mem_create(struct perf_mem *mem, struct perf_uct *uct,
                     const struct perf_case *what, bool in_pieces)
{
    enum perf_form form = in_pieces ? what->form : PERF_CONTIGUOUS;

    memset(mem, 0, sizeof(*mem));
    mem->uct = uct;
    if (!perf_shape_init(&mem->shape, form, what->size, what->block,
                         what->stride)) {
        perf_fail("failed to allocate a shape of %lu bytes", what->size);
    }
    mem->buffer       = perf_mem_alloc(mem->shape.extent);
    mem->buffer_memh  = perf_mem_register(mem, mem->buffer, mem->shape.extent);
    mem->staging_size = what->window * mem->shape.size;
    mem->staging      = perf_mem_alloc(mem->staging_size);
    mem->staging_memh = perf_mem_register(mem, mem->staging, mem->staging_size);
    perf_mem_create_layout(mem);
}

static void perf_mem_deregister(const struct perf_mem *mem, uct_mem_h memh)
{
    if (memh != NULL) {
        perf_uct_check(uct_md_mem_dereg(mem->uct->md, memh),
                       "deregistering memory");
    }
}

void perf_mem_destroy(struct perf_mem *mem)
{
    perf_mem_deregister(mem, mem->layout);
    perf_mem_deregister(mem, mem->rows);
    perf_mem_deregister(mem, mem->staging_memh);
    perf_mem_deregister(mem, mem->buffer_memh);
    free(mem->staging);
    free(mem->buffer);
    perf_shape_cleanup(&mem->shape);
}

static void perf_mem_pack_rkey(const struct perf_mem *mem, uct_mem_h memh,
                               uint8_t *rkey)
{
    uct_md_attr_t attr;

    perf_uct_check(uct_md_query(mem->uct->md, &attr), "the domain");
    if (attr.rkey_packed_size > PERF_RKEY_MAX) {
        perf_fail("remote keys of this version of dcx are too long for this "
                  "dcx_perf");
    }
    perf_uct_check(uct_md_mkey_pack(mem->uct->md, memh, rkey), "a remote key");
}

void perf_mem_keys(const struct perf_mem *mem, struct perf_keys *keys)
{
    memset(keys, 0, sizeof(*keys));
    keys->buffer     = (uintptr_t)mem->buffer;
    keys->staging    = (uintptr_t)mem->staging;
    keys->has_layout = (mem->layout != NULL);
    perf_mem_pack_rkey(mem, mem->buffer_memh, keys->buffer_rkey);
    perf_mem_pack_rkey(mem, mem->staging_memh, keys->staging_rkey);
    if (mem->layout != NULL) {
        perf_mem_pack_rkey(mem, mem->layout, keys->layout_rkey);
    }
}
