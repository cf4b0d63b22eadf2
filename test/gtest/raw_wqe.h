/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A send WQE of any transport service, built octoword by octoword so that a
 * test can spoil one field. Layouts are from mlx5dv.h; others (UMR as in
 * libmlx5's set_bind_wr(), XRC) are from rdma-core, providers/mlx5.
 */
#ifndef DCX_TEST_RAW_WQE_H
#define DCX_TEST_RAW_WQE_H

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <vector>

class raw_wqe {
public:
    explicit raw_wqe(uint8_t opcode, uint8_t opmod = 0) : bytes(16)
    {
        bytes[0]  = opmod;
        bytes[3]  = opcode;
        bytes[11] = MLX5_WQE_CTRL_CQ_UPDATE;
    }

    raw_wqe &imm(uint32_t value)
    {
        set32(12, value);
        return *this;
    }

    template <typename T> raw_wqe &add(const T &segment)
    {
        const uint8_t *ptr = (const uint8_t *)&segment;

        bytes.insert(bytes.end(), ptr, ptr + sizeof(segment));
        bytes.resize((bytes.size() + 15) / 16 * 16);
        return *this;
    }

    raw_wqe &raddr(const void *addr, uint32_t rkey)
    {
        struct mlx5_wqe_raddr_seg seg = {};

        at_raddr  = bytes.size();
        seg.raddr = htobe64((uintptr_t)addr);
        seg.rkey  = htobe32(rkey);
        return add(seg);
    }

    raw_wqe &atomic(uint64_t swap_add, uint64_t compare)
    {
        struct mlx5_wqe_atomic_seg seg = {};

        at_atomic    = bytes.size();
        seg.swap_add = htobe64(swap_add);
        seg.compare  = htobe64(compare);
        return add(seg);
    }

    raw_wqe &data(const void *addr, uint32_t length, uint32_t lkey)
    {
        struct mlx5_wqe_data_seg seg = {};

        at_data        = bytes.size();
        seg.byte_count = htobe32(length);
        seg.lkey       = htobe32(lkey);
        seg.addr       = htobe64((uintptr_t)addr);
        return add(seg);
    }

    /* Adds inline data of these bytes. */
    raw_wqe &inl(uint32_t length)
    {
        at_data = bytes.size();
        bytes.resize(at_data + (4 + length + 15) / 16 * 16);
        set32(at_data, length | MLX5_INLINE_SEG);
        memset(&bytes[at_data + 4], 0x5a, length);
        return *this;
    }

    unsigned num_bb() const { return (bytes.size() + 63) / 64; }

    /* Sets index, QP and size; a test may change them afterwards. */
    void finish(uint16_t index, uint32_t qpn)
    {
        set32(0, (bytes[0] << 24) | (index << 8) | bytes[3]);
        set32(4, (qpn << 8) | (bytes.size() / 16));
    }

    /* Signs the WQE, for QPs with signatures: wq_sig() in
     * providers/mlx5/qp.c */
    void sign()
    {
        uint8_t sum = 0;

        bytes[8] = 0;
        for (uint8_t byte : bytes) {
            sum ^= byte;
        }
        bytes[8] = ~sum;
    }

    void set_ds(unsigned ds) { bytes[7] = ds; }

    uint32_t get32(unsigned offset) const
    {
        uint32_t value;

        memcpy(&value, &bytes[offset], sizeof(value));
        return be32toh(value);
    }

    void set32(unsigned offset, uint32_t value)
    {
        value = htobe32(value);
        memcpy(&bytes[offset], &value, sizeof(value));
    }

    uint64_t get64(unsigned offset) const
    {
        return ((uint64_t)get32(offset) << 32) | get32(offset + 4);
    }

    void set64(unsigned offset, uint64_t value)
    {
        set32(offset, value >> 32);
        set32(offset + 4, value);
    }

    void flip(unsigned offset, uint8_t bits) { bytes[offset] ^= bits; }

    std::vector<uint8_t> bytes;

    /* start of each segment that occurs once */
    unsigned at_av = 0, at_xrc = 0, at_raddr = 0, at_atomic = 0, at_data = 0;
    unsigned at_umr = 0, at_mkey = 0, at_klm = 0;
};

#endif
