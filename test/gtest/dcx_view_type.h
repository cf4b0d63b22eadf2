/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Datatypes with the offset of each byte, and the table of functions that open
 * views of their data.
 */
#ifndef DCX_TEST_DCX_VIEW_TYPE_H
#define DCX_TEST_DCX_VIEW_TYPE_H

#include "dcx_loop.h"

#include <algorithm>

/* C headers: a function may have the name of a structure */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "views/shape/shape_build.h"
#include "views/view/dcx_view_ops.h"
}
#pragma GCC diagnostic pop

/* A datatype as a list of nests, and as the shape built from them */
struct view_type {
    view_type(const std::vector<shape_nest_t> &list, ptrdiff_t distance) :
        nests(list), extent(distance)
    {
        shape_builder_t *builder = shape_build_begin(1 << 16);

        for (const auto &nest : nests) {
            shape_build_add(builder, &nest);
        }
        shape = shape_build_end(builder, extent);
        HCA_CHECK_CALL(shape != NULL);
    }

    ~view_type() { free(shape); }

    view_type(const view_type &) = delete;

    static shape_nest_t nest(ptrdiff_t offset, size_t bytes,
                             const std::vector<shape_dim_t> &dims = {})
    {
        shape_nest_t nest = {};

        nest.offset   = offset;
        nest.bytes    = bytes;
        nest.num_dims = dims.size();
        std::copy(dims.begin(), dims.end(), nest.dims);
        return nest;
    }

    /* Returns the offset of each byte of @count elements, in order, by a plain
     * loop over the nests. */
    std::vector<ptrdiff_t> places(size_t count) const
    {
        std::vector<ptrdiff_t> all;

        for (size_t i = 0; i < count; i++) {
            for (const auto &nest : nests) {
                add(all, nest, nest.num_dims,
                    nest.offset + (ptrdiff_t)i * extent);
            }
        }
        return all;
    }

    std::vector<shape_nest_t> nests;
    ptrdiff_t extent;
    shape_t *shape;

private:
    static void add(std::vector<ptrdiff_t> &all, const shape_nest_t &nest,
                    unsigned dims, ptrdiff_t offset)
    {
        for (size_t i = 0; (dims == 0) && (i < nest.bytes); i++) {
            all.push_back(offset + i);
        }
        for (size_t i = 0; (dims > 0) && (i < nest.dims[dims - 1].count); i++) {
            add(all, nest, dims - 1,
                offset + (ptrdiff_t)i * nest.dims[dims - 1].stride);
        }
    }
};

/* The table of functions; enables views. Create it before a domain is
 * opened. */
struct dcx_views {
    dcx_views() :
        ops((const uct_dcx_view_ops_t *)dlsym(
            dlopen(dcx_loop::module(), RTLD_NOW), UCT_DCX_VIEW_OPS))
    {
        HCA_CHECK_CALL(ops != NULL);
        HCA_CHECK_CALL(ops->version == UCT_DCX_VIEW_OPS_VERSION);
        HCA_CHECK_CALL(ops->enable()->mode != UCT_DCX_VIEW_OFF);
    }

    const uct_dcx_view_ops_t *operator->() const { return ops; }

    const uct_dcx_view_ops_t *ops;
};

#endif
