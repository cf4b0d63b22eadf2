/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* A completion that stores its status, then runs a function of the test. */
#ifndef DCX_TEST_DCX_END_H
#define DCX_TEST_DCX_END_H

#include <functional>
#include <uct/api/uct.h>

struct dcx_end {
    explicit dcx_end(const std::function<void()> &call = nullptr) : then(call)
    {
        comp.func  = called;
        comp.count = 1;
    }

    static void called(uct_completion_t *comp)
    {
        dcx_end *self = (dcx_end *)comp; /* its first member */

        self->status = comp->status;
        self->count++;
        if (self->then) {
            self->then();
        }
    }

    uct_completion_t comp = {};
    ucs_status_t status   = UCS_INPROGRESS;
    unsigned count        = 0;
    std::function<void()> then;
};

#endif
