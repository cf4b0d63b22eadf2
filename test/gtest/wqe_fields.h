/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Splits a send WQE of a DC initiator into named fields and prints the
 * differences of two. Written from the layout alone, by offsets: it shares no
 * code with dcx or softhca. Sources: struct mlx5_wqe_ctrl_seg, mlx5_wqe_av,
 * mlx5_wqe_raddr_seg, mlx5_wqe_atomic_seg, mlx5_wqe_data_seg,
 * mlx5_wqe_inl_data_seg (mlx5dv.h); for masked atomics struct
 * mlx5_wqe_masked_atomic_seg (rdma-core, providers/mlx5/wqe.h) and
 * uct_ib_mlx5_atomic_masked_*_seg (UCX, uct/ib/mlx5/ib_mlx5.h).
 *
 * Not fields, as libmlx5 leaves the old contents of the ring there, which works
 * on a NIC: the immediate of opcodes without one, padding of inline data to 16
 * bytes, and the second operand of a fetch-and-add without masks.
 */
#ifndef DCX_TEST_WQE_FIELDS_H
#define DCX_TEST_WQE_FIELDS_H

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using wqe_bytes = std::vector<uint8_t>;

/* Bits `mask` of the big-endian word of `size` bytes at `offset` */
struct wqe_field {
    std::string name;
    unsigned offset;
    unsigned size;
    uint64_t mask;
    uint64_t value;
};

class wqe_fields {
public:
    explicit wqe_fields(const wqe_bytes &wqe) : m_wqe(wqe) { decode(); }

    std::vector<wqe_field> list() const { return m_list; }

    const wqe_field *find(const std::string &name) const
    {
        for (const auto &field : m_list) {
            if (field.name == name) {
                return &field;
            }
        }
        return nullptr;
    }

private:
    struct row {
        const char *name;
        unsigned offset;
        unsigned size;
        uint64_t mask;
    };

    uint64_t word(unsigned offset, unsigned size) const
    {
        uint64_t value = 0;

        for (unsigned i = 0; i < size; i++) {
            value = (value << 8) |
                    ((offset + i < m_wqe.size()) ? m_wqe[offset + i] : 0);
        }
        return value;
    }

    uint64_t add(const std::string &prefix, const row &at)
    {
        unsigned offset = m_at + at.offset;
        uint64_t mask   = (at.mask != 0) ? at.mask : ~0ull;
        uint64_t value;

        if (at.size < 8) {
            mask &= (1ull << (at.size * 8)) - 1;
        }
        value = (word(offset, at.size) & mask) >> __builtin_ctzll(mask);
        m_list.push_back({prefix + at.name, offset, at.size, mask, value});
        return value;
    }

    void add_bytes(const std::string &name, unsigned offset, unsigned count)
    {
        for (unsigned i = 0; i < count; i++) {
            add(name + "[" + std::to_string(i) + "]", {"", offset + i, 1, 0});
        }
    }

    void add_rows(const std::string &prefix, const std::vector<row> &rows)
    {
        for (const auto &each : rows) {
            add(prefix, each);
        }
    }

    void decode()
    {
        add_rows("ctrl.", {{"opmod", 0, 1, 0},
                           {"wqe_index", 1, 2, 0},
                           {"opcode", 3, 1, 0},
                           {"qpn", 4, 4, 0xffffff00},
                           {"ds reserved", 7, 1, 0xc0},
                           {"ds", 7, 1, 0x3f},
                           {"signature", 8, 1, 0},
                           {"dci_stream_channel_id", 9, 2, 0},
                           {"fm", 11, 1, 0xe0},
                           {"reserved", 11, 1, 0x11},
                           {"ce", 11, 1, 0x0c},
                           {"se", 11, 1, 0x02}});
        if (has_imm(word(3, 1))) {
            add("ctrl.", {"imm", 12, 4, 0});
        }
        m_at  = 16;
        m_end = (word(7, 1) & 0x3f) * 16;
        if (m_end > m_wqe.size()) {
            m_end = m_wqe.size();
        }
        decode_av();
        decode_op(word(3, 1), word(0, 1));
        for (unsigned n = 0; m_at < m_end; n++) {
            decode_data("data" + std::to_string(n) + ".");
        }
    }

    static bool has_imm(unsigned opcode)
    {
        return (opcode == 0x01) || (opcode == 0x09) || (opcode == 0x0b);
    }

