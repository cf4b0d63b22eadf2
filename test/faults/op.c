/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The kinds of operation. Each is posted in a slot and ends there; the ledger
 * has its state. Memory of a rank: a word for each source, which its atomics
 * add to; the window of blocks that are got; for each source its window of
 * blocks that are put.
 */
#include "lists.h"
#include "../times.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    AM_ID = 1,
    /* Bytes from the start of a piece to the next; pieces are half as long */
    STEP = 4096,
    /* Calls of op_page_out() of which one drops pages, and the most drops: each
     * costs retries of 1 ms */
    PAGE_OUT_CALLS = 256,
    PAGE_OUT_MAX   = 20,
    /* Sink of the payloads that are got: any rank gets the same ones */
    ANYBODY = UINT16_MAX
};

static const struct op_kind op_kinds[];

static const struct op_kind *op_kind(void)
{
    return ledger->options.op;
}

static size_t op_length(uint32_t sequence)
{
    const struct op_kind *op = op_kind();
    size_t steps             = (op->max - op->min) / 8;

    return op->min + (8 * ((sequence * 2654435761u) % (steps + 1)));
}

static struct data_id op_id(unsigned from, unsigned to, uint32_t sequence)
{
    return (struct data_id){.from = from, .to = to, .sequence = sequence};
}

static size_t op_blocks_at(void)
{
    return MAX_RANKS * sizeof(uint64_t);
}

/* Returns the offset of a block for puts of rank @source; of the end of all
 * blocks if it is the number of ranks. */
static size_t op_put_at(unsigned source, unsigned number)
{
    unsigned window = ledger->options.window;

    if (ledger->options.source >= 0) {
        source = (source == ledger->options.ranks);
    }
    return op_blocks_at() +
           ((window + (source * window) + number) * op_kind()->max);
}

static size_t op_get_at(unsigned number)
{
    return op_blocks_at() + (number * op_kind()->max);
}

/* --- slots ---------------------------------------------------------------- */

/* Copies a payload between @flat and the pieces of the slot. */
static void op_copy_pieces(struct slot *slot, char *flat, bool to_flat)
{
    char *piece;

    for (size_t i = 0; i < op_kind()->pieces; i++) {
        piece = slot->buffer + (i * STEP);
        memcpy(to_flat ? flat : piece, to_flat ? piece : flat, STEP / 2);
        flat += STEP / 2;
    }
}

static void op_fill(struct slot *slot, struct data_id id)
{
    static char flat[1 << 18];
    size_t length = op_length(slot->sequence);

    if (op_kind()->pieces == 0) {
        data_fill(slot->buffer, length, id);
    } else {
        data_fill(flat, length, id);
        op_copy_pieces(slot, flat, false);
    }
}

/* Verifies the buffer of a slot; bytes between pieces must be as they were. */
static bool op_check(struct slot *slot, struct data_id id)
{
    static char flat[1 << 18];
    size_t length = op_length(slot->sequence);

    if (op_kind()->pieces == 0) {
        return data_check(op_kind()->name, slot->buffer, length, id) == 0;
    }
    op_copy_pieces(slot, flat, true);
    for (size_t i = 0; i < op_kind()->pieces; i++) {
        for (size_t at = STEP / 2; at < STEP; at++) {
            if ((uint8_t)slot->buffer[(i * STEP) + at] != 0xee) {
                printf("WRONG: %s %u: byte %zu after piece %zu\n",
                       op_kind()->name, id.sequence, at, i);
                return false;
            }
        }
    }
    return data_check(op_kind()->name, flat, length, id) == 0;
}

size_t op_room(void)
{
    return (op_kind()->pieces == 0) ? op_kind()->max : op_kind()->pieces * STEP;
}

static void op_slot_end(struct slot *slot)
{
    struct flow *flow   = ledger_flow(rank.me, slot->peer->rank);
    ucs_status_t status = slot->status;

    if ((status == UCS_OK) && (op_kind()->end != NULL) &&
        !op_kind()->end(slot)) {
        flow->received_wrong++;
    }
    flow->sent[slot->sequence] = (status == UCS_OK) ? OP_OK : status;
    flow->last                 = time_now_us();
}

