/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Looks up the functions of <uct/dcx/dcx.h> in the dcx module that dcx_loop
 * loads. Programs of users link with it; tests can load any build of it.
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
