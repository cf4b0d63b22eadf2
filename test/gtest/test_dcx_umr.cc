/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The WQEs of layouts, field by field against those that libmlx5's builders
 * write. Part of the program of test_dcx_key.cc.
 */
#include "dcx_key_bench.h"

namespace {

/* --- fields --------------------------------------------------------------- */

struct umr_field {
    std::string name;
    unsigned offset, size;
};

/* Fields in front of the translations: each byte, by offsets of mlx5dv.h */
std::vector<umr_field> umr_fields(size_t num_bytes)
{
    /* clang-format off */
    std::vector<umr_field> fields = {
        {"ctrl.opmod_idx_opcode", 0, 4}, {"ctrl.qpn_ds", 4, 4},
        {"ctrl.signature", 8, 1}, {"ctrl.stream", 9, 2},
        {"ctrl.fm_ce_se", 11, 1}, {"ctrl.imm", 12, 4},
        {"umr.flags", 16, 1}, {"umr.rsvd0", 17, 3},
        {"umr.klm_octowords", 20, 2}, {"umr.translation_offset", 22, 2},
        {"umr.mkey_mask", 24, 8}, {"umr.rsvd1", 32, 32},
        {"mkey.free", 64, 1}, {"mkey.reserved1", 65, 1},
        {"mkey.access_flags", 66, 1}, {"mkey.sf", 67, 1},
        {"mkey.qpn_mkey", 68, 4}, {"mkey.reserved2", 72, 4},
        {"mkey.flags_pd", 76, 4}, {"mkey.start_addr", 80, 8},
        {"mkey.len", 88, 8}, {"mkey.bsf_octword_size", 96, 4},
        {"mkey.reserved3", 100, 16}, {"mkey.translations", 116, 4},
        {"mkey.log_page_size", 120, 8}};
    /* clang-format on */

    for (unsigned at = 128; at < num_bytes; at += 4) {
        fields.push_back({"translation " + std::to_string((at - 128) / 16) +
                              ", word " + std::to_string(at % 16 / 4),
                          at, 4});
    }
    return fields;
}

std::string umr_word(const std::vector<uint8_t> &wqe, const umr_field &field)
{
    static const char digits[] = "0123456789abcdef";
    std::string text;

    for (unsigned i = field.offset; i < field.offset + field.size; i++) {
        text += digits[wqe.at(i) >> 4];
        text += digits[wqe.at(i) & 15];
    }
    return text;
}

/* Returns the differences, except those of fields that @except names. */
std::string umr_diff(const std::vector<uint8_t> &theirs,
                     const std::vector<uint8_t> &ours,
                     const std::string &except = "")
{
    std::string diff;

    if (theirs.size() != ours.size()) {
        return "size: " + std::to_string(theirs.size()) + ", " +
               std::to_string(ours.size()) + "\n";
    }
    for (const auto &field : umr_fields(ours.size())) {
        if ((except.find(field.name) == std::string::npos) &&
            (umr_word(theirs, field) != umr_word(ours, field))) {
            diff += field.name + ": libmlx5 " + umr_word(theirs, field) +
                    ", dcx " + umr_word(ours, field) + "\n";
        }
    }
    return diff;
}

/* --- WQEs of both --------------------------------------------------------- */

class dcx_umr : public dcx_key_test {
protected:
    dcx_umr()
    {
        struct mlx5dv_obj obj = {};

        obj.qp.in  = pair.qp;
        obj.qp.out = &m_dv;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) == 0);
    }

    uint16_t index() const { return be32toh(m_dv.dbrec[MLX5_SND_DBR]); }

    /* Returns the WQE at block @at. */
    static std::vector<uint8_t> read(const void *ring, unsigned num_bb,
                                     uint16_t at)
    {
        const uint8_t *bytes = (const uint8_t *)ring;
        size_t size          = num_bb * 64;
        size_t offset        = (at * 64) % size;
        std::vector<uint8_t> wqe((bytes[offset + 7] & 0x3f) * 16);

        for (size_t i = 0; i < wqe.size(); i++) {
            wqe[i] = bytes[(offset + i) % size];
        }
        return wqe;
    }

    std::vector<uint8_t> theirs(uint16_t at) const
    {
        return read(m_dv.sq.buf, m_dv.sq.wqe_cnt, at);
    }

    /* Writes a WQE at the same place of a ring of the same length, over
     * garbage. */
    template <typename F>
    std::vector<uint8_t> ours(uint16_t at, uint8_t fm, uint32_t number, F fill)
    {
        unsigned num_bb = m_dv.sq.wqe_cnt;
        std::vector<uint8_t> ring(num_bb * 64 + 64, 0xa5);
        uint8_t *start = (uint8_t *)(((uintptr_t)ring.data() + 63) & ~63ul);
        uct_dcx_wqe_ctrl_t ctrl = {};
        uct_dcx_wqe_t wqe;

        uct_dcx_wqe_begin(&wqe, start, num_bb - 1, at);
        fill(&wqe);
        ctrl.opcode = MLX5_OPCODE_UMR;
        ctrl.imm    = number;
        ctrl.flags  = MLX5_WQE_CTRL_CQ_UPDATE | fm;
        ctrl.sender = uct_dcx_wqe_sender(pair.qp->qp_num);
        uct_dcx_wqe_finish(&wqe, &ctrl);
        return read(start, num_bb, at);
    }

    std::vector<uint8_t> our_layout(uint16_t at, uint8_t fm, uint32_t number,
                                    dcx_layout &layout)
    {
        return ours(at, fm, number, [&](uct_dcx_wqe_t *wqe) {
            uct_dcx_umr_write_layout(wqe, number, layout.get(), NULL, 0);
        });
    }

    /* Adds the right to atomics, which libmlx5 has in each mask, though no
     * layout has it. */
    static std::vector<uint8_t> with_atomics(std::vector<uint8_t> wqe)
    {
        const unsigned at = 16 + 8 + 5; /* in mkey_mask */

        EXPECT_EQ(0, wqe.at(at) & 0x20);
        wqe[at] |= MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC >> 16;
        return wqe;
    }

    /* Converts a layout to libmlx5's description. */
    static umr_layout words(dcx_layout &layout)
    {
        bool is_list  = (layout->kind == UCT_DCX_SGL_LIST);
        umr_layout to = is_list ? umr_layout() :
                                  umr_layout::rows(layout->repeat);

        for (unsigned i = 0; i < layout->num; i++) {
            const auto &entry = layout->entries[i];

            if (is_list) {
                to.range((void *)entry.addr, entry.bytes, entry.lkey);
            } else {
                to.block((void *)entry.addr, entry.lkey, entry.bytes,
                         entry.stride - entry.bytes);
            }
        }
        return to;
    }

    dcx_layout blocks(unsigned num, uint32_t access)
    {
        std::vector<uct_dcx_sgl_entry_t> entries;

        for (unsigned i = 0; i < num; i++) {
            entries.push_back({(uintptr_t)dst.addr + i * 40, 3 + i, 100 + i,
                               dst.mr->lkey, 0});
        }
        return dcx_layout(UCT_DCX_SGL_INTERLEAVED, 5, entries, access);
    }

    umr_key key{dev.pd};
    struct mlx5dv_qp m_dv = {};
};