void op_part_end(struct slot *slot, ucs_status_t status)
{
    if (slot->status == UCS_OK) {
        slot->status = status;
    }
    rank_event();
    if (--slot->parts == 0) {
        op_slot_end(slot);
    }
}

static void op_done(void *request, ucs_status_t status, void *arg)
{
    ucp_request_free(request);
    rank.requests--;
    op_part_end(arg, status);
}

/* Takes the result of a call that may have ended at once. */
static void op_started(struct slot *slot, ucs_status_ptr_t result)
{
    if (UCS_PTR_IS_PTR(result)) {
        rank.requests++;
    } else {
        op_part_end(slot, UCS_PTR_STATUS(result));
    }
}

static void op_post_list(struct slot *slot);

void op_post(struct peer *peer, struct slot *slot)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send   = op_done,
        .user_data = slot,
    };

    slot->sequence = peer->posted++;
    slot->parts    = (op_kind()->is_put && !op_kind()->is_list) ? 2 : 1;
    slot->status   = UCS_OK;
    slot->since    = time_now_us();
    ledger_flow(rank.me, peer->rank)->sent[slot->sequence] = OP_POSTED;
    ledger->rank[rank.me].posted++;
    op_fill(slot, op_id(rank.me, peer->rank, slot->sequence));
    if (op_kind()->is_list) {
        op_post_list(slot);
        return;
    }
    if (op_kind()->pieces != 0) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = ucp_dt_make_iov();
    }
    op_started(slot, op_kind()->post(slot, &param));
    if (op_kind()->is_put) {
        param.op_attr_mask &= ~UCP_OP_ATTR_FIELD_DATATYPE;
        op_started(slot, ucp_ep_flush_nbx(peer->ep, &param));
    }
}

/* --- active messages ------------------------------------------------------ */

static ucs_status_ptr_t op_post_am(struct slot *slot,
                                   ucp_request_param_t *param)
{
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param->flags = UCP_AM_SEND_FLAG_EAGER;
    return ucp_am_send_nbx(slot->peer->ep, AM_ID, NULL, 0, slot->buffer,
                           op_length(slot->sequence), param);
}

/* Verifies a message: they come in the order of their numbers, each once. UCX
 * drops fragmented ones if the endpoint to their sender is closed. */
static ucs_status_t op_am_handler(void *arg, const void *header,
                                  size_t header_length, void *data,
                                  size_t length,
                                  const ucp_am_recv_param_t *param)
{
    struct data_id id = {0};
    struct peer *peer;
    struct flow *flow;
    bool is_next;

    (void)arg;
    (void)header;
    (void)header_length;
    (void)param;
    memcpy(&id, data, (length < sizeof(id)) ? length : sizeof(id));
    if ((length < sizeof(id)) || (id.from >= ledger->options.ranks)) {
        rank_fail("a message of %zu bytes without a sender", length);
    }
    peer    = &rank.peer[id.from];
    flow    = ledger_flow(id.from, rank.me);
    is_next = (id.sequence == peer->checked) ||
              ((id.sequence > peer->checked) &&
               (peer->has_failed || ledger_is_broken(id.from, rank.me)));
    if (!is_next || (id.to != rank.me) || (length != op_length(id.sequence)) ||
        (data_check(op_kind()->name, data, length, id) != 0)) {
        printf("WRONG: %s %u from %u to %u, %zu bytes, instead of %u\n",
               op_kind()->name, id.sequence, id.from, id.to, length,
               peer->checked);
        flow->received_wrong++;
        return UCS_OK;
    }
    flow->got[id.sequence]++;
    peer->checked = id.sequence + 1;
    rank_event();
    return UCS_OK;
}

/* --- tagged messages ------------------------------------------------------ */

static ucs_status_ptr_t op_post_tag(struct slot *slot,
                                    ucp_request_param_t *param)
{
    bool is_list = (op_kind()->pieces != 0);

    return ucp_tag_send_nbx(slot->peer->ep,
                            is_list ? (void *)slot->list : slot->buffer,
                            is_list ? op_length(slot->sequence) / (STEP / 2) :
                                      op_length(slot->sequence),
                            rank.me, param);
}

