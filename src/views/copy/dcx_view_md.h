/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The component "dcx_view" and its memory domain, of which there is one as
 * soon as views are enabled and none before. It registers what UCP names,
 * memory or views, by doing nothing: its transport moves bytes by the
 * processor. Called by UCT.
 */
#ifndef UCT_DCX_VIEW_MD_H
#define UCT_DCX_VIEW_MD_H

#include "uct/dcx/ucx/dcx_ucx.h"


extern uct_component_t uct_dcx_view_component;

#endif
