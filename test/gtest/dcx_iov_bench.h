/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory with strides, as tests describe it: entries in registered regions, and
 * where each of their bytes lies.
 */
#ifndef DCX_TEST_DCX_IOV_BENCH_H
#define DCX_TEST_DCX_IOV_BENCH_H

#include "dcx_loop.h"

#include <random>

using iovs = std::vector<uct_iov_t>;

/* Memory that is registered, of random bytes */
struct region {
    region(dcx_loop &loop, size_t length, unsigned seed) :
        bytes(length), m_md(loop.md())
    {
        std::mt19937 random(seed);

        for (auto &b : bytes) {
            b = random();
        }
        UCT_CALL(uct_md_mem_reg(m_md, bytes.data(), length,
                                UCT_MD_MEM_ACCESS_ALL, &memh));
    }

    ~region()
    {
        uct_md_mem_dereg(m_md, memh);
    }

    region(const region&) = delete;

    uct_iov_t at(size_t offset, size_t length, size_t stride = 0,
                 unsigned count = 1)
    {
        EXPECT_LE(offset + ((count == 0) ? 0 : (count - 1) * stride + length),
                  bytes.size());
        return {bytes.data() + offset, length, memh, stride, count};
    }

    std::vector<uint8_t> bytes;
    uct_mem_h            memh;

private:
    uct_md_h m_md;
};

/* Where each byte lies, in order */
inline std::vector<uint8_t*> places_of(const iovs &iov)
{
    std::vector<uint8_t*> list;

    for (const uct_iov_t &e : iov) {
        for (unsigned i = 0; i < e.count; i++) {
            for (size_t j = 0; j < e.length; j++) {
                list.push_back((uint8_t*)e.buffer + (i * e.stride) + j);
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
