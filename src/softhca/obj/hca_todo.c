/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Deferred work of a thread that is inside the device: see hca_todo.h. */
#include "hca_todo.h"

__thread struct hca_todo hca_todo;

bool hca_todo_add_held(uint32_t cqn)
{
    for (unsigned i = 0; i < hca_todo.num_held; i++) {
        if (hca_todo.held[i] == cqn) {
            return true;
        }
    }
    if ((hca_todo.depth == 0) || (hca_todo.num_held == HCA_TODO_HELD)) {
        return false;
    }
    hca_todo.held[hca_todo.num_held++] = cqn;
    return true;
}

void hca_todo_add_failed(uint32_t qpn)
{
    if (hca_todo.num_failed < HCA_TODO_FAILED) {
        hca_todo.failed[hca_todo.num_failed++] = qpn;
    }
}

void hca_todo_add_overrun(uint32_t cqn)
{
    hca_todo_add_failed(cqn | HCA_TODO_IS_CQ);
}
