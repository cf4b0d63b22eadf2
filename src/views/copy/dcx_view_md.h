/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The component "dcx_view" and its memory domain, which exists only once views
 * are enabled. Registration of memory or views does nothing, as the transport
 * copies by the processor. UCT calls it through the component, which the
 * interface registers (dcx_view_iface.c).
 */
#ifndef UCT_DCX_VIEW_MD_H
#define UCT_DCX_VIEW_MD_H

#include "uct/dcx/ucx/dcx_ucx.h"


extern uct_component_t uct_dcx_view_component;

#endif
