/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The methods of transfer: contig, umr, iov, pack and block; see
 * perf_method.h.
 */
#include "perf_method.h"
#include "perf_say.h"

#include <stdlib.h>

enum {
    /* bytes: the largest stride of an entry of a key (docs/strided.md) */
    PERF_STRIDE_MAX = 65535
};

/* An address in the far process */
struct perf_target {
    uint64_t address;
    uct_rkey_t rkey;
};

/* --- one operation -------------------------------------------------------- */
static ucs_status_t perf_post_once(struct perf_bench *bench,
                                   const uct_iov_t *iov, size_t num,
                                   struct perf_target to)
{
    uct_ep_h ep = bench->uct->ep;

    if (bench->what.op == PERF_PUT) {
        return uct_ep_put_zcopy(ep, iov, num, to.address, to.rkey,
                                &bench->comp);
    }
    return uct_ep_get_zcopy(ep, iov, num, to.address, to.rkey, &bench->comp);
}

/* Polls once. Counts the processor time only if the poll finds something: a
 * program could do other work instead of empty polls. */
static void perf_wait_once(struct perf_bench *bench)
{
    int64_t before = bench->cpu.ns;
    unsigned count;

    perf_cpu_begin(&bench->cpu);
    count = perf_uct_progress(bench->uct);
    perf_cpu_end(&bench->cpu);
    if (count == 0) {
        bench->cpu.ns = before;
    }
}

