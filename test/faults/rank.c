/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One rank: wires up, runs its operations and those of its peers, and closes
 * everything, each with a deadline. It uses an endpoint whose peer has lost its
 * own until an error is reported, or all operations have ended.
 */
#include "lists.h"
#include "pools.h"
#include "../times.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Operations of a flow that end before a rank is killed or stopped: by then its
 * endpoint is wired up, as they are more than dcx has initial credits for. As
 * many, if there are, are posted only when the rank is dead. */
#define AROUND_EVENT 64u

/* Milliseconds in which everything is back in its pool: longer than retries, or
 * answers to a dead peer (8 s) */
#define POOLS_MS 15000

/* Id of the messages of rank_greet() */
#define GREETING_ID 2

struct rank rank;

static const char *const phase_names[] = {
    [PHASE_START] = "starting", [PHASE_READY] = "ready",
    [PHASE_WIRED] = "wired up", [PHASE_DONE] = "done",
    [PHASE_CLOSED] = "closed",  [PHASE_FINISHED] = "finished",
};

void rank_fail(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    printf("FAIL: rank %u: ", rank.me);
    vprintf(format, list);
    printf("\n");
    va_end(list);
    fflush(stdout);
    _exit(2);
}

void rank_event(void)
{
    rank.last = time_now_us();
}

static void rank_need(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        rank_fail("%s: %s", what, ucs_status_string(status));
    }
}

/* --- waits ---------------------------------------------------------------- */

static void rank_print_slots(const struct peer *peer, const struct slot *slots,
                             const char *what)
{
    for (unsigned i = 0; (slots != NULL) && (i < ledger->options.window); i++) {
        if (slots[i].parts != 0) {
            printf("HANGS: rank %u: %s %u of %s, peer %u\n", rank.me, what,
                   slots[i].sequence, ledger->options.op->name, peer->rank);
        }
    }
}

static void rank_hangs(const char *what)
{
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        rank_print_slots(&rank.peer[i], rank.peer[i].out, "operation");
        rank_print_slots(&rank.peer[i], rank.peer[i].in, "receive");
    }
    rank_fail("nothing happens (%s): %lu operations posted, %u requests", what,
              (unsigned long)ledger->rank[rank.me].posted, rank.requests);
}

/* Fails if nothing has ended for the time of the deadline. */
static void rank_check_time(const char *what)
{
    if (time_now_us() - rank.last > ledger->options.deadline) {
        rank_hangs(what);
    }
}

static void rank_progress(const char *what)
{
    ucp_worker_progress(rank.worker);
    if (ledger->options.op->is_list) {
        lists_progress();
    }
    op_page_out();
    rank_check_time(what);
}

static bool rank_all_reached(int phase)
{
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        if ((ledger->rank[i].phase < phase) && !ledger->rank[i].is_dead) {
            return false;
        }
    }
    return true;
}

static bool rank_work(void);

/* Takes operations of other ranks as events: they find out themselves if
 * nothing happens. */
static void rank_see_others(uint64_t *seen)
{
    uint64_t posted = 0;

    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        posted += ledger->rank[i].posted;
    }
    if (posted != *seen) {
        *seen = posted;
        rank_event();
    }
}

/* Enters a phase, and waits for all living ranks, whose flows continue. */
static void rank_enter(int phase)
{
    uint64_t seen = 0;

    rank_event();
    ledger->rank[rank.me].phase = phase;
    while (!rank_all_reached(phase)) {
        rank_see_others(&seen);
        if (rank.worker == NULL) {
            usleep(100);
            rank_check_time(phase_names[phase]);
            continue;
        }
        rank_progress(phase_names[phase]);
        if (phase == PHASE_DONE) {
            rank_work();
        }
    }
}

/* --- endpoints ------------------------------------------------------------ */

void rank_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct peer *peer = arg;
    struct flow *flow = ledger_flow(rank.me, peer->rank);

    (void)ep;
    peer->has_failed     = true;
    flow->handler_status = status;
    flow->handler_calls++;
    rank_event();
}

/* Creates the endpoint to a peer; returns false if that died before. */
static bool rank_connect(struct peer *peer)
{
    const struct rank_info *info = &ledger->rank[peer->rank];
    ucp_ep_params_t params       = {
              .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
              .address         = (const ucp_address_t *)info->address,
              .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
              .err_handler.cb  = rank_ep_failed,
              .err_handler.arg = peer,
    };

    if (info->address_length == 0) {
        return false;
    }
    if (ledger->options.op->is_list) {
        lists_connect(peer);
        return true;
    }
    rank_need("endpoint", ucp_ep_create(rank.worker, &params, &peer->ep));
    rank_need("remote key",
              ucp_ep_rkey_unpack(peer->ep, info->key, &peer->key));
    return true;
}

