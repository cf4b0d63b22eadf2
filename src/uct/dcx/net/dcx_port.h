/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A port of the device, and the options of its paths through the network.
 * Resolved when the interface opens and read-only after that, except @neigh.
 *
 * net/ is the room of addresses and paths: ports, GIDs, neighbours, targets,
 * and the address vectors to them (dcx_port_addr.h). Called when UCT lists
 * devices or asks if a peer is reachable, when an interface opens, when
 * endpoints are created, and for answers of flow control. It must not know
 * queues, nor the users of a path.
 */
#ifndef UCT_DCX_PORT_H
#define UCT_DCX_PORT_H

#include "uct/dcx/base/dcx_config.h"
#include "uct/dcx/mem/dcx_md.h"
#include "dcx_neigh.h"
#include "dcx_routes.h"


/* ibv_port_attr.active_speed, 100 Gb/s for each lane */
#define UCT_DCX_SPEED_NDR 128

/* LIDs of a port: 2^7, as an LMC has three bits */
#define UCT_DCX_MAX_LIDS 128


typedef struct uct_dcx_port {
    const uct_dcx_device_t *dev;
    char name[UCT_DEVICE_NAME_MAX]; /* "mlx5_0:1" */
    uint8_t num;
    struct ibv_port_attr attr;
    enum ibv_mtu mtu;
    union ibv_gid gid;
    uint8_t gid_index;
    uint8_t gid_type; /* enum ibv_gid_type */
    uint16_t pkey;    /* bit 15: full member */
    uint16_t pkey_index;
    uint8_t sl;
    uint8_t reverse_sl; /* of a peer's answers; on RoCE their priority */
    uint8_t is_ordered; /* puts of one DCI reach the peer's
                         * memory in the order of posting */
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t is_global; /* each packet has a GRH */
    uint8_t flid_route;
    uint8_t num_paths;
    uint8_t num_bits;                    /* entries of @path_bits */
    uint8_t path_bits[UCT_DCX_MAX_LIDS]; /* low bits of the LIDs of
                                          * each path; 0 on RoCE */
    uint16_t path_factor;                /* difference of UDP source ports */
    uint8_t prefix_len;      /* RoCE v2: leading bits of the IP address
                            * that a peer must share; 0: none */
    unsigned netdev;         /* RoCE v2: index of the network interface
                            * that routes to a peer have to begin at;
                            * 0: any */
    uct_dcx_routes_t routes; /* RoCE v2, if @netdev is set */
    uct_dcx_neigh_t neigh;   /* RoCE */
    uint32_t plain_pkey;     /* pkey, big endian, of the peers whose
                            * address vector is made by the short way
                            * of uct_dcx_port_make_av();
                            * UINT32_MAX: none */
} uct_dcx_port_t;


static inline int uct_dcx_port_is_roce(const uct_dcx_port_t *port)
{
    return port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static inline unsigned uct_dcx_port_mtu_bytes(const uct_dcx_port_t *port)
{
    return 128u << port->mtu;
}


/* Returns 1 if the domain may use port @num with attributes @attr: if
 * UCX_DCX_SUBNET_PREFIX is not set, the port is Ethernet, or its first GID has
 * that prefix. Returns 0 if the GID cannot be read. */
int uct_dcx_port_in_subnet(const uct_dcx_md_t *md, unsigned num,
                           const struct ibv_port_attr *attr);

/* Lists for UCT the names ("mlx5_0:1") of the active ports that the domain may
 * use; UCT frees the list. Returns UCS_ERR_NO_DEVICE if the device has no
 * DC. */
ucs_status_t uct_dcx_port_query_devices(uct_md_h md,
                                        uct_tl_device_resource_t **devices_p,
                                        unsigned *num_devices_p);

/* Finds the port @dev_name ("mlx5_0:1") and resolves the options of the path.
 * Logs errors with the name of the option. */
ucs_status_t uct_dcx_port_init(uct_dcx_port_t *port, uct_dcx_md_t *md,
                               const char *dev_name,
                               const uct_dcx_iface_config_t *config);
void uct_dcx_port_cleanup(uct_dcx_port_t *port);

/* Part of uct_dcx_port_init(): sets the options of a path except those below.
 * Logs errors. */
ucs_status_t uct_dcx_port_init_path(uct_dcx_port_t *port,
                                    const uct_dcx_iface_config_t *config);

/* Part of uct_dcx_port_init(): sets @sl, @reverse_sl and @is_ordered. Logs
 * errors, also for UCX_DCX_DDP_ENABLE=y, which is not supported. */
ucs_status_t uct_dcx_port_init_sl(uct_dcx_port_t *port,
                                  const uct_dcx_iface_config_t *config);

/* Part of uct_dcx_port_init(): selects the port's GID. On RoCE v2 it also sets
 * @prefix_len and @netdev by ROCE_REACHABILITY_MODE. Logs errors. */
ucs_status_t uct_dcx_port_init_gid(uct_dcx_port_t *port,
                                   const uct_dcx_iface_config_t *config);


/* Fills in the fields of an address handle that depend on the port, not on a
 * peer. */
void uct_dcx_port_fill_ah(const uct_dcx_port_t *port,
                          struct ibv_ah_attr *ah_attr);


/* Return the latency in seconds and the bandwidth in bytes/second of one
 * direction: UCX compares them with those of other transports. */
double uct_dcx_port_latency(const uct_dcx_port_t *port);
double uct_dcx_port_bandwidth(const uct_dcx_port_t *port);

#endif
