/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The functions of <uct/dcx/dcx.h>, as exported by the dcx that a dcx_loop has
 * loaded: programs link with it, but tests may load another build.
 */
#ifndef DCX_TEST_DCX_LAYOUTS_H
#define DCX_TEST_DCX_LAYOUTS_H

#include "dcx_loop.h"
#include "uct/dcx/dcx.h"

#define DCX_LAYOUTS_FUNCTION(_name) \
    decltype(uct_dcx_layout_##_name) *_name = \
        (decltype(uct_dcx_layout_##_name) *)dlsym( \
            dlopen(dcx_loop::module(), RTLD_NOW), "uct_dcx_layout_" #_name)

struct dcx_layouts {
    DCX_LAYOUTS_FUNCTION(create);
    DCX_LAYOUTS_FUNCTION(set);
    DCX_LAYOUTS_FUNCTION(test);
    DCX_LAYOUTS_FUNCTION(length);
    DCX_LAYOUTS_FUNCTION(pieces);
    DCX_LAYOUTS_FUNCTION(query);
};

#endif