/* --- wire-up -------------------------------------------------------------- */

static ucs_status_t rank_greeted(void *arg, const void *header,
                                 size_t header_length, void *data,
                                 size_t length,
                                 const ucp_am_recv_param_t *param)
{
    (void)arg;
    (void)header;
    (void)header_length;
    (void)length;
    (void)param;
    rank.peer[*(unsigned *)data].has_greeted = true;
    rank_event();
    return UCS_OK;
}

static void rank_set_greeted(void)
{
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = GREETING_ID,
        .cb = rank_greeted,
    };

    rank_need("handler of greetings",
              ucp_worker_set_am_recv_handler(rank.worker, &handler));
}

static bool rank_any_has_fault(void)
{
    bool has_fault = false;

    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        has_fault |= ledger->options.fault[i] != NULL;
    }
    return has_fault;
}

/* Returns true if @peer is killed before it posts its first operation: it does
 * not end a wire-up. */
static bool rank_is_killed_first(const struct peer *peer)
{
    const struct event *event = &ledger->options.event[peer->rank];

    return event->is_kill && (event->after == 0);
}

/* Returns true if endpoints to and from @peer are used, and can be wired up. */
static bool rank_meets(const struct peer *peer)
{
    return (peer->ep != NULL) && !rank_is_killed_first(peer) &&
           (ledger_sends(rank.me) || ledger_sends(peer->rank));
}

static void rank_greeting_ended(void *request, ucs_status_t status, void *arg)
{
    (void)arg;
    ucp_request_free(request);
    rank.requests--;
    rank_need("greeting", status);
}

/* Sends a message that the peer might reply to: UCP holds it back until the
 * peer has sent the id of its endpoint, which is the end of the wire-up. */
static void rank_greet(const struct peer *peer)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY,
        .cb.send      = rank_greeting_ended,
    };
    ucs_status_ptr_t result = ucp_am_send_nbx(
        peer->ep, GREETING_ID, NULL, 0, &rank.me, sizeof(rank.me), &param);

    if (UCS_PTR_IS_PTR(result)) {
        rank.requests++;
    } else {
        rank_need("greeting", UCS_PTR_STATUS(result));
    }
}

/* Ends the wire-up of all endpoints before the first operation of any rank, so
 * that the messages that a fault selects are none of a wire-up: UCX sends these
 * once, and waits for ever if one is lost (docs/known-issues.md). */
static void rank_wire_up(void)
{
    bool greets = rank_any_has_fault();
    bool is_wired;

    for (unsigned i = 0; greets && (i < ledger->options.ranks); i++) {
        if (rank_meets(&rank.peer[i])) {
            rank_greet(&rank.peer[i]);
        }
    }
    do {
        rank_progress("wire-up");
        is_wired = (rank.requests == 0);
        for (unsigned i = 0; greets && (i < ledger->options.ranks); i++) {
            is_wired &= !rank_meets(&rank.peer[i]) || rank.peer[i].has_greeted;
        }
    } while (!is_wired);
}

static void rank_closed(void *request, ucs_status_t status, void *arg)
{
    struct peer *peer = arg;

    (void)status;
    ucp_request_free(request);
    rank.requests--;
    peer->is_closed = true;
    rank_event();
}

/* Closes an endpoint; what it still has ends with an error if it is forced. */
static void rank_close(struct peer *peer, bool is_forced)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags     = is_forced ? UCP_EP_CLOSE_FLAG_FORCE : 0,
        .cb.send   = rank_closed,
        .user_data = peer,
    };
    ucs_status_ptr_t result;

    if (peer->list_ep != NULL) {
        lists_close(peer);
        peer->is_closed = true;
    }
    if (peer->ep == NULL) {
        return;
    }
    ucp_rkey_destroy(peer->key);
    result   = ucp_ep_close_nbx(peer->ep, &param);
    peer->ep = NULL;
    if (UCS_PTR_IS_PTR(result)) {
        rank.requests++;
    } else {
        peer->is_closed = true;
    }
}

/* --- work ----------------------------------------------------------------- */

/* Returns true if operation @number of a flow has ended, or the flow has, or
 * there is no such flow. */