/* Returns true if a receive may have got this operation: messages match
 * receives in order, but a send may have failed before it was one. */
static bool op_is_in_order(const struct flow *flow, const struct slot *slot,
                           uint32_t sequence)
{
    return (sequence >= slot->sequence) && (sequence < ledger->options.ops) &&
           (flow->got[sequence] == 0);
}

static void op_tag_end(struct slot *slot, ucs_status_t status, size_t length)
{
    struct flow *flow = ledger_flow(slot->peer->rank, rank.me);
    struct data_id id = {0};

    slot->parts   = 0;
    slot->request = NULL;
    rank_event();
    if (status != UCS_OK) {
        flow->lost[slot->sequence] = status;
        return;
    }
    slot->peer->checked++;
    memcpy(&id, slot->buffer, (length < sizeof(id)) ? length : sizeof(id));
    if (!op_is_in_order(flow, slot, id.sequence) ||
        (length != op_length(id.sequence))) {
        printf("WRONG: %s %u from %u to %u: %zu bytes instead of %u\n",
               op_kind()->name, id.sequence, slot->peer->rank, rank.me, length,
               slot->sequence);
        flow->received_wrong++;
        return;
    }
    slot->sequence = id.sequence;
    if (!op_check(slot, op_id(slot->peer->rank, rank.me, id.sequence))) {
        flow->received_wrong++;
        return;
    }
    flow->got[id.sequence]++;
}

static void op_tag_done(void *request, ucs_status_t status,
                        const ucp_tag_recv_info_t *info, void *arg)
{
    ucp_request_free(request);
    rank.requests--;
    op_tag_end(arg, status, info->length);
}

/* UCX 1.13 does not fill recv_info for a receive that ends at once, therefore
 * all end in the callback. */
static void op_post_receive(struct peer *peer, struct slot *slot)
{
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv   = op_tag_done,
        .user_data = slot,
    };
    bool is_list  = (op_kind()->pieces != 0);
    size_t length = op_kind()->max;
    ucs_status_ptr_t request;

    slot->sequence = peer->waited++;
    slot->parts    = 1;
    slot->since    = time_now_us();
    data_spoil(slot->buffer, op_room());
    param.datatype = is_list ? ucp_dt_make_iov() : ucp_dt_make_contig(1);
    rank.requests++;
    request = ucp_tag_recv_nbx(
        rank.worker, is_list ? (void *)slot->list : slot->buffer,
        is_list ? op_kind()->pieces : length, peer->rank, UINT64_MAX, &param);
    if (UCS_PTR_IS_ERR(request)) {
        rank.requests--;
        op_tag_end(slot, UCS_PTR_STATUS(request), 0);
    } else if (slot->parts != 0) { /* else it was freed in the callback */
        slot->request = request;
    }
}

void op_drop_unexpected(void)
{
    ucp_request_param_t param = {0};
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;
    ucs_status_ptr_t request;
    char *buffer;

    /* A rendezvous would be fetched from its sender. */
    if (!op_kind()->is_tag || op_kind()->is_told) {
        return;
    }
    buffer = malloc(op_kind()->max);
    while ((message = ucp_tag_probe_nb(rank.worker, 0, 0, 1, &info)) != NULL) {
        request = ucp_tag_msg_recv_nbx(rank.worker, buffer, op_kind()->max,
                                       message, &param);
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
    }
    free(buffer);
}

/* --- puts, gets and atomics ----------------------------------------------- */

static uint64_t op_remote(const struct peer *peer, size_t offset)
{
    return ledger->rank[peer->rank].memory + offset;
}

static ucs_status_ptr_t op_post_put(struct slot *slot,
                                    ucp_request_param_t *param)
{
    struct peer *peer = slot->peer;

    return ucp_put_nbx(peer->ep, slot->buffer, op_length(slot->sequence),
                       op_remote(peer, op_put_at(rank.me, slot->number)),
                       peer->key, param);
}

