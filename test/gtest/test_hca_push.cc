/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pushes to a BlueFlame register, without a device: which stores are collected,
 * where their values go, and which of them calls the device. Stores are trapped
 * and rewritten, as in test_hca_trap.cc.
 */
#include "test_hca_trap.h"

#include <algorithm>
#include <vector>

#include <endian.h>

extern "C" {
#include "softhca/doorbell/hca_push.h"
}

SITE(push_rsi, "mov %rsi, (%rdi)")
SITE(push_head, "mov %rsi, (%rdi)")
SITE(push_rax, "mov %rsi, %rax\nmov %rax, (%rdi)")
SITE(push_r9, "mov %rsi, %r9\nmov %r9, 0(%rdi)\nmov %r9, %r9")
SITE(push_imm, "movq $0x5a5a5a5a, (%rdi)")
SITE(push_xmm4, "movq %rsi, %xmm4\npunpcklqdq %xmm4, %xmm4\n"
                "movups %xmm4, (%rdi)")
SITE(push_xmm12, "movq %rsi, %xmm12\npunpcklqdq %xmm12, %xmm12\n"
                 "movntdq %xmm12, (%rdi)")
SITE(push_ymm5, "movq %rsi, %xmm5\nvbroadcastsd %xmm5, %ymm5\n"
                "vmovdqu %ymm5, (%rdi)\nvzeroupper")
SITE(push_ymm13, "movq %rsi, %xmm13\nvbroadcastsd %xmm13, %ymm13\n"
                 "vmovaps %ymm13, (%rdi)\nvzeroupper")
/* Rows of two to four stores: words 0, 2, 4 and 6 are the argument and the next
 * numbers, and so are words 1, 3, 5 and 7. */
#define ROW_REG(_reg, _next) \
    "movq %rsi, %xmm" #_reg "\npunpcklqdq %xmm" #_reg ", %xmm" #_reg "\n" _next
#define ROW_STEP "inc %rsi\n"
SITE(row_32, ROW_REG(1, ROW_STEP) ROW_REG(9, "") "movaps %xmm1, (%rdi)\n"
                                                 "movaps %xmm9, 0x10(%rdi)")
SITE(row_48,
     ROW_REG(2, ROW_STEP) ROW_REG(3, ROW_STEP)
         ROW_REG(4, "") "movups %xmm2, (%rdi)\nmovntdq %xmm3, 0x10(%rdi)\n"
                        "movaps %xmm4, 0x20(%rdi)")
SITE(row_64,
     ROW_REG(12, ROW_STEP) ROW_REG(5, ROW_STEP) ROW_REG(6, ROW_STEP)
         ROW_REG(7, "") "movaps %xmm12, (%rdi)\nmovaps %xmm5, 0x10(%rdi)\n"
                        "movaps %xmm6, 0x20(%rdi)\nmovaps %xmm7, 0x30(%rdi)")
SITE(push_high, "movq %rsi, %xmm3\npslldq $8, %xmm3\nmovhps %xmm3, (%rdi)")

/* Returns the sum of all registers that a call may overwrite, and of the carry;
 * the store must not change them. */
__asm__(".text\n.p2align 4\n.globl push_keep\npush_keep:\nnop\n"
        "mov $1, %eax\nmov $2, %ecx\nmov $4, %edx\nmov $8, %r8d\n"
        "mov $16, %r9d\nmov $32, %r10d\nmov $64, %r11d\nmov $128, %esi\n"
        "stc\nmovups %xmm0, (%rdi)\nadc $0, %rax\n"
        "add %rcx, %rax\nadd %rdx, %rax\nadd %r8, %rax\nadd %r9, %rax\n"
        "add %r10, %rax\nadd %r11, %rax\nadd %rsi, %rax\nret\n");
extern "C" uint64_t push_keep(void *to);

namespace {

struct push_form {
    const char *text;
    site_fn site;
    const char *end;
    unsigned size;
    bool collected; /* without a call, once rewritten */
    uint64_t value; /* stored value; 0: the argument */
};

/* clang-format off */
#define PUSH_FORM(_name, _size, _collected, _value) \
    {#_name, _name, _name##_end, _size, _collected, _value}
/* clang-format on */

const push_form push_forms[] = {
    PUSH_FORM(push_rsi, 8, true, 0),
    PUSH_FORM(push_rax, 8, true, 0),
    PUSH_FORM(push_r9, 8, true, 0),
    PUSH_FORM(push_imm, 8, false, 0x5a5a5a5a),
    PUSH_FORM(push_xmm4, 16, true, 0),
    PUSH_FORM(push_xmm12, 16, true, 0),
    PUSH_FORM(push_ymm5, 32, true, 0),
    PUSH_FORM(push_ymm13, 32, true, 0),
    PUSH_FORM(push_high, 8, false, 0),
};

class hca_push_stores : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (hca_valgrind_active()) {
            GTEST_SKIP() << "valgrind: values of stores are not known";
        }
        hca_trap_init(true);
        page = (char *)mmap(nullptr, PAGE, PROT_READ,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, (void *)page);
        ASSERT_EQ(0, hca_trap_add_push(page, on_store, this, &push));
    }

