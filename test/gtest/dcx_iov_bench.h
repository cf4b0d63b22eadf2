/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Strided memory for tests: I/O vectors over registered regions, and the
 * addresses of their bytes.
 */
#ifndef DCX_TEST_DCX_IOV_BENCH_H
#define DCX_TEST_DCX_IOV_BENCH_H

#include "dcx_region.h"

using iovs = std::vector<uct_iov_t>;

struct region : dcx_region {
    using dcx_region::dcx_region;

    uct_iov_t at(size_t offset, size_t length, size_t stride = 0,
                 unsigned count = 1)
    {
        EXPECT_LE(offset + ((count == 0) ? 0 : (count - 1) * stride + length),
                  bytes.size());
        return {bytes.data() + offset, length, memh, stride, count};
    }
};

/* Returns the address of each byte, in order. */
inline std::vector<uint8_t *> places_of(const iovs &iov)
{
    std::vector<uint8_t *> list;

    for (const uct_iov_t &e : iov) {
        for (unsigned i = 0; i < e.count; i++) {
            for (size_t j = 0; j < e.length; j++) {
                list.push_back((uint8_t *)e.buffer + (i * e.stride) + j);
            }
        }
    }
    return list;
}

inline std::vector<uint8_t> gathered(const iovs &iov)
{
    std::vector<uint8_t> data;

    for (uint8_t *place : places_of(iov)) {
        data.push_back(*place);
    }
    return data;
}

#endif
