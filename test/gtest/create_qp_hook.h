/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Intercepts ioctl(): a test can change the commands by which libmlx5 creates
 * queue pairs, as to values that libmlx5 never sends. Defines ioctl(): only one
 * file of a program can include this.
 */
#ifndef DCX_TEST_CREATE_QP_HOOK_H
#define DCX_TEST_CREATE_QP_HOOK_H

#include <gtest/gtest.h>

#include <cstdarg>
#include <dlfcn.h>
#include <functional>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

/* Called with the mlx5 part of each such command, unless it is empty */
inline std::function<void(struct mlx5_ib_create_qp *cmd)> create_qp_hook;

inline void create_qp_change(struct ib_uverbs_ioctl_hdr *cmd)
{
    for (unsigned i = 0; i < cmd->num_attrs; i++) {
        struct ib_uverbs_attr *attr = &cmd->attrs[i];

        if (attr->attr_id == UVERBS_ATTR_UHW_IN) {
            ASSERT_LE(sizeof(struct mlx5_ib_create_qp), attr->len);
            create_qp_hook((struct mlx5_ib_create_qp *)(uintptr_t)attr->data);
        }
    }
}

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept
{
    static auto next = (int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT,
                                                                  "ioctl");
    struct ib_uverbs_ioctl_hdr *cmd;
    va_list args;

    va_start(args, request);
    cmd = va_arg(args, struct ib_uverbs_ioctl_hdr *);
    va_end(args);
    if (create_qp_hook && (request == RDMA_VERBS_IOCTL) &&
        (cmd->object_id == UVERBS_OBJECT_QP) &&
        (cmd->method_id == UVERBS_METHOD_QP_CREATE)) {
        create_qp_change(cmd);
    }
    return next(fd, request, cmd);
}

#endif