    void TearDown() override
    {
        if (page != nullptr) {
            EXPECT_EQ(0, hca_trap_del(page));
            munmap(page, PAGE);
        }
    }

    /* Does what a device does with stores. */
    static void on_store(void *arg, uintptr_t offset, const void *value,
                         unsigned size)
    {
        auto *self = (hca_push_stores *)arg;
        void *to;

        self->calls++;
        if (!hca_push_is_register(offset)) {
            return;
        }
        if ((offset % HCA_PUSH_HALF_SIZE == 0) && (size == 8)) {
            self->push.words[hca_push_half(offset)] = 0;
            memcpy(self->push.data[hca_push_half(offset)], value, 8);
            return;
        }
        to = hca_push_part(&self->push, offset, size, ctrl(value, size));
        if (to != nullptr) {
            memcpy(to, value, size);
        } else if (hca_push_last(&self->push, offset, value, size)) {
            self->complete++;
            self->pushed = self->bytes(hca_push_half(offset));
            self->words  = self->push.words[hca_push_half(offset)];
            hca_push_end(&self->push, hca_push_half(offset));
        }
    }

    std::vector<uint64_t> bytes(unsigned half) const
    {
        const uint64_t *data = push.data[half];

        return std::vector<uint64_t>(data, data + 32);
    }

    static uint64_t ctrl(const void *value, unsigned size)
    {
        uint64_t word = 0;

        memcpy(&word, value, std::min<size_t>(size, sizeof(word)));
        return word;
    }

    /* Returns the first words of the ctrl segment of a WQE of `ds`
     * octowords. */
    static uint64_t head(unsigned ds)
    {
        return htobe64(0x0000010a00123400 | ds);
    }

    /* Stores head() and then words 0x100, 0x101 ..., all by the same form of
     * store. */
    void row(unsigned half, unsigned ds, site_fn site, unsigned size,
             unsigned length)
    {
        char *to = page + HCA_PUSH_START + half * HCA_PUSH_HALF_SIZE;

        site(to, head(ds));
        for (unsigned pos = size; pos < length; pos += size) {
            site(to + pos, 0x100 + pos);
        }
    }

    char *page           = nullptr;
    struct hca_push push = {};
    unsigned calls = 0, complete = 0;
    uint32_t words = 0;
    std::vector<uint64_t> pushed;
};

/* Trapped twice, rewritten and collected the second time, and not trapped after
 * that */
TEST_F(hca_push_stores, land_in_their_places)
{
    for (const push_form &form : push_forms) {
        const bool was_rewritten = jumps_within(form.site, form.end);

        SCOPED_TRACE(form.text);
        for (unsigned pass = 0; pass < 4; ++pass) {
            const uint64_t value = 0x1122334455667788 + pass;
            const unsigned pos   = 64 + pass * 32;
            char *half = page + HCA_PUSH_START + pass * HCA_PUSH_HALF_SIZE;

            hca_trap_init(pass > 0);
            push_head(half, head(16));
            calls = 0;
            form.site(half + pos, value);
            EXPECT_EQ(!form.collected || ((pass == 0) && !was_rewritten), calls)
                << pass;
            for (unsigned i = 0; i < form.size; i += 8) {
                EXPECT_EQ((form.value != 0) ? form.value : value,
                          push.data[pass][(pos + i) / 8])
                    << pass;
            }
            EXPECT_EQ(((1u << form.size / 8) - 1) << (pos / 8),
                      push.words[pass]);
        }
    }
}

/* WQEs of one, two and four blocks; of 5 octowords, the second block is pushed
 * whole. */
TEST_F(hca_push_stores, call_with_the_last_of_a_row)
{
    const unsigned lengths[][2] = {{4, 64}, {5, 128}, {8, 128}, {16, 256}};

    for (const push_form &form : push_forms) {
        if (!form.collected) {
            continue;
        }
        SCOPED_TRACE(form.text);
        push_head(page, 0);
        form.site(page + 32, 0); /* rewritten from here on */
        form.site(page + 32, 0);
        for (unsigned half = 0; half < HCA_PUSH_HALVES; ++half) {
            calls = complete = 0;
            row(half, lengths[half][0], form.site, form.size, lengths[half][1]);
            EXPECT_EQ((form.size == 8) ? 2 : 1, calls);
            EXPECT_EQ(1u, complete);
            EXPECT_EQ(head(lengths[half][0]), pushed[0]);
            EXPECT_EQ(0x100 + lengths[half][1] - form.size,
                      pushed[lengths[half][1] / 8 - 1]);
            EXPECT_EQ(form.size != 8, words & 1);
            EXPECT_EQ(0u, push.words[half]);
        }
    }
}

