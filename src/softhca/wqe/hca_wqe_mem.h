/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory that a WQE's data segments name, in the process of its queue.
 */
#ifndef HCA_WQE_MEM_H
#define HCA_WQE_MEM_H

#include "hca_wqe.h"
#include "softhca/obj/hca_sgl.h"

/* hca_wqe_mem_map() for any segments */
enum hca_check hca_wqe_mem_map_list(const struct hca_qp *qp,
                                    const struct hca_wqe *wqe,
                                    struct hca_sgl *sgl);

/* Looks up the mkeys and appends the memory to @sgl. Inline data stays in @wqe,
 * to which @sgl then points. The caller must call hca_sgl_put(), also after an
 * error.
 * @return HCA_OK, or an error, logged. */
static inline enum hca_check hca_wqe_mem_map(const struct hca_qp *qp,
                                             const struct hca_wqe *wqe,
                                             struct hca_sgl *sgl)
{
    const struct hca_wqe_seg *seg = &wqe->segs[0];

    return ((wqe->num_segs == 1) && seg->is_inline && (seg->length > 0) &&
            hca_sgl_add(sgl, wqe->raw + seg->addr, seg->length)) ?
               HCA_OK :
               hca_wqe_mem_map_list(qp, wqe, sgl);
}

/* Writes @size bytes, the length of @sgl. @wqe is for the log.
 * @return HCA_OK, or HCA_CHECK_LKEY_FAULT, logged. */
enum hca_check hca_wqe_mem_put(const struct hca_wqe *wqe,
                               const struct hca_sgl *sgl, const void *data,
                               size_t size);

/* Writes the result of a READ or an atomic, of wqe->length bytes, to the memory
 * of its WQE. @return HCA_OK, or an error, logged. */
enum hca_check hca_wqe_mem_scatter(struct hca_qp *qp, const struct hca_wqe *wqe,
                                   const void *data);

#endif
