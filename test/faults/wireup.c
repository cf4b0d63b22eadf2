/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Preloaded by test/faults/iodemo: connects endpoints of sockets (ucp_listener)
 * by addresses of workers, which the two sides exchange over TCP. UCP itself
 * takes the address of the device from its connection manager: rdma_cm's is of
 * UCX's own InfiniBand transports, and TCP's leads to TCP only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define WIREUP_MAX_ADDRESS 65536
#define WIREUP_SECONDS     5

/* Polls of a worker from one look for connections to the next */
#define WIREUP_POLLS 1000

#define NEXT(_name) ((__typeof__(&(_name)))dlsym(RTLD_NEXT, #_name))

/* A connection request: the address of the peer's worker */
typedef struct wireup {
    struct sockaddr_storage peer;
    uint32_t length;
    char address[WIREUP_MAX_ADDRESS];
} wireup_t;

/* The only listener of the process */
static struct {
    int fd;
    ucp_worker_h worker;
    ucp_listener_conn_handler_t handler;
} wireup_listener = {.fd = -1};

/* Sends the address of @worker, and receives that of the peer. */
static wireup_t *wireup_exchange(int fd, ucp_worker_h worker)
{
    const struct timeval limit = {.tv_sec = WIREUP_SECONDS};
    wireup_t *peer             = calloc(1, sizeof(*peer));
    uint32_t length;
    ucp_address_t *address;
    size_t size;
    int is_sent;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if ((peer == NULL) ||
        (ucp_worker_get_address(worker, &address, &size) != UCS_OK)) {
        free(peer);
        return NULL;
    }
    length  = size;
    is_sent = (send(fd, &length, sizeof(length), MSG_NOSIGNAL) ==
               sizeof(length)) &&
              (send(fd, address, size, MSG_NOSIGNAL) == (ssize_t)size);
    ucp_worker_release_address(worker, address);
    if (!is_sent ||
        (recv(fd, &peer->length, sizeof(peer->length), MSG_WAITALL) !=
         sizeof(peer->length)) ||
        (peer->length > sizeof(peer->address)) ||
        (recv(fd, peer->address, peer->length, MSG_WAITALL) !=
         (ssize_t)peer->length)) {
        free(peer);
        return NULL;
    }
    return peer;
}

static wireup_t *wireup_connect(ucp_worker_h worker,
                                const ucs_sock_addr_t *address)
{
    int fd         = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    wireup_t *peer = NULL;

    if ((fd >= 0) && (connect(fd, address->addr, address->addrlen) == 0)) {
        peer = wireup_exchange(fd, worker);
    }
    if (fd >= 0) {
        close(fd);
    }
    return peer;
}

static void wireup_accept(void)
{
    struct sockaddr_storage from = {0};
    socklen_t length             = sizeof(from);
    wireup_t *peer;
    int fd;

    fd = accept4(wireup_listener.fd, (struct sockaddr *)&from, &length,
                 SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    peer = wireup_exchange(fd, wireup_listener.worker);
    close(fd);
    if (peer != NULL) {
        peer->peer = from;
        wireup_listener.handler.cb((ucp_conn_request_h)peer,
                                   wireup_listener.handler.arg);
    }
}

/* --- in the place of UCP's ------------------------------------------------ */

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    static __typeof__(&ucp_worker_progress) next;
    static unsigned polls;

    if (next == NULL) {
        next = NEXT(ucp_worker_progress);
    }
    if ((worker == wireup_listener.worker) && (++polls % WIREUP_POLLS == 0)) {
        wireup_accept();
    }
    return next(worker);
}

ucs_status_t ucp_listener_create(ucp_worker_h worker,
                                 const ucp_listener_params_t *params,
                                 ucp_listener_h *listener_p)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if ((bind(fd, params->sockaddr.addr, params->sockaddr.addrlen) != 0) ||
        (listen(fd, 64) != 0)) {
        close(fd);
        return UCS_ERR_BUSY;
    }
    wireup_listener.fd      = fd;
    wireup_listener.worker  = worker;
    wireup_listener.handler = params->conn_handler;
    *listener_p             = (ucp_listener_h)&wireup_listener;
    return UCS_OK;
}

void ucp_listener_destroy(ucp_listener_h listener)
{
    (void)listener;
    close(wireup_listener.fd);
    wireup_listener.worker = NULL;
}

ucs_status_t ucp_listener_reject(ucp_listener_h listener,
                                 ucp_conn_request_h request)
{
    (void)listener;
    free(request);
    return UCS_OK;
}

ucs_status_t ucp_conn_request_query(ucp_conn_request_h request,
                                    ucp_conn_request_attr_t *attr)
{
    attr->client_address = ((wireup_t *)request)->peer;
    return UCS_OK;
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params,
                           ucp_ep_h *ep_p)
{
    static __typeof__(&ucp_ep_create) next;
    ucp_ep_params_t by_address = *params;
    ucs_status_t status;
    wireup_t *peer;

    peer = (params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST) ?
               (wireup_t *)params->conn_request :
               wireup_connect(worker, &params->sockaddr);
    if (peer == NULL) {
        return UCS_ERR_UNREACHABLE;
    }
    by_address.field_mask &=
        ~(UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_SOCK_ADDR |
          UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS);
    by_address.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    by_address.address = (const ucp_address_t *)peer->address;
    next               = NEXT(ucp_ep_create);
    status             = next(worker, &by_address, ep_p);
    free(peer);
    return status;
}

/* The addresses of sockets; the endpoint has none. */
ucs_status_t ucp_ep_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    (void)ep;
    memset(&attr->local_sockaddr, 0, sizeof(attr->local_sockaddr));
    memset(&attr->remote_sockaddr, 0, sizeof(attr->remote_sockaddr));
    attr->local_sockaddr.ss_family = attr->remote_sockaddr.ss_family = AF_INET;
    return UCS_OK;
}
