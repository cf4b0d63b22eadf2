/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Names of peers; see dcx_peer.h. An endpoint only has its peer's address
 * vector and process id.
 */
#include "dcx_peer.h"

#include <arpa/inet.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>


/* Returns the part of the vector with a GID. On InfiniBand bit 30 is set if
 * there is one (libmlx5, mlx5_create_ah()). */
static const uct_dcx_grh_t *uct_dcx_peer_grh(const uct_dcx_port_t *port,
                                             const uct_dcx_ep_t *ep)
{
    const uct_dcx_grh_t *grh;

    if (!(ep->flags & UCT_DCX_EP_FLAG_GRH)) {
        return NULL;
    }

    grh = &ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh;
    return (uct_dcx_port_is_roce(port) ||
            (grh->grh_gid_fl & htobe32(UCS_BIT(30)))) ?
               grh :
               NULL;
}


/* Writes the port that the vector leads to. Returns non-zero if it is @port
 * itself: then the peer is on this host. */
static int uct_dcx_peer_port(const uct_dcx_port_t *port, const uct_dcx_ep_t *ep,
                             char *text, size_t max)
{
    const uct_dcx_grh_t *grh = uct_dcx_peer_grh(port, ep);
    unsigned lid             = be16toh(ep->av.rlid);
    char gid[INET6_ADDRSTRLEN];

    if (grh == NULL) {
        ucs_snprintf_safe(text, max, "lid %u", lid);
        return ((lid ^ port->attr.lid) >> port->attr.lmc) == 0;
    }

    inet_ntop(AF_INET6, grh->rgid, gid, sizeof(gid));
    if (uct_dcx_port_is_roce(port)) {
        ucs_snprintf_safe(text, max, "gid %s", gid);
    } else {
        ucs_snprintf_safe(text, max, "lid %u, gid %s", lid, gid);
    }
    return !memcmp(grh->rgid, port->gid.raw, sizeof(grh->rgid));
}


void uct_dcx_peer_name(const uct_dcx_port_t *port, const uct_dcx_ep_t *ep,
                       char name[UCT_DCX_PEER_NAME_MAX])
{
    char where[80];
    int is_here = uct_dcx_peer_port(port, ep, where, sizeof(where));

    ucs_snprintf_safe(name, UCT_DCX_PEER_NAME_MAX,
                      "DCT 0x%x at %s, process %u%s%s%s",
                      uct_dcx_av_dctn(&ep->av), where, ep->pid,
                      is_here ? " on this host (" : "",
                      is_here ? ucs_get_host_name() : "", is_here ? ")" : "");
}