static void perf_post(struct perf_bench *bench, const uct_iov_t *iov,
                      size_t num, struct perf_target to)
{
    ucs_status_t status;

    perf_cpu_begin(&bench->cpu);
    while ((status = perf_post_once(bench, iov, num, to)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_cpu_end(&bench->cpu);
        perf_wait_once(bench);
        perf_cpu_begin(&bench->cpu);
    }
    perf_cpu_end(&bench->cpu);
    if (status == UCS_INPROGRESS) {
        bench->comp.count++;
    } else if (status == UCS_ERR_UNSUPPORTED) {
        bench->is_refused = true;
    } else {
        perf_uct_check(status, perf_op_names[bench->what.op]);
    }
}

static void perf_wait(struct perf_bench *bench)
{
    while (bench->comp.count > 1) {
        perf_wait_once(bench);
    }
    perf_uct_check(bench->comp.status, perf_op_names[bench->what.op]);
}

static uct_iov_t perf_iov(void *buffer, size_t length, uct_mem_h memh)
{
    return (uct_iov_t){.buffer = buffer,
                       .length = length,
                       .memh   = memh,
                       .count  = 1};
}

/* --- contig --------------------------------------------------------------- */
static struct perf_target perf_far_stage(const struct perf_bench *bench,
                                         unsigned i)
{
    return (struct perf_target){.address = bench->keys.staging +
                                           i * bench->far.size,
                                .rkey = bench->staging.rkey};
}

/* Transfers the same bytes each time, so that they are in the caches, as with
 * umr, iov and block. */
static void perf_run_contig(struct perf_bench *bench)
{
    uct_iov_t iov = perf_iov(perf_mem_stage(&bench->mem, 0),
                             bench->mem.shape.size, bench->mem.staging_memh);

    for (unsigned i = 0; i < bench->window; i++) {
        perf_post(bench, &iov, 1, perf_far_stage(bench, 0));
    }
    perf_wait(bench);
}

/* --- umr, iov ------------------------------------------------------------- */
static bool perf_is_far_in_pieces(const struct perf_bench *bench)
{
    return bench->far.form != PERF_CONTIGUOUS;
}

static bool perf_is_near_in_pieces(const struct perf_bench *bench)
{
    return bench->mem.shape.form != PERF_CONTIGUOUS;
}

/* Returns the whole far buffer. */
static struct perf_target perf_far_all(const struct perf_bench *bench)
{
    if (perf_is_far_in_pieces(bench)) {
        return (struct perf_target){.rkey = bench->layout.rkey};
    }
    return (struct perf_target){.address = bench->keys.buffer + PERF_GUARD,
                                .rkey    = bench->buffer.rkey};
}

/* Returns the whole near buffer. */
static uct_iov_t perf_near_all(const struct perf_bench *bench)
{
    const struct perf_mem *mem = &bench->mem;

    if (perf_is_near_in_pieces(bench)) {
        return perf_iov(NULL, mem->shape.size, mem->layout);
    }
    return perf_iov(mem->buffer + PERF_GUARD, mem->shape.size,
                    mem->buffer_memh);
}

static bool perf_has_far_layout(const struct perf_bench *bench)
{
    return !perf_is_far_in_pieces(bench) || bench->keys.has_layout;
}

static bool perf_has_umr(const struct perf_bench *bench)
{
    return perf_has_far_layout(bench) &&
           (!perf_is_near_in_pieces(bench) || (bench->mem.layout != NULL));
}

static void perf_run_umr(struct perf_bench *bench)
{
    uct_iov_t iov = perf_near_all(bench);

    for (unsigned i = 0; i < bench->window; i++) {
        perf_post(bench, &iov, 1, perf_far_all(bench));
    }
    perf_wait(bench);
}

static size_t perf_max_iov(const struct perf_bench *bench)
{
    const uct_iface_attr_t *attr = &bench->uct->attr;

    return (bench->what.op == PERF_PUT) ? attr->cap.put.max_iov :
                                          attr->cap.get.max_iov;
}

/* Returns true if dcx supports the strides of PERF_IOV. A single entry with
 * repeated blocks takes one entry of a key; several entries take one for each
 * block. */
static bool perf_has_iov(const struct perf_bench *bench)
{
    const struct perf_shape *shape = &bench->mem.shape;

    if (!perf_is_near_in_pieces(bench) || !perf_has_far_layout(bench) ||
        (bench->num_iov > perf_max_iov(bench))) {
        return false;
    }
    return (shape->num <= bench->uct->max_pieces) ||
           ((bench->num_iov == 1) && (shape->stride <= PERF_STRIDE_MAX));
}

static void perf_run_iov(struct perf_bench *bench)
{
    for (unsigned i = 0; i < bench->window; i++) {
        perf_post(bench, bench->iov, bench->num_iov, perf_far_all(bench));
    }
    perf_wait(bench);
}

/* Describes planes of rows, with an entry for each plane. */
static void perf_strides_of_planes(struct perf_bench *bench)
{
    const struct perf_shape *shape = &bench->mem.shape;
    uct_iov_t *iov                 = bench->iov;

    for (size_t plane = 0; plane < shape->planes; plane++, iov++) {
        *iov        = perf_iov(bench->mem.buffer +
                                   shape->pieces[plane * shape->rows].offset,
                               shape->block, bench->mem.buffer_memh);
        iov->stride = shape->stride;
        iov->count  = shape->rows;
    }
}

static void perf_strides_of_list(struct perf_bench *bench)
{
    const struct perf_shape *shape = &bench->mem.shape;

    for (size_t i = 0; i < shape->num; i++) {
        bench->iov[i] = perf_iov(bench->mem.buffer + shape->pieces[i].offset,
                                 shape->pieces[i].length,
                                 bench->mem.buffer_memh);
    }
}

void perf_method_strides(struct perf_bench *bench)
{
    const struct perf_shape *shape = &bench->mem.shape;
    bool is_list                   = (shape->form == PERF_COMPOSITE);

    bench->num_iov = is_list ? shape->num : shape->planes;
    bench->iov     = calloc(bench->num_iov, sizeof(*bench->iov));
    if (bench->iov == NULL) {
        perf_fail("failed to allocate %zu entries", bench->num_iov);
    }
    if (is_list) {
        perf_strides_of_list(bench);
    } else {
        perf_strides_of_planes(bench);
    }
}

/* --- pack ----------------------------------------------------------------- */
static void perf_far_copy(struct perf_bench *bench, enum perf_verb verb)
{
    struct perf_call call = {
        .verb     = verb,
        .count    = bench->window,
        .with_cpu = bench->cpu.is_on,
    };
    struct perf_answer answer;

    perf_call(bench->uct, &call, &answer);
    bench->far_cpu_ns += answer.cpu_ns;
}

static void perf_near_pack(struct perf_bench *bench, unsigned i)
{
    perf_cpu_begin(&bench->cpu);
    perf_shape_pack(&bench->mem.shape, bench->mem.buffer,
                    perf_mem_stage(&bench->mem, i));
    perf_cpu_end(&bench->cpu);
}

static void perf_near_unpack(struct perf_bench *bench, unsigned i)
{
    perf_cpu_begin(&bench->cpu);
    perf_shape_unpack(&bench->mem.shape, bench->mem.buffer,
                      perf_mem_stage(&bench->mem, i));
    perf_cpu_end(&bench->cpu);
}

/* Posts a transfer. A side in pieces uses staging; a side in one piece uses the
 * buffer. */
static void perf_post_staged(struct perf_bench *bench, unsigned i)
{
    uct_iov_t iov = perf_near_all(bench);

    if (perf_is_near_in_pieces(bench)) {
        iov = perf_iov(perf_mem_stage(&bench->mem, i), bench->mem.shape.size,
                       bench->mem.staging_memh);
    }
    perf_post(bench, &iov, 1,
              perf_is_far_in_pieces(bench) ? perf_far_stage(bench, i) :
                                             perf_far_all(bench));
}

/* Sends the data, a fence and the call to unpack. The far process answers when
 * it has unpacked. */
static void perf_run_pack_put(struct perf_bench *bench)
{
    for (unsigned i = 0; i < bench->window; i++) {
        if (perf_is_near_in_pieces(bench)) {
            perf_near_pack(bench, i);
        }
        perf_post_staged(bench, i);
    }
    if (perf_is_far_in_pieces(bench)) {
        perf_uct_check(uct_ep_fence(bench->uct->ep, 0), "a fence");
        perf_far_copy(bench, PERF_CALL_UNPACK);
    }
    perf_wait(bench);
}

static void perf_run_pack_get(struct perf_bench *bench)
{
    if (perf_is_far_in_pieces(bench)) {
        perf_far_copy(bench, PERF_CALL_PACK);
    }
    for (unsigned i = 0; i < bench->window; i++) {
        perf_post_staged(bench, i);
    }
    perf_wait(bench);
    for (unsigned i = 0; perf_is_near_in_pieces(bench) && (i < bench->window);
         i++) {
        perf_near_unpack(bench, i);
    }
}

static void perf_run_pack(struct perf_bench *bench)
{
    if (bench->what.op == PERF_PUT) {
        perf_run_pack_put(bench);
    } else {
        perf_run_pack_get(bench);
    }
}

static bool perf_has_pieces(const struct perf_bench *bench)
{
    return perf_is_near_in_pieces(bench) || perf_is_far_in_pieces(bench);
}

/* --- block ---------------------------------------------------------------- */
/* Posts a transfer for each piece. Both sides have the same pieces; on a side
 * in one piece, they follow each other. */
static void perf_post_blocks(struct perf_bench *bench)
{
    const struct perf_shape *near = &bench->mem.shape;
    const struct perf_shape *far  = &bench->far;
    const struct perf_shape *cut  = perf_is_near_in_pieces(bench) ? near : far;
    size_t done                   = 0;
    struct perf_target to         = {.rkey = bench->buffer.rkey};
    uct_iov_t iov;

    for (size_t i = 0; (i < cut->num) && !bench->is_refused; i++) {
        size_t from = PERF_GUARD + done, at = PERF_GUARD + done;

        if (near == cut) {
            from = near->pieces[i].offset;
        }
        if (perf_is_far_in_pieces(bench)) {
            at = far->pieces[i].offset;
        }
        iov        = perf_iov(bench->mem.buffer + from, cut->pieces[i].length,
                              bench->mem.buffer_memh);
        to.address = bench->keys.buffer + at;
        perf_post(bench, &iov, 1, to);
        done += cut->pieces[i].length;
    }
}

static void perf_run_block(struct perf_bench *bench)
{
    for (unsigned i = 0; i < bench->window; i++) {
        perf_post_blocks(bench);
    }
    perf_wait(bench);
}

/* --- all of them ---------------------------------------------------------- */
static bool perf_has_contig(const struct perf_bench *bench)
{
    (void)bench;
    return true;
}

static const struct {
    bool (*is_there)(const struct perf_bench *bench);
    void (*run)(struct perf_bench *bench);
} perf_methods[PERF_METHODS] = {
    [PERF_CONTIG] = {perf_has_contig, perf_run_contig},
    [PERF_UMR]    = {perf_has_umr, perf_run_umr},
    [PERF_IOV]    = {perf_has_iov, perf_run_iov},
    [PERF_PACK]   = {perf_has_pieces, perf_run_pack},
    [PERF_BLOCK]  = {perf_has_pieces, perf_run_block},
};

bool perf_method_is_there(const struct perf_bench *bench,
                          enum perf_method method)
{
    return ((method == PERF_CONTIG) || perf_has_pieces(bench)) &&
           perf_methods[method].is_there(bench);
}

bool perf_method_run(struct perf_bench *bench, enum perf_method method)
{
    bench->comp.count = 1;
    bench->is_refused = false;
    perf_methods[method].run(bench);
    return !bench->is_refused;
}
