/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Registered memory of random bytes. dcx_iov_bench.h and dcx_layout_bench.h
 * describe pieces of it.
 */
#ifndef DCX_TEST_DCX_REGION_H
#define DCX_TEST_DCX_REGION_H

#include "dcx_loop.h"

#include <random>

struct dcx_region {
    dcx_region(dcx_loop &loop, size_t length, unsigned seed) :
        bytes(length), m_md(loop.md())
    {
        std::mt19937 random(seed);

        for (auto &b : bytes) {
            b = random();
        }
        UCT_CALL(uct_md_mem_reg(m_md, bytes.data(), length,
                                UCT_MD_MEM_ACCESS_ALL, &memh));
    }

    ~dcx_region() { release(); }

    dcx_region(const dcx_region &) = delete;

    void release()
    {
        if (memh != NULL) {
            UCT_CALL(uct_md_mem_dereg(m_md, memh));
            memh = NULL;
        }
    }

    std::vector<uint8_t> bytes;
    uct_mem_h memh = NULL;

private:
    uct_md_h m_md;
};

#endif