    void decode_av()
    {
        if (m_at >= m_end) {
            return;
        }
        bool is_extended = word(m_at + 8, 4) >> 31;

        /* Omits the service level of answers, bits 27 to 24, which libmlx5
         * leaves 0: test_dcx_port.cc checks it. */
        add_rows("av.", {{"dc_key", 0, 8, 0},
                         {"extended", 8, 4, 1u << 31},
                         {"reserved", 8, 4, 0x70000000},
                         {"dctn", 8, 4, 0x00ffffff},
                         {"stat_rate", 12, 1, 0xf0},
                         {"sl", 12, 1, 0x0f},
                         {"fl", 13, 1, 0x80},
                         {"src_path_bits", 13, 1, 0x7f},
                         {"rlid", 14, 2, 0}});
        m_at += 16;
        if (!is_extended) {
            return;
        }
        add("av.", {"reserved0", 0, 4, 0});
        add_bytes("av.rmac", 4, 6);
        add_rows("av.", {{"tclass", 10, 1, 0},
                         {"hop_limit", 11, 1, 0},
                         {"grh reserved", 12, 4, 1u << 31},
                         {"grh", 12, 4, 1u << 30},
                         {"sgid_index", 12, 4, 0x3ff00000},
                         {"flow_label", 12, 4, 0x000fffff}});
        add_bytes("av.rgid", 16, 16);
        m_at += 32;
    }

    void decode_op(unsigned opcode, unsigned opmod)
    {
        if (((opcode >= 0x08) && (opcode <= 0x09)) ||
            ((opcode >= 0x10) && (opcode <= 0x15))) {
            add_rows("raddr.", {{"raddr", 0, 8, 0},
                                {"rkey", 8, 4, 0},
                                {"reserved", 12, 4, 0}});
            m_at += 16;
        }
        switch (opcode) {
        case 0x11:
            add_rows("atomic.", {{"swap", 0, 8, 0}, {"compare", 8, 8, 0}});
            m_at += 16;
            break;
        case 0x12:
            add_rows("atomic.", {{"add", 0, 8, 0}});
            m_at += 16;
            break;
        case 0x14:
        case 0x15:
            decode_masked(opcode == 0x14, (opmod & 7) == 0);
            break;
        }
    }

    /* 32 bit: four words. 64 bit: the operands; compare-and-swap has its masks
     * in a segment of their own */
    void decode_masked(bool is_cs, bool is_32)
    {
        const unsigned n = is_32 ? 4 : 8;

        if (is_cs) {
            add_rows("atomic.", {{"swap", 0, n, 0},
                                 {"compare", n, n, 0},
                                 {"swap_mask", 2 * n, n, 0},
                                 {"compare_mask", 3 * n, n, 0}});
            m_at += 4 * n;
        } else {
            add_rows("atomic.",
                     {{"add", 0, n, 0}, {"field_boundary", n, n, 0}});
            if (is_32) {
                add("atomic.", {"reserved", 8, 8, 0});
            }
            m_at += 16;
        }
    }

    void decode_data(const std::string &prefix)
    {
        unsigned length;

        if (add(prefix, {"inline", 0, 4, 1u << 31})) {
            length = word(m_at, 4) & 0x3ff;
            add_rows(prefix, {{"inline reserved", 0, 4, 0x7ffffc00},
                              {"inline length", 0, 4, 0x3ff}});
            if (m_at + 4 + length > m_end) {
                length = m_end - m_at - 4;
            }
            add_bytes(prefix + "byte", 4, length);
            m_at += (4 + length + 15) / 16 * 16;
        } else {
            add_rows(prefix, {{"byte_count", 0, 4, 0x7fffffff},
                              {"lkey", 4, 4, 0},
                              {"addr", 8, 8, 0}});
            m_at += 16;
        }
    }

    const wqe_bytes &m_wqe;
    std::vector<wqe_field> m_list;
    unsigned m_at  = 0;
    unsigned m_end = 0;
};

inline std::vector<wqe_field> wqe_list(const wqe_bytes &wqe)
{
    return wqe_fields(wqe).list();
}

/* Returns one line for each field that differs, "" if none does. */
inline std::string wqe_diff(const char *name_a, const wqe_bytes &a,
                            const char *name_b, const wqe_bytes &b)
{
    wqe_fields fields_a(a), fields_b(b);
    std::string text;
    char value[64];

    auto show = [&](const char *who, const wqe_field *field) {
        if (field == nullptr) {
            return std::string(who) + " has none";
        }
        snprintf(value, sizeof(value), " 0x%llx",
                 (unsigned long long)field->value);
        return who + std::string(value);
    };

    for (const auto &field : wqe_list(a)) {
        const wqe_field *other = fields_b.find(field.name);

        if ((other == nullptr) || (other->value != field.value)) {
            text += field.name + ": " + show(name_a, &field) + ", " +
                    show(name_b, other) + "\n";
        }
    }
    for (const auto &field : wqe_list(b)) {
        if (fields_a.find(field.name) == nullptr) {
            text += field.name + ": " + show(name_a, nullptr) + ", " +
                    show(name_b, &field) + "\n";
        }
    }
    return text;
}

#endif
