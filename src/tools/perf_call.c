/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Calls from the near process to the far one, and their execution; see
 * perf_call.h.
 */
#include "perf_call.h"
#include "perf_clock.h"

#include <string.h>

void perf_call(struct perf_uct *uct, const struct perf_call *call,
               struct perf_answer *answer)
{
    perf_uct_send(uct, call, sizeof(*call));
    perf_uct_receive(uct, answer, sizeof(*answer));
}

/* --- memory --------------------------------------------------------------- */
void perf_do_fill(const struct perf_mem *mem, uint64_t seed, bool is_staged)
{
    perf_shape_fill(&mem->shape, mem->buffer, seed);
    perf_data_clear(mem->staging, mem->staging_size, seed);
    if (is_staged) {
        perf_data_fill(mem->staging, mem->shape.size, seed);
    }
}

void perf_do_clear(const struct perf_mem *mem, uint64_t seed)
{
    perf_shape_clear(&mem->shape, mem->buffer, seed);
    perf_data_clear(mem->staging, mem->staging_size, seed);
}

bool perf_do_check(const struct perf_mem *mem, uint64_t seed, bool is_staged,
                   unsigned count, struct perf_wrong *wrong)
{
    for (unsigned i = 0; i < count; i++) {
        if (!perf_data_check(perf_mem_stage(mem, i), mem->shape.size, seed,
                             wrong)) {
            return false;
        }
    }
    return is_staged || perf_shape_check(&mem->shape, mem->buffer, seed, wrong);
}

void perf_do_pack(const struct perf_mem *mem, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        perf_shape_pack(&mem->shape, mem->buffer, perf_mem_stage(mem, i));
    }
}

void perf_do_unpack(const struct perf_mem *mem, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        perf_shape_unpack(&mem->shape, mem->buffer, perf_mem_stage(mem, i));
    }
}

/* --- the far side --------------------------------------------------------- */
typedef void (*perf_do_t)(const struct perf_mem *mem, unsigned count);

/* Packs or unpacks. Measures the time if the call asks for it. */
static void perf_serve_copy(const struct perf_mem *mem,
                            const struct perf_call *call,
                            struct perf_answer *answer, perf_do_t copy)
{
    struct perf_cpu cpu = {.is_on = call->with_cpu};
    uint64_t begin;

    if (!call->with_cpu) {
        copy(mem, call->count);
        return;
    }
    cpu.cost = perf_cpu_cost();
    perf_cpu_begin(&cpu);
    begin = perf_now();
    copy(mem, call->count);
    answer->ns = perf_now() - begin;
    perf_cpu_end(&cpu);
    answer->cpu_ns = cpu.ns;
}

static void perf_serve_call(struct perf_uct *uct, struct perf_mem *mem,
                            const struct perf_call *call,
                            struct perf_answer *answer)
{
    switch (call->verb) {
    case PERF_CALL_BEGIN:
        perf_mem_create(mem, uct, &call->what,
                        (call->what.sides & PERF_REMOTE) != 0);
        perf_mem_keys(mem, &answer->keys);
        break;
    case PERF_CALL_FILL:
        perf_do_fill(mem, call->seed, call->is_staged);
        break;
    case PERF_CALL_CLEAR:
        perf_do_clear(mem, call->seed);
        break;
    case PERF_CALL_CHECK:
        answer->is_wrong = !perf_do_check(mem, call->seed, call->is_staged,
                                          call->count, &answer->wrong);
        break;
    case PERF_CALL_PACK:
        perf_serve_copy(mem, call, answer, perf_do_pack);
        break;
    case PERF_CALL_UNPACK:
        perf_serve_copy(mem, call, answer, perf_do_unpack);
        break;
    case PERF_CALL_END:
        perf_mem_destroy(mem);
        break;
    }
}

void perf_serve(struct perf_uct *uct)
{
    struct perf_answer answer;
    struct perf_call call;
    struct perf_mem mem;

    do {
        perf_uct_receive(uct, &call, sizeof(call));
        memset(&answer, 0, sizeof(answer));
        perf_serve_call(uct, &mem, &call, &answer);
        uct->may_end = (call.verb == PERF_CALL_QUIT);
        perf_uct_send(uct, &answer, sizeof(answer));
    } while (call.verb != PERF_CALL_QUIT);
    perf_uct_flush(uct);
}
