/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Address vectors to targets; see dcx_target.h.
 */
#include "dcx_target.h"


/* Spreads the pairs of targets, ours and the peer's, over the 16 bits. */
static uint16_t uct_dcx_target_flow(uint32_t own_dctn, uint32_t dctn)
{
    return ((dctn ^ (own_dctn << 8)) * 0x9e3779b1u) >> 16;
}


/* The way that needs to be looked at. */
static ucs_status_t
uct_dcx_target_route(uct_dcx_port_t *port, uint32_t own_dctn,
                     const uct_dcx_target_t *target, uct_dcx_route_t *route,
                     uct_dcx_av_t *av, uct_dcx_grh_t *grh)
{
    ucs_status_t status;

    route->addr = &target->dev_addr;
    route->flow = uct_dcx_target_flow(own_dctn,
                                      uct_dcx_target_dctn(target->dctn));
    status      = uct_dcx_port_make_av(port, route, av, grh);
    if (status == UCS_OK) {
        uct_dcx_target_complete_av(av, target);
    }
    return status;
}


ucs_status_t
uct_dcx_target_make_answer_av(uct_dcx_port_t *port, uint32_t own_dctn,
                              const uct_dcx_target_t *target, uct_dcx_av_t *av,
                              uct_dcx_grh_t *grh)
{
    uct_dcx_route_t route = {.is_answer = 1};

    return uct_dcx_target_route(port, own_dctn, target, &route, av, grh);
}


ucs_status_t
uct_dcx_target_make_av(uct_dcx_port_t *port, uint32_t own_dctn,
                       const uct_dcx_target_t *target, unsigned path_index,
                       uct_dcx_av_t *av, uct_dcx_grh_t *grh)
{
    uct_dcx_route_t route = {.path_index = path_index};

    if ((path_index == 0) && uct_dcx_target_make_plain_av(port, target, av)) {
        return UCS_OK;
    }
    return uct_dcx_target_route(port, own_dctn, target, &route, av, grh);
}
