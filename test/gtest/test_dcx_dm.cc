/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Device memory: copied operations that are too long for a WQE go through a
 * segment, and the device reads nothing from memory (counted by SOFTHCA_PCIE).
 * Without a free segment, or without device memory, they go through a buffer.
 */
#include "dcx_loop.h"
#include "ucx_log.h"

#include <numeric>
#include <ucs/vfs/base/vfs_obj.h>

namespace {

/* Bytes: of the longest operation in a WQE, and in a segment of 2 KiB */
enum { AM_INLINE = 186, PUT_INLINE = 172, AM_MAX = 2030, PUT_MAX = 2032 };

class dcx_dm : public testing::TestWithParam<int> {
protected:
    dcx_dm()
    {
        std::iota(m_data.begin(), m_data.end(), 1);
        UCT_CALL(uct_iface_set_am_handler(m_dcx.iface, 6, receive, this, 0));
    }

    static uint64_t lines(const char *kind)
    {
        auto get = (int (*)(const char *, uint64_t *, uint64_t *,
                            uint64_t *))dlsym(RTLD_DEFAULT, "softhca_pcie");
        uint64_t times, bytes, lines;

        HCA_CHECK_CALL((get != NULL) &&
                       (get(kind, &times, &bytes, &lines) == 0));
        return lines;
    }

    struct source {
        const uint8_t *data;
        size_t length;
    };

    static size_t pack(void *dst, void *arg)
    {
        const source *from = (const source *)arg;

        memcpy(dst, from->data, from->length);
        return from->length;
    }

    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned)
    {
        dcx_dm *self = (dcx_dm *)arg;

        self->m_received.emplace_back((uint8_t *)data,
                                      (uint8_t *)data + length);
        return UCS_OK;
    }

    template <typename F> void post(F call)
    {
        dcx_deadline deadline;

        while (call() == UCS_ERR_NO_RESOURCE) {
            deadline.check("resources");
            uct_worker_progress(m_dcx.worker);
        }
    }

    void send(size_t length, size_t from = 0)
    {
        source src = {&m_data[from], length};

        post([&] { return uct_ep_am_bcopy(m_dcx.ep, 6, pack, &src, 0); });
    }

    void put(size_t length, size_t to = 0)
    {
        source src = {&m_data[0], length};

        post([&] {
            return uct_ep_put_bcopy(m_dcx.ep, pack, &src,
                                    (uintptr_t)&m_dcx.mem[to],
                                    dcx_peek_rkey(m_dcx.memh));
        });
    }

    /* Waits for @count messages; returns them. */
    std::vector<std::vector<uint8_t>> take(size_t count)
    {
        std::vector<std::vector<uint8_t>> got;
        dcx_deadline deadline;

        while (m_received.size() < count) {
            deadline.check("messages");
            uct_worker_progress(m_dcx.worker);
        }
        m_dcx.flush();
        got.swap(m_received);
        return got;
    }

    std::vector<uint8_t> part(size_t length, size_t from = 0) const
    {
        return {m_data.begin() + from, m_data.begin() + from + length};
    }

    /* Returns the lines that the device reads for a message or a put. */
    uint64_t read_by_send(size_t length)
    {
        uint64_t before = lines("gather_read");

        send(length);
        EXPECT_EQ(part(length), take(1)[0]) << length;
        return lines("gather_read") - before;
    }

    uint64_t read_by_put(size_t length)
    {
        uint64_t before = lines("gather_read");

        m_dcx.mem.assign(m_dcx.mem.size(), 0);
        put(length);
        m_dcx.flush();
        EXPECT_EQ(part(length),
                  std::vector<uint8_t>(m_dcx.mem.begin(),
                                       m_dcx.mem.begin() + length));
        EXPECT_EQ(0, m_dcx.mem[length]);
        return lines("gather_read") - before;
    }