void op_check_puts(struct peer *peer)
{
    struct flow *flow = ledger_flow(peer->rank, rank.me);
    unsigned number;
    int8_t sent;

    while (op_kind()->is_put && (peer->checked < ledger->options.ops)) {
        sent = flow->sent[peer->checked];
        if ((sent == OP_NONE) || (sent == OP_POSTED)) {
            return;
        }
        if (sent == OP_OK) {
            number = peer->checked % ledger->options.window;
            if (data_check(op_kind()->name,
                           rank.memory + op_put_at(peer->rank, number),
                           op_length(peer->checked),
                           op_id(peer->rank, rank.me, peer->checked)) != 0) {
                flow->received_wrong++;
            }
            flow->got[peer->checked]++; /* the block may be put again */
        }
        peer->checked++;
        rank_event();
    }
}

static ucs_status_ptr_t op_post_get(struct slot *slot,
                                    ucp_request_param_t *param)
{
    struct peer *peer = slot->peer;

    data_spoil(slot->buffer, op_kind()->max);
    return ucp_get_nbx(peer->ep, slot->buffer, op_length(slot->sequence),
                       op_remote(peer, op_get_at(slot->number)), peer->key,
                       param);
}

/* Posts a put or a get of a list. */
static void op_post_list(struct slot *slot)
{
    bool is_get = !op_kind()->is_put;
    size_t at   = is_get ? op_get_at(slot->number) :
                           op_put_at(rank.me, slot->number);

    if (is_get) {
        data_spoil(slot->buffer, op_kind()->max);
    }
    lists_post(slot, op_length(slot->sequence), op_remote(slot->peer, at),
               is_get);
}

static bool op_end_get(struct slot *slot)
{
    struct data_id id = op_id(slot->peer->rank, ANYBODY, slot->number);

    ledger_flow(rank.me, slot->peer->rank)->got[slot->sequence]++;
    return data_check(op_kind()->name, slot->buffer, op_length(slot->sequence),
                      id) == 0;
}

/* Adds 1: each previous value, from 0 on, is returned once. */
static ucs_status_ptr_t op_post_atomic(struct slot *slot,
                                       ucp_request_param_t *param)
{
    static const uint64_t one = 1;
    struct peer *peer         = slot->peer;

    param->op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER |
                           UCP_OP_ATTR_FIELD_DATATYPE;
    param->reply_buffer = &slot->value;
    param->datatype     = ucp_dt_make_contig(sizeof(one));
    slot->value         = UINT64_MAX;
    return ucp_atomic_op_nbx(peer->ep, UCP_ATOMIC_OP_ADD, &one, 1,
                             op_remote(peer, rank.me * sizeof(one)), peer->key,
                             param);
}

static bool op_end_atomic(struct slot *slot)
{
    struct flow *flow = ledger_flow(rank.me, slot->peer->rank);

    if ((slot->value >= slot->peer->posted) || (flow->got[slot->value] != 0)) {
        printf("WRONG: atomic %u from %u to %u: the value was %lu\n",
               slot->sequence, rank.me, slot->peer->rank,
               (unsigned long)slot->value);
        return false;
    }
    flow->got[slot->value]++;
    return true;
}

/* --- all kinds ------------------------------------------------------------ */

static const char *const op_env_bulk[] = {"UCX_ZCOPY_THRESH=1k",
                                          "UCX_RNDV_THRESH=inf", NULL};
static const char *const op_env_rndv[] = {"UCX_RNDV_THRESH=8k", NULL};
/* Newer protocols of UCX have no atomics on endpoints with error handling */
static const char *const op_env_atomic[] = {"UCX_PROTO_ENABLE=n", NULL};
/* A send queue that has no room for a window of lists */
static const char *const op_env_few[]   = {"UCX_DCX_TX_QUEUE_LEN=16", NULL};
static const char *const op_env_lists[] = {
    "UCX_RNDV_THRESH=8k", "UCX_DCX_TYPES=y", "UCX_DCX_TYPES_MIN_LENGTH=16k",
    NULL};

