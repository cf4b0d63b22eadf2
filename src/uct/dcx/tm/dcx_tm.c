/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching of an interface: opened and closed; see dcx_tm.h.
 */
#include "dcx_tm.h"


ucs_status_t uct_dcx_tm_init(uct_dcx_tm_t *tm, uct_dcx_queues_t *queues,
                             unsigned num_tags,
                             const uct_iface_params_t *params)
{
    return uct_dcx_tm_cmd_init(&tm->cmd, queues, num_tags);
}


void uct_dcx_tm_cleanup(uct_dcx_tm_t *tm)
{
    uct_dcx_tm_cmd_cleanup(&tm->cmd);
}