static bool rank_has_ended(unsigned source, unsigned sink, unsigned number)
{
    int sent = OP_OK;

    if (ledger_sends(source) && (source != sink) &&
        !ledger_is_broken(source, sink)) {
        sent = ledger_flow(source, sink)->sent[number];
    }
    return (sent != OP_NONE) && (sent != OP_POSTED);
}

static unsigned rank_min(unsigned a, unsigned b)
{
    return (a < b) ? a : b;
}

/* Returns true if the endpoints to and from this rank are wired up, and all
 * others have sent some operations. UCX never ends the requests of an endpoint
 * whose peer dies before its wire-up. */
static bool rank_is_wired_up(void)
{
    unsigned ranks = ledger->options.ranks;
    unsigned last  = rank_min(ledger->options.ops, AROUND_EVENT) - 1;
    unsigned source;

    for (unsigned i = 0; i < ranks * ranks; i++) {
        source = i / ranks;
        if ((source == rank.me) && (rank.peer[i % ranks].posted == 0)) {
            continue; /* its event is due before it has sent to this peer */
        }
        if (!rank_has_ended(source, i % ranks,
                            (source == rank.me) ? 0 : last)) {
            return false;
        }
    }
    return true;
}

/* Returns the number of operations of a flow that this rank may post: the last
 * ones wait until the ranks that have to be killed are dead. */
static uint32_t rank_allowed(void)
{
    const struct options *options = &ledger->options;
    bool waits                    = false;
    unsigned most                 = rank_min(options->ops, AROUND_EVENT);

    for (unsigned i = 0; i < options->ranks; i++) {
        waits |= options->event[i].is_kill && !ledger->rank[i].is_dead;
    }
    if (!waits || options->event[rank.me].is_kill) {
        return options->ops;
    }
    return options->ops - rank_min(options->ops - most, AROUND_EVENT);
}

/* Returns true if this rank posts nothing more, as its event is due. */
static bool rank_is_due(const struct event *event)
{
    return event->is_set && (ledger->rank[rank.me].posted >= event->after);
}

/* Kills or stops this process when its time has come. */
static void rank_check_event(void)
{
    struct event *event = &ledger->options.event[rank.me];

    if (rank_is_due(event) && ((event->after == 0) || rank_is_wired_up())) {
        event->is_set = false;
        kill(getpid(), event->is_kill ? SIGKILL : SIGSTOP);
        rank_event();
    }
}

/* Returns true if the sink, which lives, has not looked at the memory of the
 * last put of the slot. */
static bool rank_is_unread(const struct peer *peer)
{
    const struct flow *flow = ledger_flow(rank.me, peer->rank);
    uint32_t before         = peer->posted - ledger->options.window;

    return ledger->options.op->is_put && !ledger->rank[peer->rank].is_dead &&
           (peer->posted >= ledger->options.window) &&
           (flow->sent[before] == OP_OK) && (flow->got[before] == 0);
}

static bool rank_has_ep(const struct peer *peer)
{
    return (peer->ep != NULL) || (peer->list_ep != NULL);
}

/* Posts operations in free slots, up to number @allowed. */
static void rank_post(struct peer *peer, uint32_t allowed)
{
    struct slot *slot;

    while (rank_has_ep(peer) && !peer->has_failed && (peer->posted < allowed) &&
           !rank_is_due(&ledger->options.event[rank.me])) {
        slot = &peer->out[peer->posted % ledger->options.window];
        if ((slot->parts != 0) || rank_is_unread(peer)) {
            return;
        }
        rank_check_event();
        op_post(peer, slot);
    }
}

static bool rank_is_out(const struct peer *peer)
{
    for (unsigned i = 0; (peer->out != NULL) && (i < ledger->options.window);
         i++) {
        if (peer->out[i].parts != 0) {
            return false;
        }
    }
    return (peer->out == NULL) || !rank_has_ep(peer) || peer->has_failed ||
           (peer->posted == ledger->options.ops);
}

/* Makes a new endpoint for the operations that are left, as the endpoint has
 * failed and all of its own have ended. */
static void rank_reconnect(struct peer *peer)
{
    rank_close(peer, true);
    peer->has_failed = false;
    rank_connect(peer);
}

/* Works on all flows to and from @peer; posts up to operation @allowed. Returns
 * true when they have ended. */
