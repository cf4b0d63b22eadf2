/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Address vectors and handles.
 */
#ifndef UVERBS_AH_H
#define UVERBS_AH_H

#include "uverbs.h"

/* Convert the address vector of MODIFY_QP and QUERY_QP. */
void uverbs_dest_in(const struct ib_uverbs_qp_dest *in,
                    struct ibv_ah_attr *out);
void uverbs_dest_out(const struct hca_path *in, uint8_t port,
                     struct ib_uverbs_qp_dest *out);

/* Checks the program's address vector for this device, and converts it, except
 * the MAC (uverbs_path_resolve()). @return 0 or -EINVAL. */
int uverbs_path(const struct uverbs_ctx *ctx, const struct ibv_ah_attr *attr,
                struct hca_path *path);

/* Sets the MAC of the path's GID on RoCE; does nothing on InfiniBand.
 * @return 0 or -EHOSTUNREACH: no device has that GID. */
int uverbs_path_resolve(const struct uverbs_ctx *ctx, struct hca_path *path);

#endif
