/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Umems over memory of every kind, and the program beside them. Part of the
 * program of test_devx_objects.cc.
 */
#include "devx_qp.h"

#include <thread>

namespace {

class devx_umems : public verbs_test {
};

/* --- what cannot be one --------------------------------------------------- */

struct umem_on_stack {
    const hca_device        &dev;
    devx_pages              stack{64};
    struct mlx5dv_devx_umem *umem  = NULL;
    int                     error = 0;
};

void *register_own_stack(void *arg)
{
    umem_on_stack *test = (umem_on_stack*)arg;

    test->umem  = mlx5dv_devx_umem_reg(test->dev.ctx, test->stack.addr,
                                       test->stack.size, 0);
    test->error = errno;
    return NULL;
}

TEST_P(devx_umems, stack_of_the_caller_is_refused)
{
    umem_on_stack test{dev};
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, test.stack.addr, test.stack.size);
    ASSERT_EQ(0, pthread_create(&thread, &attr, register_own_stack, &test));
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    EXPECT_EQ(nullptr, test.umem);
    EXPECT_EQ(EINVAL, test.error);
}

INSTANTIATE_TEST_SUITE_P(ib, devx_umems, testing::Values(0));

} /* namespace */