static const struct op_kind op_kinds[] = {
    {.name = "am_short", .min = 8, .max = 128, .post = op_post_am},
    {.name        = "am_zcopy",
     .min         = 2048,
     .max         = 32768,
     .post        = op_post_am,
     .environment = op_env_bulk},
    {.name        = "put",
     .min         = 8,
     .max         = 32768,
     .is_put      = true,
     .is_told     = true,
     .post        = op_post_put,
     .environment = op_env_bulk},
    {.name        = "get",
     .min         = 8,
     .max         = 32768,
     .is_told     = true,
     .post        = op_post_get,
     .end         = op_end_get,
     .environment = op_env_bulk},
    {.name        = "list_put",
     .min         = 8,
     .max         = LISTS_MAX,
     .is_put      = true,
     .is_told     = true,
     .is_list     = true,
     .environment = op_env_few},
    {.name        = "list_get",
     .min         = 8,
     .max         = LISTS_MAX,
     .is_told     = true,
     .is_list     = true,
     .end         = op_end_get,
     .environment = op_env_few},
    {.name        = "atomic",
     .min         = 8,
     .max         = 8,
     .post        = op_post_atomic,
     .end         = op_end_atomic,
     .environment = op_env_atomic},
    {.name        = "tag_eager",
     .min         = 8,
     .max         = 8000,
     .is_tag      = true,
     .post        = op_post_tag,
     .environment = op_env_bulk},
    {.name        = "tag_rndv",
     .min         = 16384,
     .max         = 65536,
     .is_tag      = true,
     .is_told     = true,
     .post        = op_post_tag,
     .environment = op_env_rndv},
    {.name        = "strided",
     .min         = 65536,
     .max         = 65536,
     .is_tag      = true,
     .is_told     = true,
     .pieces      = 65536 / (STEP / 2),
     .post        = op_post_tag,
     .environment = op_env_lists},
    {.name = NULL}};

const struct op_kind *op_find(const char *name)
{
    for (const struct op_kind *op = op_kinds; op->name != NULL; op++) {
        if (!strcmp(op->name, name)) {
            return op;
        }
    }
    return NULL;
}

const char *op_names(void)
{
    static char names[256];
    size_t length = 0;

    for (const struct op_kind *op = op_kinds; op->name != NULL; op++) {
        length += snprintf(names + length, sizeof(names) - length, "%s%s",
                           (op == op_kinds) ? "" : ", ", op->name);
    }
    return names;
}

void op_set_environment(const struct op_kind *op)
{
    const char *const *entry = op->environment;
    char name[64];

    for (; (entry != NULL) && (*entry != NULL); entry++) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        setenv(name, strchr(*entry, '=') + 1, 0);
    }
}

static ucp_mem_h op_map(void *address, size_t length)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .address = address,
        .length  = length,
        .flags   = ledger->options.pages_out ? UCP_MEM_MAP_NONBLOCK : 0,
    };
    ucp_mem_h memh;

    if (ucp_mem_map(rank.context, &params, &memh) != UCS_OK) {
        rank_fail("no memory of UCP");
    }
    return memh;
}

static void op_begin_slots(struct peer *peer, struct slot **slots)
{
    unsigned pieces = op_kind()->pieces;
    struct slot *slot;

    *slots = calloc(ledger->options.window, sizeof(**slots));
    for (unsigned i = 0; i < ledger->options.window; i++) {
        slot         = &(*slots)[i];
        slot->peer   = peer;
        slot->number = i;
        slot->buffer = malloc(op_room());
        slot->list   = calloc(pieces + 1, sizeof(*slot->list));
        for (unsigned j = 0; j < pieces; j++) {
            slot->list[j].buffer = slot->buffer + (j * STEP);
            slot->list[j].length = STEP / 2;
        }
    }
}

/* Registers the buffers of rendezvous before any fault: UCX 1.13 ends in an
 * assertion if it cannot. */
static void op_map_slots(struct slot *slots)
{
    for (unsigned i = 0; op_kind()->is_told && (i < ledger->options.window);
         i++) {
        slots[i].memh = op_map(slots[i].buffer, op_room());
    }
}

static void op_end_slots(struct slot *slots)
{
    for (unsigned i = 0; (slots != NULL) && (i < ledger->options.window); i++) {
        lists_end_slot(&slots[i]);
        if (slots[i].memh != NULL) {
            ucp_mem_unmap(rank.context, slots[i].memh);
        }
        free(slots[i].buffer);
        free(slots[i].list);
    }
    free(slots);
}

