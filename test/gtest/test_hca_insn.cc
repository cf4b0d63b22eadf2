/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The decoder of stores (hca_insn.c), on encodings of an assembler and on
 * random bytes; nothing is executed
 */
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

extern "C" {
#include "softhca/doorbell/hca_cpu.h"
#include "softhca/doorbell/hca_insn.h"
}

namespace {

using bytes = std::vector<uint8_t>;

struct good {
    const char *text;
    bytes code;
    uint8_t kind, reg, size, lane;
    uint8_t base, index, scale;
    int32_t disp;
};

constexpr uint8_t NONE = HCA_INSN_NO_REG;

/* clang-format off */
const good goods[] = {
    {"mov %rax,(%rdx)", {0x48, 0x89, 0x02}, HCA_INSN_GPR, 0, 8, 0, 2, NONE, 0,
     0},
    {"mov %rcx,(%rdx,%rax,1)", {0x48, 0x89, 0x0c, 0x02}, HCA_INSN_GPR, 1, 8, 0,
     2, 0, 0, 0},
    {"mov %rax,0x20(%rdx)", {0x48, 0x89, 0x42, 0x20}, HCA_INSN_GPR, 0, 8, 0, 2,
     NONE, 0, 0x20},
    {"mov %r9d,-4(%r12,%r15,8)", {0x47, 0x89, 0x4c, 0xfc, 0xfc}, HCA_INSN_GPR,
     9, 4, 0, 12, 15, 3, -4},
    {"mov %ax,(%rsp)", {0x66, 0x89, 0x04, 0x24}, HCA_INSN_GPR, 0, 2, 0, 4,
     NONE, 0, 0},
    {"mov %ah,(%rdx)", {0x88, 0x22}, HCA_INSN_GPR_HIGH, 0, 1, 0, 2, NONE, 0,
     0},
    {"mov %spl,(%rdx)", {0x40, 0x88, 0x22}, HCA_INSN_GPR, 4, 1, 0, 2, NONE, 0,
     0},
    {"mov %rax,0x10(%rip)", {0x48, 0x89, 0x05, 0x10, 0, 0, 0}, HCA_INSN_GPR, 0,
     8, 0, HCA_INSN_RIP, NONE, 0, 0x10},
    {"mov %rax,0x10", {0x48, 0x89, 0x04, 0x25, 0x10, 0, 0, 0}, HCA_INSN_GPR, 0,
     8, 0, NONE, NONE, 0, 0x10},
    {"cs mov %eax,(%rdi)", {0x2e, 0x89, 0x07}, HCA_INSN_GPR, 0, 4, 0, 7, NONE,
     0, 0},
    {"movb $0x12,(%rax)", {0xc6, 0x00, 0x12}, HCA_INSN_IMM, 0, 1, 0, 0, NONE,
     0, 0},
    {"movw $0x1234,(%rax)", {0x66, 0xc7, 0x00, 0x34, 0x12}, HCA_INSN_IMM, 0, 2,
     0, 0, NONE, 0, 0},
    {"movq $-5,(%r8)", {0x49, 0xc7, 0x00, 0xfb, 0xff, 0xff, 0xff},
     HCA_INSN_IMM, 0, 8, 0, 8, NONE, 0, 0},
    {"movnti %rdx,(%rcx)", {0x48, 0x0f, 0xc3, 0x11}, HCA_INSN_GPR, 2, 8, 0, 1,
     NONE, 0, 0},
    {"movdiri %eax,(%rcx)", {0x0f, 0x38, 0xf9, 0x01}, HCA_INSN_GPR, 0, 4, 0, 1,
     NONE, 0, 0},
    {"movbe %rax,(%rdx)", {0x48, 0x0f, 0x38, 0xf1, 0x02}, HCA_INSN_GPR_SWAP, 0,
     8, 0, 2, NONE, 0, 0},
    {"movups %xmm9,(%rdi)", {0x44, 0x0f, 0x11, 0x0f}, HCA_INSN_VEC, 9, 16, 0,
     7, NONE, 0, 0},
    {"movntdq %xmm0,(%rdi)", {0x66, 0x0f, 0xe7, 0x07}, HCA_INSN_VEC, 0, 16, 0,
     7, NONE, 0, 0},
    {"movq %xmm1,(%rax)", {0x66, 0x0f, 0xd6, 0x08}, HCA_INSN_VEC, 1, 8, 0, 0,
     NONE, 0, 0},
    {"movd %xmm1,(%rax)", {0x66, 0x0f, 0x7e, 0x08}, HCA_INSN_VEC, 1, 4, 0, 0,
     NONE, 0, 0},
    {"movhps %xmm0,8(%rdx)", {0x0f, 0x17, 0x42, 0x08}, HCA_INSN_VEC, 0, 8, 8,
     2, NONE, 0, 8},
    {"movdqu %xmm3,(%rdi)", {0xf3, 0x0f, 0x7f, 0x1f}, HCA_INSN_VEC, 3, 16, 0,
     7, NONE, 0, 0},
    {"vmovdqu %ymm15,(%rdi)", {0xc5, 0x7e, 0x7f, 0x3f}, HCA_INSN_VEC, 15, 32,
     0, 7, NONE, 0, 0},
    {"vmovdqu %xmm1,(%r8)", {0xc4, 0xc1, 0x7a, 0x7f, 0x08}, HCA_INSN_VEC, 1,
     16, 0, 8, NONE, 0, 0},
    {"vextracti128 $1,%ymm0,0x10(%rax)",
     {0xc4, 0xe3, 0x7d, 0x39, 0x40, 0x10, 0x01}, HCA_INSN_VEC, 0, 16, 16, 0,
     NONE, 0, 0x10},
    /* the disp8 of EVEX counts stores */
    {"vmovdqu64 %zmm16,0x40(%rdi)", {0x62, 0xe1, 0xfe, 0x48, 0x7f, 0x47, 0x01},
     HCA_INSN_VEC, 16, 64, 0, 7, NONE, 0, 0x40},
    {"vmovdqu64 %ymm31,-0x20(%rdi)",
     {0x62, 0x61, 0xfe, 0x28, 0x7f, 0x7f, 0xff}, HCA_INSN_VEC, 31, 32, 0, 7,
     NONE, 0, -0x20},
    {"movsb", {0xa4}, HCA_INSN_MOVS, 0, 1, 0, 7, NONE, 0, 0},
    {"rep movsq", {0xf3, 0x48, 0xa5}, HCA_INSN_MOVS, 0, 8, 0, 7, NONE, 0, 0},
    {"rep stosl", {0xf3, 0xab}, HCA_INSN_STOS, 0, 4, 0, 7, NONE, 0, 0},
};
/* clang-format on */

/* clang-format off */
const struct {
    const char *text;
    bytes       code;
} bads[] = {
    {"mov %rax,%rdx", {0x48, 0x89, 0xc2}},
    {"mov (%rdx),%rax", {0x48, 0x8b, 0x02}},
    {"mov %eax,%fs:(%rdx)", {0x64, 0x89, 0x02}},
    {"mov %eax,(%edx)", {0x67, 0x89, 0x02}},
    {"lock mov", {0xf0, 0x89, 0x02}},
    {"xrelease mov", {0xf3, 0x89, 0x02}},
    {"xchg %rax,(%rdx)", {0x48, 0x87, 0x02}},
    {"lock xadd", {0xf0, 0x48, 0x0f, 0xc1, 0x02}},
    {"c7 /1", {0x48, 0xc7, 0x08, 0, 0, 0, 0}},
    {"movups load", {0x0f, 0x10, 0x07}},
    {"movq mmx", {0x0f, 0x7f, 0x07}},
    {"int3", {0xcc}},
    {"hlt", {0xf4}},
    {"jmp", {0xe9, 0, 0, 0, 0}},
    {"REX before VEX", {0x48, 0xc5, 0xfe, 0x7f, 0x07}},
    {"66 before VEX", {0x66, 0xc5, 0xfe, 0x7f, 0x07}},
    {"VEX with a third operand", {0xc5, 0xbe, 0x7f, 0x07}},
    {"EVEX with a mask", {0x62, 0xe1, 0xfe, 0x49, 0x7f, 0x07}},
    {"EVEX, length 3", {0x62, 0xe1, 0xfe, 0x68, 0x7f, 0x07}},
};
/* clang-format on */

TEST(hca_insn, understood)
{
    for (const good &g : goods) {
        struct hca_insn i;

        SCOPED_TRACE(g.text);
        ASSERT_EQ((int)g.code.size(),
                  hca_insn_decode(g.code.data(), g.code.size(), &i));
        EXPECT_EQ(g.code.size(), i.len);
        EXPECT_EQ(g.kind, i.src.kind);
        EXPECT_EQ(g.reg, i.src.reg);
        EXPECT_EQ(g.size, i.src.size);
        EXPECT_EQ(g.lane, i.src.lane);
        EXPECT_EQ(g.base, i.base);
        EXPECT_EQ(g.index, i.index);
        EXPECT_EQ(g.scale, i.scale);
        EXPECT_EQ(g.disp, i.disp);
        EXPECT_EQ(i.rep, (g.kind >= HCA_INSN_MOVS) && (g.code[0] == 0xf3));
    }
}

TEST(hca_insn, refused)
{
    for (const auto &b : bads) {
        struct hca_insn i = {};
        bytes code        = b.code;

        code.resize(HCA_INSN_MAX_LEN); /* zeros never complete it */
        EXPECT_EQ(-EINVAL, hca_insn_decode(code.data(), code.size(), &i))
            << b.text;
        EXPECT_EQ(0, i.len) << b.text << " changed the output";
    }
}

TEST(hca_insn, truncated_at_every_byte)
{
    for (const good &g : goods) {
        for (size_t n = 0; n < g.code.size(); ++n) {
            struct hca_insn i;
            bytes code(g.code.begin(), g.code.begin() + n);

            EXPECT_EQ(-ENODATA, hca_insn_decode(code.data(), n, &i))
                << g.text << " cut to " << n;
        }
    }
}

/* Adjacent stores of 16 bytes with the same base register are joined, up to
 * four. */
TEST(hca_insn, joined)
{
    const bytes first  = {0x44, 0x0f, 0x29, 0x60, 0x10}; /* xmm12, 16(%rax) */
    const bytes second = {0x0f, 0x29, 0x68, 0x20};       /* xmm5, 32(%rax) */
    const bytes third  = {0x0f, 0x29, 0x70, 0x30};       /* xmm6, 48(%rax) */
    const struct {
        const char *text;
        bytes more;
        unsigned num;
    } rows[] = {
        {"none", {0x90}, 1},
        {"a gap", third, 1},
        {"two", {0x0f, 0x29, 0x68, 0x20, 0x90}, 2},
        {"cut", {0x0f, 0x29, 0x68}, 1},
        {"another base", {0x0f, 0x29, 0x6f, 0x20}, 1},
        {"an index", {0x0f, 0x29, 0x6c, 0x08, 0x20}, 1},
        {"eight bytes", {0x0f, 0x13, 0x68, 0x20}, 1},
        {"32 bytes", {0xc5, 0xfd, 0x7f, 0x68, 0x20}, 1},
        {"xmm16", {0x62, 0xe1, 0x7c, 0x08, 0x29, 0x40, 0x02}, 1},
    };
    bytes all = first;
    struct hca_insn i;

    for (const auto &row : rows) {
        bytes code = first;

        SCOPED_TRACE(row.text);
        code.insert(code.end(), row.more.begin(), row.more.end());
        ASSERT_EQ(5, hca_insn_decode(code.data(), code.size(), &i));
        EXPECT_EQ((row.num == 1) ? 5u : 9u,
                  hca_insn_join(code.data(), code.size(), &i));
        EXPECT_EQ((row.num == 1) ? HCA_INSN_VEC : HCA_INSN_ROW, i.src.kind);
        EXPECT_EQ(16 * row.num, i.src.size);
    }

    for (const bytes &more : {second, third, bytes{0x0f, 0x29, 0x40, 0x40},
                              bytes{0x0f, 0x29, 0x40, 0x50}}) {
        all.insert(all.end(), more.begin(), more.end());
    }
    ASSERT_EQ(5, hca_insn_decode(all.data(), all.size(), &i));
    EXPECT_EQ(17u, hca_insn_join(all.data(), all.size(), &i));
    EXPECT_EQ(HCA_INSN_ROW, i.src.kind);
    EXPECT_EQ(64, i.src.size);
    EXPECT_EQ(12, i.src.regs[0]);
    EXPECT_EQ(5, i.src.regs[1]);
    EXPECT_EQ(6, i.src.regs[2]);
    EXPECT_EQ(0, i.src.regs[3]);
    EXPECT_EQ(5, i.len);
    EXPECT_EQ(16, i.disp);
}

TEST(hca_insn, too_many_prefixes)
{
    bytes code(HCA_INSN_MAX_LEN + 2, 0x66);
    struct hca_insn i;

    code[HCA_INSN_MAX_LEN]     = 0x89;
    code[HCA_INSN_MAX_LEN + 1] = 0x02;
    EXPECT_EQ(-EINVAL, hca_insn_decode(code.data(), code.size(), &i));
    EXPECT_EQ(-EINVAL, hca_insn_decode(code.data(), HCA_INSN_MAX_LEN, &i));
    EXPECT_EQ(13, hca_insn_decode(code.data() + 4, code.size() - 4, &i));
    EXPECT_EQ(2, i.src.size);
}

TEST(hca_insn, immediate_is_sign_extended)
{
    const uint8_t code[] = {0x49, 0xc7, 0x00, 0xfb, 0xff, 0xff, 0xff};
    struct hca_insn i;
    int64_t value    = 0;
    uint64_t gpr[16] = {};

    ASSERT_EQ(7, hca_insn_decode(code, sizeof(code), &i));
    hca_cpu_value(&i.src, gpr, hca_cpu_vec{nullptr, nullptr}, &value);
    EXPECT_EQ(-5, value);
}

TEST(hca_insn, address)
{
    const uint8_t sib[] = {0x47, 0x89, 0x4c, 0xfc, 0xfc};
    const uint8_t rip[] = {0x48, 0x89, 0x05, 0xf0, 0xff, 0xff, 0xff};
    uint64_t gpr[16]    = {};
    struct hca_insn i;

    gpr[12] = 0x7000;
    gpr[15] = 0x20;
    ASSERT_EQ(5, hca_insn_decode(sib, sizeof(sib), &i));
    EXPECT_EQ(0x7000u + 0x100 - 4, hca_insn_ea(&i, gpr, 0x1000));
    ASSERT_EQ(7, hca_insn_decode(rip, sizeof(rip), &i));
    EXPECT_EQ(0x1000u + 7 - 16, hca_insn_ea(&i, gpr, 0x1000));
}

/* For any bytes the result is a legal length within them, and a legal
 * description. */
TEST(hca_insn, noise)
{
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    unsigned understood = 0;

    SCOPED_TRACE(testing::Message() << "seed " << seed);
    for (int n = 0; n < 2000000; ++n) {
        size_t len = random() % (HCA_INSN_MAX_LEN + 1);
        bytes code(len);
        struct hca_insn i;
        int ret;

        for (uint8_t &byte : code) {
            byte = random();
        }

        ret = hca_insn_decode(code.data(), len, &i);
        if (ret < 0) {
            ASSERT_TRUE((ret == -EINVAL) ||
                        ((ret == -ENODATA) && (len < HCA_INSN_MAX_LEN)));
            continue;
        }

        ++understood;
        ASSERT_LE((size_t)ret, len);
        ASSERT_EQ(ret, i.len);
        ASSERT_TRUE((i.base <= HCA_INSN_RIP) || (i.base == NONE));
        ASSERT_TRUE((i.index < 16) || (i.index == NONE));
        ASSERT_TRUE((i.src.size >= 1) && (i.src.size <= 64));
        ASSERT_LE(i.src.lane + i.src.size, HCA_INSN_MAX_STORE);
        ASSERT_LT(i.src.reg, (i.src.kind == HCA_INSN_VEC) ? 32 : 16);
    }
    EXPECT_GT(understood, 1000u);
}

} /* namespace */
