/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The DC target that all peers address. Created by verbs, but by DEVX if the
 * device matches tags, as verbs cannot attach a DCT to an XRQ, or for full
 * handshakes, which verbs cannot request. Called when an interface opens and
 * closes.
 */
#ifndef UCT_DCX_DCT_H
#define UCT_DCX_DCT_H

#include "uct/dcx/queue/dcx_queues.h"


/* Creates the target, and sets rx.dctn. Messages arrive from now on: the
 * receive queue, its completion queue and rx.dc_key are set up before. Logs
 * errors. */
ucs_status_t uct_dcx_dct_init(uct_dcx_queues_t *queues,
                              const uct_dcx_iface_config_t *config);

/* Destroys the target, if it exists: peers get no answer any longer. */
void uct_dcx_dct_cleanup(uct_dcx_queues_t *queues);

#endif