/* Each number of inline entries, and thus each place in the ring */
TEST_P(dcx_umr, layouts_are_as_libmlx5_writes_them)
{
    uint8_t fm = 0;

    for (unsigned num = 1; num <= UCT_DCX_UMR_MAX_INLINE; num++) {
        std::vector<dcx_layout> layouts = {
            list(num), blocks(std::min(num, 51u), num % 2 ? remote : 0)};

        for (auto &layout : layouts) {
            uint16_t at = index();

            ASSERT_EQ(IBV_WC_SUCCESS,
                      pair.set(key, words(layout), layout->access));
            EXPECT_EQ("",
                      umr_diff(theirs(at), with_atomics(our_layout(
                                               at, fm, key.lkey(), layout))))
                << num << " entries at block " << at;
            fm = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE;
        }
    }
}

/* libmlx5 leaves the rest of the context as the ring had it. */
TEST_P(dcx_umr, invalidation_is_as_libmlx5_writes_it)
{
    dcx_layout layout = list(3);
    uint16_t at;

    ASSERT_EQ(IBV_WC_SUCCESS, pair.set(key, words(layout)));
    at = index();
    ASSERT_EQ(IBV_WC_SUCCESS, pair.local_inv(key.lkey()));
    EXPECT_EQ("", umr_diff(theirs(at),
                           ours(at, MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE,
                                key.lkey(), uct_dcx_umr_write_invalidate),
                           "mkey.reserved1 mkey.access_flags mkey.sf "
                           "mkey.reserved2 mkey.flags_pd mkey.start_addr "
                           "mkey.len mkey.bsf_octword_size mkey.reserved3 "
                           "mkey.translations mkey.log_page_size"));
}

/* The comparison covers each byte of both. */
TEST_P(dcx_umr, comparison_is_complete)
{
    dcx_layout layout        = blocks(3, remote);
    std::vector<uint8_t> wqe = our_layout(0, 0, key.lkey(), layout);

    for (size_t i = 0; i < wqe.size(); i++) {
        std::vector<uint8_t> other = wqe;

        other[i] ^= 1;
        EXPECT_NE("", umr_diff(wqe, other)) << "byte " << i;
    }
}

/* A longer list is named by one data segment, which no builder of libmlx5
 * writes. */
TEST_P(dcx_umr, list_that_does_not_fit_is_named)
{
    dcx_layout layout        = list(UCT_DCX_UMR_MAX_INLINE + 1);
    std::vector<uint8_t> wqe = ours(0, 0, key.lkey(), [&](uct_dcx_wqe_t *at) {
        uct_dcx_umr_write_layout(at, key.lkey(), layout.get(), src.addr,
                                 src.mr->lkey);
    });
    raw_wqe expected = umr_wqe_by_reference(key.lkey(), layout->length, 56,
                                            src.addr, src.mr->lkey);

    ASSERT_EQ(expected.bytes.size(), wqe.size());
    EXPECT_EQ("", umr_diff(expected.bytes, with_atomics(wqe),
                           "ctrl.opmod_idx_opcode ctrl.qpn_ds ctrl.fm_ce_se "
                           "mkey.access_flags"));
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_umr, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_umr, testing::Values(0));

} /* namespace */