void op_begin_peer(struct peer *peer)
{
    if (ledger_sends(rank.me)) {
        op_begin_slots(peer, &peer->out);
    }
    if (ledger_sends(peer->rank) && op_kind()->is_tag) {
        op_begin_slots(peer, &peer->in);
        op_map_slots(peer->in);
    }
}

void op_end_peer(struct peer *peer)
{
    op_end_slots(peer->out);
    op_end_slots(peer->in);
}

void op_begin(void)
{
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = AM_ID,
        .cb = op_am_handler,
    };
    int sharing = ledger->options.pages_out ? MAP_SHARED : MAP_PRIVATE;

    rank.memory_length = op_put_at(ledger->options.ranks, 0);
    rank.memory        = mmap(NULL, rank.memory_length, PROT_READ | PROT_WRITE,
                              MAP_ANONYMOUS | sharing, -1, 0);
    if (rank.memory == MAP_FAILED) {
        rank_fail("no memory");
    }
    for (unsigned i = 0; i < ledger->options.window; i++) {
        data_fill(rank.memory + op_get_at(i), op_kind()->max,
                  op_id(rank.me, ANYBODY, i));
    }
    rank.memh = op_map(rank.memory, rank.memory_length);
    if (ucp_worker_set_am_recv_handler(rank.worker, &handler) != UCS_OK) {
        rank_fail("no handler of messages");
    }
}

/* Notes the page faults of the device that this rank has waited for. */
static void op_note_faults(void)
{
    uint64_t (*faults)(void);

    *(void **)&faults = dlsym(RTLD_DEFAULT, "softhca_page_faults");
    /* a NIC does not tell: not judged */
    ledger->rank[rank.me].page_faults = (faults == NULL) ? 1 : faults();
}

bool op_is_one_sided(void)
{
    return op_kind()->is_put || (op_kind()->end != NULL);
}

void op_end(void)
{
    op_note_faults();
    ucp_mem_unmap(rank.context, rank.memh);
    munmap(rank.memory, rank.memory_length);
}

void op_page_out(void)
{
    static unsigned calls;

    if (ledger->options.pages_out && (calls < PAGE_OUT_CALLS * PAGE_OUT_MAX) &&
        (++calls % PAGE_OUT_CALLS == 0)) {
        madvise(rank.memory, rank.memory_length, MADV_DONTNEED);
    }
}

void op_receive(struct peer *peer)
{
    struct slot *slot;

    if (op_kind()->is_put) {
        op_check_puts(peer);
    }
    for (unsigned i = 0; (peer->in != NULL) && (i < ledger->options.window) &&
                         (peer->waited < ledger->options.ops);
         i++) {
        slot = &peer->in[peer->waited % ledger->options.window];
        if (slot->parts != 0) {
            return;
        }
        op_post_receive(peer, slot);
    }
}

void op_cancel(struct peer *peer)
{
    for (unsigned i = 0; (peer->in != NULL) && (i < ledger->options.window);
         i++) {
        if (peer->in[i].request != NULL) {
            ucp_request_cancel(rank.worker, peer->in[i].request);
        }
    }
}

static bool op_has_receives(const struct peer *peer)
{
    for (unsigned i = 0; (peer->in != NULL) && (i < ledger->options.window);
         i++) {
        if (peer->in[i].parts != 0) {
            return true;
        }
    }
    return false;
}

/* Returns true if the source of a flow has ended, and all that it sent has
 * arrived: other receives are of sends that failed. */
bool op_is_all_sent(const struct peer *peer)
{
    const struct flow *flow = ledger_flow(peer->rank, rank.me);
    unsigned num            = 0;

    if (!flow->is_complete) {
        return false;
    }
    for (uint32_t i = 0; i < ledger->options.ops; i++) {
        num += (flow->sent[i] == OP_OK);
    }
    return peer->checked >= num;
}

bool op_is_received(const struct peer *peer)
{
    bool is_counted = (op_kind()->end == NULL) && ledger_sends(peer->rank);

    if (op_has_receives(peer)) {
        return false;
    }
    return !is_counted ||
           (peer->in != NULL ? peer->waited : peer->checked) >=
               ledger->options.ops ||
           ledger_is_broken(rank.me, peer->rank);
}