    /* Returns the segments in use, as ucx_vfs shows them. */
    std::string segments() const
    {
        ucs_string_buffer_t file = UCS_STRING_BUFFER_INITIALIZER;
        char path[256];

        snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p", m_dcx.worker,
                 m_dcx.iface);
        ucs_vfs_path_list_dir(
            path, [](const char *, void *) {}, NULL);
        strcat(path, "/in_use");
        EXPECT_EQ(UCS_OK, ucs_vfs_path_read_file(path, &file));
        std::string text = ucs_string_buffer_cstr(&file);
        ucs_string_buffer_cleanup(&file);

        const std::string name = "segments of device memory ";
        size_t at              = text.find(name);
        if (at == std::string::npos) {
            return text;
        }
        at += name.size();
        return text.substr(at, text.find('\n', at) - at);
    }

    ucx_log_reader m_log;
    dcx_loop m_dcx;
    std::vector<uint8_t> m_data = std::vector<uint8_t>(8192);
    std::vector<std::vector<uint8_t>> m_received;
};

/* The processor writes 259 bytes with 14 before them: five lines. */
TEST_P(dcx_dm, needs_no_read)
{
    uint64_t mmio = lines("mmio_write");

    EXPECT_EQ(0u, read_by_send(257));
    EXPECT_EQ(1 + 5u, lines("mmio_write") - mmio);
    mmio = lines("mmio_write");
    EXPECT_EQ(0u, read_by_put(256));
    EXPECT_EQ(1 + 4u, lines("mmio_write") - mmio);
}

TEST_P(dcx_dm, of_any_length)
{
    for (size_t length = AM_INLINE - 1; length <= AM_MAX; length += 7) {
        EXPECT_EQ(0u, read_by_send(length)) << length;
    }
    for (size_t length = PUT_INLINE - 1; length <= PUT_MAX; length += 7) {
        EXPECT_EQ(0u, read_by_put(length)) << length;
    }
    for (int i = 0; i < 2; i++) { /* also after one that is too long */
        EXPECT_EQ(0u, read_by_send(AM_MAX));
        EXPECT_LT(0u, read_by_send(AM_MAX + 1));
        EXPECT_EQ(0u, read_by_put(PUT_MAX));
        EXPECT_LT(0u, read_by_put(PUT_MAX + 1));
        EXPECT_EQ(0u, read_by_send(8));
        EXPECT_EQ(0u, read_by_put(8));
    }
}

/* The second operation finds no segment. A row leaves none behind. */
TEST_P(dcx_dm, is_kept_until_the_end)
{
    uint64_t before = lines("gather_read");

    send(300);
    send(400, 1);
    send(500, 2);
    auto got = take(3);
    EXPECT_EQ(part(300), got[0]);
    EXPECT_EQ(part(400, 1), got[1]);
    EXPECT_EQ(part(500, 2), got[2]);
    EXPECT_LT(10u, lines("gather_read") - before);
    EXPECT_EQ(0u, read_by_send(400));

    put(300);
    put(400, 1024);
    m_dcx.flush();
    EXPECT_TRUE(!memcmp(&m_data[0], &m_dcx.mem[0], 300));
    EXPECT_TRUE(!memcmp(&m_data[0], &m_dcx.mem[1024], 400));
    EXPECT_EQ(0u, read_by_put(400));
}

/* The segment is free with the completion of its own WQE: no NOP has to ask for
 * it. */
TEST_P(dcx_dm, requests_a_completion)
{
    uint64_t mmio = lines("mmio_write");

    send(8);
    send(257);
    take(2);
    EXPECT_EQ(1 + 1 + 5u, lines("mmio_write") - mmio);
    mmio = lines("mmio_write");
    put(8);
    put(256);
    m_dcx.flush();
    EXPECT_EQ(1 + 1 + 4u, lines("mmio_write") - mmio);
}

