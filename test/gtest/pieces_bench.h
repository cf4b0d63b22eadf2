/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of keys over long lists: registered memory, random blocks in
 * it, a key over any number of them, and plain loops that compute the expected
 * contents.
 */
#ifndef DCX_TEST_PIECES_BENCH_H
#define DCX_TEST_PIECES_BENCH_H

#include "devx_bench.h"

#include <malloc.h>
#include <random>
#include <sys/mman.h>

/* Returns memory in a mapping of its own, of which no whole page was touched:
 * once it is registered, the device can share it with peers, which then copy
 * without a system call. */
inline std::vector<uint8_t> pieces_untouched(size_t size)
{
    constexpr uintptr_t page = 4096;

    mallopt(M_MMAP_THRESHOLD, 65536);
    std::vector<uint8_t> bytes(size);
    uintptr_t start = ((uintptr_t)bytes.data() + page - 1) & -page;
    uintptr_t end   = ((uintptr_t)bytes.data() + size) & -page;
    HCA_CHECK_CALL(madvise((void *)start, end - start, MADV_DONTNEED) == 0);
    return bytes;
}

/* Registered memory; its bytes depend on their position */
class pieces_mem {
public:
    pieces_mem(struct ibv_pd *pd, size_t size, uint8_t fill) :
        pieces_mem(pd, std::vector<uint8_t>(size), fill)
    {
    }

    pieces_mem(struct ibv_pd *pd, std::vector<uint8_t> memory, uint8_t fill) :
        bytes(std::move(memory))
    {
        mr = ibv_reg_mr(pd, bytes.data(), bytes.size(), ACCESS_ALL);
        HCA_CHECK_CALL(mr != NULL);
        for (size_t i = 0; i < bytes.size(); i++) {
            bytes[i] = i * 7 + (i >> 8) + fill;
        }
    }

    ~pieces_mem() { EXPECT_EQ(0, ibv_dereg_mr(mr)); }

    pieces_mem(const pieces_mem &) = delete;

    uint64_t addr(size_t offset = 0) const
    {
        return (uintptr_t)bytes.data() + offset;
    }

    std::vector<uint8_t> bytes;
    struct ibv_mr *mr;
};

/* Blocks of a piece of memory, one after the other in the space of a key */
struct pieces_blocks {
    struct block {
        size_t offset;
        uint32_t length;
    };

    /* Returns `count` blocks of 1 to 64 bytes, some of them adjacent; for an
     * odd seed, not in order of addresses. */
    static pieces_blocks random(unsigned count, unsigned seed)
    {
        std::mt19937 rand(seed);
        pieces_blocks blocks;
        size_t offset = rand() % 64;

        for (unsigned i = 0; i < count; i++) {
            uint32_t length = 1 + rand() % 64;

            blocks.list.push_back({offset, length});
            blocks.length += length;
            offset += length + ((rand() % 4) ? rand() % 64 : 0);
        }
        if (seed % 2) {
            std::shuffle(blocks.list.begin(), blocks.list.end(), rand);
        }
        return blocks;
    }

    std::vector<uint8_t> gather(const std::vector<uint8_t> &from) const
    {
        std::vector<uint8_t> to;

        for (const auto &each : list) {
            to.insert(to.end(), from.begin() + each.offset,
                      from.begin() + each.offset + each.length);
        }
        return to;
    }

    /* Copies the first @count bytes of @from to the blocks of @to. */
    void scatter(std::vector<uint8_t> &to, const std::vector<uint8_t> &from,
                 size_t count) const
    {
        size_t at = 0;

        for (const auto &each : list) {
            for (uint32_t i = 0; (i < each.length) && (at < count); i++) {
                to[each.offset + i] = from[at++];
            }
        }
    }

    std::vector<block> list;
    uint64_t length = 0;
};

/* A key over blocks. If they do not fit into a command, it is a key over other
 * keys, each of which has PART of the blocks. */
class pieces_key {
public:
    static constexpr unsigned PART = 4000;

    pieces_key(const hca_device &dev, const pieces_mem &mem,
               const pieces_blocks &blocks)
    {
        std::vector<devx_klm> parts, klms;
        uint64_t length = 0;

        for (const auto &block : blocks.list) {
            klms.push_back(
                {mem.addr(block.offset), block.length, mem.mr->lkey});
            length += block.length;
            if ((klms.size() == PART) || (&block == &blocks.list.back())) {
                parts.push_back({0, (uint32_t)length, make(dev, length, klms)});
                klms.clear();
                length = 0;
            }
        }
        key = (parts.size() == 1) ? parts[0].key :
                                    make(dev, blocks.length, parts);
    }

    ~pieces_key()
    {
        while (!m_keys.empty()) {
            m_keys.pop_back();
        }
    }

    uint32_t key;

private:
    uint32_t make(const hca_device &dev, uint64_t length,
                  const std::vector<devx_klm> &klms)
    {
        m_keys.push_back(std::make_unique<devx_mkey>(
            dev.ctx, devx_mkey_in(dev.pd, 0, length, klms)));
        HCA_CHECK_CALL(m_keys.back()->obj != NULL);
        return m_keys.back()->key;
    }

    std::vector<std::unique_ptr<devx_mkey>> m_keys;
};

#endif