/* Stores right behind each other are made as one, from the first time on. Rows
 * that begin with 64 bytes may be whole at once. */
TEST_F(hca_push_stores, behind_each_other_are_one)
{
    static const struct {
        site_fn site;
        unsigned size;
    } rows[] = {{row_32, 32}, {row_48, 48}, {row_64, 64}};

    for (auto &row : rows) {
        SCOPED_TRACE(row.size);
        for (unsigned pass = 0; pass < 3; ++pass) {
            const uint64_t first = head((row.size == 48) ? 12 : 16);
            char *half           = page + HCA_PUSH_START;
            unsigned end         = (row.size == 48) ? 192 : 256;

            calls = complete = 0;
            for (unsigned pos = 0; pos < end; pos += row.size) {
                row.site(half + pos, (pos == 0) ? first : 0x100 + pos);
            }
            EXPECT_EQ(1u, calls);
            EXPECT_EQ(1u, complete);
            EXPECT_EQ(first, pushed[0]);
            EXPECT_EQ(first + 1, pushed[2]);
            EXPECT_EQ(0x100 + end - row.size + row.size / 16 - 1,
                      pushed[end / 8 - 1]);
            EXPECT_EQ(0u, push.words[0]);
        }
    }
    row_64(page + HCA_PUSH_START, head(4));
    EXPECT_EQ(2u, complete);
    EXPECT_EQ(head(4) + 3, pushed[7]);
    row_64(page + HCA_PUSH_START, head(0));
    row_64(page + HCA_PUSH_START, head(17));
    EXPECT_EQ(2u, complete);
}

TEST_F(hca_push_stores, behind_each_other_go_elsewhere)
{
    alignas(64) uint64_t other[8] = {};

    for (unsigned pass = 0; pass < 3; ++pass) {
        row_64(page + HCA_PUSH_START, head(8));
        row_64(other, pass);
        for (unsigned i = 0; i < 8; ++i) {
            EXPECT_EQ(pass + i / 2, other[i]);
        }
    }
}

/* Stores behind a complete row may begin the next one, and do not complete it.
 * A row of 0 octowords, or of more than half a register has, is ignored. */
TEST_F(hca_push_stores, beyond_the_row_are_none)
{
    row(1, 3, push_xmm4, 16, 128);
    EXPECT_EQ(1u, complete);
    row(1, 3, push_xmm4, 16, 64);
    EXPECT_EQ(2u, complete);
    complete = 1;
    row(1, 0, push_xmm4, 16, 256);
    row(2, 17, push_xmm4, 16, 256);
    EXPECT_EQ(1u, complete);
}

/* After the first store any order, and repeated ones: libc's memcpy() */
TEST_F(hca_push_stores, of_a_row_in_any_order)
{
    char *to = page + HCA_PUSH_START;

    for (unsigned i = 0; i < 3; ++i) {
        push_ymm5(to, head(8));
        push_ymm5(to + 96, 1);
        push_ymm5(to + 96, 2);
        push_ymm5(to + 64, 3);
        EXPECT_EQ(i, complete);
        push_ymm5(to + 32, 4);
        EXPECT_EQ(i + 1, complete);
        EXPECT_EQ(2u, pushed[12]);
    }
}

/* The first store is another one of the block: write combining puts them
 * together, so compilers may reorder them. */
TEST_F(hca_push_stores, of_a_block_in_any_order)
{
    unsigned order[] = {0, 16, 32, 48}, count = 0;
    char *to = page + HCA_PUSH_START;

    do {
        if (count % 3 == 1) {
            push_head(to, head(8)); /* a doorbell before the push */
        }
        for (unsigned pos : order) {
            EXPECT_EQ(count, complete);
            push_xmm4(to + pos, (pos == 0) ? head(4) : 0x100 + pos);
        }
        EXPECT_EQ(++count, complete);
        EXPECT_EQ(head(4), pushed[0]);
        EXPECT_EQ(0x110u, pushed[2]);
        EXPECT_EQ(0x130u, pushed[6]);
        EXPECT_EQ(1u, words & 1);
        EXPECT_EQ(0u, push.words[0]);
    } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST_F(hca_push_stores, leave_registers_alone)
{
    char *to = page + HCA_PUSH_START;

    for (unsigned i = 0; i < 4; ++i) {
        push_head(to, head(16));
        calls = 0;
        EXPECT_EQ(256u, push_keep(to + 16 * (i + 1)));
        EXPECT_EQ(0u, calls);
    }
}

/* The same instruction may store elsewhere. */
TEST_F(hca_push_stores, to_other_memory_are_none)
{
    for (const push_form &form : push_forms) {
        alignas(32) uint64_t other[4] = {};

        form.site(page + 32, 1);
        form.site(page + 32, 1);
        form.site(other, 7);
        EXPECT_EQ((form.value != 0) ? form.value : 7, other[0]) << form.text;
        EXPECT_EQ((form.size > 8) ? 7u : 0u, other[1]) << form.text;
    }
}

} /* namespace */