/* The program may change its data as soon as the call returns. */
TEST_P(dcx_dm, holds_a_copy)
{
    for (unsigned i = 0; i < 200; i++) {
        std::fill(m_data.begin(), m_data.end(), i);
        send(200 + i * 8);
    }
    auto got = take(200);
    for (unsigned i = 0; i < got.size(); i++) {
        EXPECT_EQ(std::vector<uint8_t>(200 + i * 8, i), got[i]) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(plain, dcx_dm, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_dm, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(doorbells, dcx_dm, testing::Values(0));

/* Puts that are refused or lost, and messages that are refused: each of many
 * ends its endpoint, and gives its segment back. */
class dcx_dm_fails : public dcx_dm {
protected:
    dcx_dm_fails() { m_dcx.survives_errors = true; }

    /* Posts on an endpoint of its own, and waits until that has failed. */
    void fail(bool is_put, uint32_t rkey)
    {
        source src    = {&m_data[0], 1000};
        uct_ep_h ep   = m_dcx.make_ep();
        size_t errors = m_dcx.errors.size();
        uint64_t read = lines("gather_read");

        post([&] {
            return is_put ? uct_ep_put_bcopy(ep, pack, &src,
                                             (uintptr_t)&m_dcx.mem[0], rkey) :
                            uct_ep_am_bcopy(ep, 6, pack, &src, 0);
        });
        m_dcx.flush();
        EXPECT_EQ(errors + 1, m_dcx.errors.size());
        EXPECT_EQ(read, lines("gather_read")) << "through a segment";
        uct_ep_destroy(ep);
    }

    enum { MANY = 4 }; /* there is one segment */
};

TEST_P(dcx_dm_fails, put_to_a_wrong_key)
{
    for (unsigned i = 0; i < MANY; i++) {
        fail(true, dcx_peek_rkey(m_dcx.memh) ^ 0x4000);
    }
    EXPECT_EQ(0u, read_by_put(1000));
    EXPECT_NE("", m_log.take());
}

class dcx_dm_lost : public dcx_dm_fails {};

TEST_P(dcx_dm_lost, put)
{
    for (unsigned i = 0; i < MANY; i++) {
        fail(true, dcx_peek_rkey(m_dcx.memh));
    }
    EXPECT_EQ(0u, read_by_send(1000));
    EXPECT_NE("", m_log.take());
}

class dcx_dm_refused : public dcx_dm_fails {};

TEST_P(dcx_dm_refused, message)
{
    for (unsigned i = 0; i < MANY; i++) {
        fail(false, 0);
    }
    EXPECT_EQ(0u, read_by_put(1000));
    EXPECT_NE("", m_log.take());
}

INSTANTIATE_TEST_SUITE_P(plain, dcx_dm_fails, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_dm_fails, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(lost, dcx_dm_lost, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(refused, dcx_dm_refused, testing::Values(0));

/* A tagged message has a header of 16 bytes. */
class dcx_dm_tags : public dcx_dm {};

TEST_P(dcx_dm_tags, of_any_length)
{
    uint64_t before = 0;

    m_dcx.on_eager = [&](void *data, size_t length, unsigned, uct_tag_t,
                         uint64_t) { return receive(this, data, length, 0); };
    for (size_t length = 1; length <= PUT_MAX - 16 + 1; length += 97) {
        size_t size = std::min<size_t>(length, PUT_MAX - 16);
        source src  = {m_data.data(), size};

        before = lines("gather_read");
        post([&] {
            return uct_ep_tag_eager_bcopy(m_dcx.ep, 3, 0, pack, &src, 0);
        });
        EXPECT_EQ(part(size), take(1)[0]) << size;
        EXPECT_EQ(before, lines("gather_read")) << size;
    }
    source pair = {m_data.data(), 1000};
    for (int i = 0; i < 2; i++) {
        post([&] {
            return uct_ep_tag_eager_bcopy(m_dcx.ep, 3, 0, pack, &pair, 0);
        });
    }
    auto got = take(2);
    EXPECT_EQ(part(1000), got[0]);
    EXPECT_EQ(part(1000), got[1]);
    EXPECT_LT(15u, lines("gather_read") - before);
}

INSTANTIATE_TEST_SUITE_P(tags, dcx_dm_tags, testing::Values(0));

/* There are several segments, and not one more. */
class dcx_dm_three : public dcx_dm {};

TEST_P(dcx_dm_three, segments)
{
    uint64_t before = lines("gather_read");

    for (unsigned i = 0; i < 5; i++) {
        send(PUT_MAX - 2 - i, i);
    }
    EXPECT_EQ("3", segments());
    auto got = take(5);
    EXPECT_EQ("0", segments());
    for (unsigned i = 0; i < got.size(); i++) {
        EXPECT_EQ(part(PUT_MAX - 2 - i, i), got[i]) << i;
    }
    EXPECT_EQ(2 * 33u, lines("gather_read") - before);
}

INSTANTIATE_TEST_SUITE_P(three, dcx_dm_three, testing::Values(0));

/* --- without device memory ------------------------------------------------ */

class dcx_dm_none : public dcx_dm {};

TEST_P(dcx_dm_none, reads_a_buffer)
{
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(6u, read_by_send(257)); /* its header is in a sixth */
        EXPECT_EQ(4u, read_by_put(256));
        EXPECT_EQ(0u, read_by_send(8));
        EXPECT_EQ(0u, read_by_put(8));
    }
    EXPECT_EQ("0", segments());
    EXPECT_EQ("", m_log.take());
}

INSTANTIATE_TEST_SUITE_P(lacks, dcx_dm_none, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(model, dcx_dm_none, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(small, dcx_dm_none, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(off, dcx_dm_none, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(zero, dcx_dm_none, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(no_wc, dcx_dm_none, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(no_alloc, dcx_dm_none, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(no_key, dcx_dm_none, testing::Values(0));

/* The device has memory for one interface. */
class dcx_dm_few : public dcx_dm {};

TEST_P(dcx_dm_few, of_another_interface)
{
    EXPECT_EQ(0u, read_by_send(257));
    for (int i = 0; i < 2; i++) {
        dcx_loop other;
        uint64_t before = lines("gather_read");
        source src      = {m_data.data(), 257};

        EXPECT_EQ(257, uct_ep_am_bcopy(other.ep, 5, pack, &src, 0));
        other.flush();
        EXPECT_EQ((i == 0) ? 6u : 0u, lines("gather_read") - before);
        m_dcx.close_iface();
    }
}

INSTANTIATE_TEST_SUITE_P(few, dcx_dm_few, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    using env = std::vector<std::pair<const char *, const char *>>;
    auto mode = [](const char *name, env vars) {
        vars.push_back({"SOFTHCA_PCIE", "y"});
        return hca_mode{name, vars};
    };

    return hca_test_main(
        argc, argv,
        {mode("plain", {}), mode("late", {{"SOFTHCA_DELAY", "100"}}),
         mode("doorbells", {{"UCX_DCX_MMIO_MODE", "db"}}),
         mode("lost", {{"SOFTHCA_FAULT", "drop:op=write:count=0"},
                       {"UCX_DCX_TIMEOUT", "1ms"}}),
         mode("refused", {{"SOFTHCA_FAULT", "nak_op:op=send:count=0"}}),
         mode("three", {{"UCX_DCX_DM_COUNT", "3"}}),
         mode("tags", {{"UCX_DCX_TM_ENABLE", "y"}}),
         mode("lacks", {{"SOFTHCA_LACKS", "dm"}}),
         mode("model", {{"SOFTHCA_MODEL", "vf"}}),
         mode("small", {{"SOFTHCA_LIMITS", "max_dm_size=2047"}}),
         mode("off", {{"UCX_DCX_DM_SIZE", "0"}}),
         mode("zero", {{"UCX_DCX_DM_COUNT", "0"}}),
         mode("no_wc", {{"SOFTHCA_LACKS", "wc"}}),
         mode("no_alloc", {{"SOFTHCA_FAULT", "fail_verb:name=alloc_dm"}}),
         mode("no_key", {{"SOFTHCA_FAULT", "fail_verb:name=reg_dm_mr"}}),
         mode("few", {{"SOFTHCA_LIMITS", "max_dm_size=4096"}})});
}