static bool rank_work_with(struct peer *peer, uint32_t allowed)
{
    struct flow *flow = ledger_flow(rank.me, peer->rank);
    bool is_out;

    if (peer->out != NULL) {
        rank_post(peer, allowed);
    }
    if (ledger_is_broken(rank.me, peer->rank)) {
        op_cancel(peer);
    } else {
        op_receive(peer);
        if ((peer->in != NULL) && op_is_all_sent(peer)) {
            op_cancel(peer);
        }
    }
    op_check_puts(peer);
    is_out = rank_is_out(peer);
    if (peer->has_failed && is_out) {
        if (!ledger->options.reconnects) {
            flow->is_broken = true;
        } else if ((peer->out != NULL) &&
                   (peer->posted < ledger->options.ops)) {
            rank_reconnect(peer);
            is_out = false;
        }
    }
    flow->is_complete = is_out;
    return is_out && op_is_received(peer);
}

static bool rank_work(void)
{
    uint32_t allowed = rank_allowed();
    bool is_done     = true;

    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        if (i != rank.me) {
            is_done &= rank_work_with(&rank.peer[i], allowed);
        }
    }
    return is_done;
}

/* --- begin and end -------------------------------------------------------- */

static void rank_publish(void)
{
    struct rank_info *info = &ledger->rank[rank.me];
    ucp_address_t *address;
    size_t length;
    void *key;

    rank_need("address",
              ucp_worker_get_address(rank.worker, &address, &length));
    rank_need("key",
              ucp_rkey_pack(rank.context, rank.memh, &key, &info->key_length));
    if ((length > MAX_ADDRESS) || (info->key_length > MAX_KEY)) {
        rank_fail("an address of %zu bytes, a key of %zu", length,
                  info->key_length);
    }
    memcpy(info->key, key, info->key_length);
    memcpy(info->address, address, length);
    info->address_length = length;
    info->memory         = (uintptr_t)rank.memory;
    ucp_rkey_buffer_release(key);
    ucp_worker_release_address(rank.worker, address);
}

static void rank_begin(void)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_RMA |
                    UCP_FEATURE_AMO64,
        .estimated_num_eps = ledger->options.ranks,
    };
    ucp_worker_params_t worker_params = {0};

    rank_need("context", ucp_init(&params, NULL, &rank.context));
    rank_need("worker",
              ucp_worker_create(rank.context, &worker_params, &rank.worker));
    if (ledger->options.op->is_list) {
        lists_begin();
    }
    if (!pools_begin()) {
        rank_fail("no interface of dcx shows its pools");
    }
    op_begin();
    rank_set_greeted();
    if (ledger->options.op->is_list) {
        lists_publish();
    }
    rank_publish(); /* the last: peers connect to a rank with an address */
}

/* Waits until nothing is in use of the pools of dcx, as at the beginning:
 * initiators of dead peers are the last to come back. */
static void rank_end_pools(void)
{
    while (!pools_are_back()) {
        ucp_worker_progress(rank.worker);
        op_drop_unexpected();
        if (time_now_us() - rank.last > time_slow(POOLS_MS) * 1000ull) {
            pools_print();
            rank_fail("something does not come back to its pool");
        }
    }
}

static void rank_end(void)
{
    bool is_open;

    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        rank_close(&rank.peer[i],
                   rank.peer[i].has_failed || ledger_is_broken(rank.me, i));
    }
    rank_event();
    do {
        rank_progress("endpoints that close");
        is_open = (rank.requests != 0);
    } while (is_open);
    rank_end_pools();
}

int rank_run(unsigned me)
{
    rank.me = me;
    rank_event();
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        rank.peer[i].rank = i;
    }
    rank_begin();
    rank_enter(PHASE_READY);
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        if ((i != me) && rank_connect(&rank.peer[i])) {
            op_begin_peer(&rank.peer[i]);
        }
    }
    rank_check_event(); /* nothing is posted to a rank that is killed here */
    rank_wire_up();
    rank_enter(PHASE_WIRED);
    ledger->rank[me].first = time_now_us();
    while (!rank_work()) {
        rank_check_event();
        rank_progress("operations");
    }
    rank_enter(PHASE_DONE);
    rank_work(); /* the last puts have ended */
    rank_end();
    rank_enter(PHASE_CLOSED);
    for (unsigned i = 0; i < ledger->options.ranks; i++) {
        op_end_peer(&rank.peer[i]);
    }
    if (ledger->options.op->is_list) {
        lists_end();
    }
    op_end();
    ucp_worker_destroy(rank.worker);
    ucp_cleanup(rank.context);
    ledger->rank[me].phase = PHASE_FINISHED;
    return 0;
}
