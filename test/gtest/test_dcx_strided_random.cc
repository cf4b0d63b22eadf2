/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Strided operations on random memory, compared with a plain loop: random
 * blocks, strides and counts, in few entries and in very many, from two
 * regions, to and from any place of the peer, which is another interface here
 * or another process. All memory of both sides is compared each time, including
 * holes. A get with overlapping blocks is refused, and changes nothing.
 *
 * DCX_STRIDED_SEED repeats a run; DCX_STRIDED_LAYOUTS is the number of layouts
 * in each case for each of its three operations.
 */
#include "dcx_end.h"
#include "dcx_loop.h"
#include "ucx_log.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

namespace {

using iovs = std::vector<uct_iov_t>;

enum {
    SIZE        = 1 << 17,
    MAX_MESSAGE = 8192,
    AM_ID       = 7,
    HEADER      = 4,
    MAX_IOV     = 1024
};

unsigned number_from_env(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return (text != NULL) ? strtoul(text, NULL, 0) : otherwise;
}

/* The peer's memory, shared with the test */
struct window {
    uint8_t bytes[SIZE];
    uint8_t message[HEADER + MAX_MESSAGE];
    size_t length;
    uint32_t rkey;
    std::atomic<unsigned> received;
};

/* The peer's interface, with its memory */
class peer_end {
public:
    explicit peer_end(window *shared) : m_window(shared)
    {
        UCT_CALL(uct_md_mem_reg(loop.md(), shared->bytes, SIZE,
                                UCT_MD_MEM_ACCESS_ALL, &m_memh));
        UCT_CALL(uct_iface_set_am_handler(loop.iface, AM_ID, receive, this, 0));
        shared->rkey = dcx_peek_rkey(m_memh);
    }

    ~peer_end() { uct_md_mem_dereg(loop.md(), m_memh); }

    peer_end(const peer_end &) = delete;

    dcx_loop loop;

private:
    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned)
    {
        window *to = ((peer_end *)arg)->m_window;

        to->length = length;
        memcpy(to->message, data, std::min(length, sizeof(to->message)));
        to->received.fetch_add(1);
        return UCS_OK;
    }

    window *m_window;
    uct_mem_h m_memh;
};

/* The peer in this process, or in another one that starts before the test opens
 * the device */
class peer {
public:
    explicit peer(bool is_other)
    {
        void *map = mmap(NULL, sizeof(window), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        HCA_CHECK_CALL(map != MAP_FAILED);
        shared = new (map) window{};
        is_other ? start() : open();
    }

    ~peer()
    {
        delete m_here;
        if (m_pid > 0) {
            kill(m_pid, SIGKILL);
            waitpid(m_pid, NULL, 0);
        }
        munmap(shared, sizeof(window));
    }

    peer(const peer &) = delete;

    void progress()
    {
        if (m_here != NULL) {
            uct_worker_progress(m_here->loop.worker);
        }
    }

    window *shared;
    std::vector<uint8_t> dev_addr, iface_addr;

private:
    void open()
    {
        m_here     = new peer_end(shared);
        dev_addr   = m_here->loop.dev_addr();
        iface_addr = m_here->loop.iface_addr();
    }

    void start()
    {
        int fds[2];

        HCA_CHECK_CALL(pipe(fds) == 0);
        HCA_CHECK_CALL((m_pid = fork()) >= 0);
        if (m_pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run(fds[1]);
        }
        close(fds[1]);
        for (auto *addr : {&dev_addr, &iface_addr}) {
            uint8_t size;

            HCA_CHECK_CALL(read(fds[0], &size, 1) == 1);
            addr->resize(size);
            HCA_CHECK_CALL(read(fds[0], addr->data(), size) == size);
        }
        close(fds[0]);
    }

    [[noreturn]] void run(int fd)
    {
        peer_end end(shared);

        for (auto addr : {end.loop.dev_addr(), end.loop.iface_addr()}) {
            uint8_t size = addr.size();

            HCA_CHECK_CALL(write(fd, &size, 1) == 1);
            HCA_CHECK_CALL(write(fd, addr.data(), size) == size);
        }
        while (getppid() != 1) {
            if (uct_worker_progress(end.loop.worker) == 0) {
                sched_yield();
            }
        }
        _exit(0);
    }

    peer_end *m_here = NULL;
    pid_t m_pid      = 0;
};

/* Random numbers; the same seed gives the same ones. */
class draws {
public:
    explicit draws(unsigned seed) : m_random(seed) {}

    unsigned operator()(unsigned min, unsigned max)
    {
        return min + (m_random() % (max - min + 1));
    }

    bool once_in(unsigned n) { return (*this)(1, n) == 1; }

    void fill(uint8_t *bytes, size_t size)
    {
        for (size_t i = 0; i < size; i += sizeof(uint32_t)) {
            uint32_t word = m_random();

            memcpy(bytes + i, &word, sizeof(word));
        }
    }

    std::mt19937 &random() { return m_random; }

private:
    std::mt19937 m_random;
};

/* Two adjacent regions, each registered, and their expected contents: where one
 * ends and the other begins, only their keys differ. */
struct memory {
    memory(dcx_loop &loop, draws &draw) :
        bytes(2 * SIZE), expected(2 * SIZE), m_md(loop.md())
    {
        refill(draw);
        for (unsigned i = 0; i < 2; i++) {
            UCT_CALL(uct_md_mem_reg(m_md, bytes.data() + (i * SIZE), SIZE,
                                    UCT_MD_MEM_ACCESS_ALL, &memh[i]));
        }
    }

    ~memory()
    {
        for (auto each : memh) {
            uct_md_mem_dereg(m_md, each);
        }
    }

    memory(const memory &) = delete;

    void refill(draws &draw)
    {
        draw.fill(bytes.data(), bytes.size());
        expected = bytes;
    }

    std::vector<uint8_t> bytes, expected;
    uct_mem_h memh[2];

private:
    uct_md_h m_md;
};

/* An entry of a layout, for the plain loop */
struct blocks {
    unsigned region, offset, length, stride, count;

    unsigned end() const { return offset + ((count - 1) * stride) + length; }

    /* Returns the offset in the memory of both regions. */
    unsigned start() const { return (region * SIZE) + offset; }

    /* Calls @with for the place of each byte, in order. */
    template <typename F> void each(F with) const
    {
        for (unsigned i = 0; i < count; i++) {
            for (unsigned j = 0; j < length; j++) {
                with(start() + (i * stride) + j);
            }
        }
    }
};

using layout = std::vector<blocks>;

size_t length_of(const layout &all)
{
    size_t length = 0;

    for (auto &e : all) {
        length += (size_t)e.length * e.count;
    }
    return length;
}

/* Returns text for the message of a failure. */
std::string text_of(const layout &all)
{
    std::string text;

    for (auto &e : all) {
        text += " " + std::string(1, 'a' + e.region) + "+" +
                std::to_string(e.offset) + ":" + std::to_string(e.length) +
                "/" + std::to_string(e.stride) + "x" + std::to_string(e.count);
        if (text.size() > 2000) {
            return text + " ...";
        }
    }
    return text;
}

/* Random layouts, each of at most @max_pieces pieces and @max_length bytes */
class generator {
public:
    generator(draws &draw, unsigned max_pieces, size_t max_length) :
        m_lot(draw), m_max_pieces(max_pieces), m_max_length(max_length)
    {
    }

    layout next(bool may_overlap)
    {
        m_pieces = m_max_pieces;
        m_length = m_max_length;
        m_pos[0] = m_lot(0, 100);
        m_pos[1] = m_lot(0, 1) * m_lot(0, 100);
        m_all.clear();

        unsigned kind = m_lot(0, 5);
        for (unsigned i = num_entries(kind); i > 0; i--) {
            if (m_lot.once_in(8)) {
                add_comb();
            } else if (m_lot.once_in(40)) {
                add_crossing();
            } else {
                add(entry(kind));
            }
        }
        if (m_all.empty()) {
            add({0, m_lot(0, 100), 1, 1, 1});
        }
        if (m_lot(0, 1)) {
            std::shuffle(m_all.begin(), m_all.end(), m_lot.random());
        }
        if (may_overlap) {
            scatter();
        }
        return m_all;
    }

private:
    unsigned num_entries(unsigned kind)
    {
        switch (kind) {
        case 0:
            return 1;
        case 1:
            return m_lot(2, MAX_IOV); /* tiny ones */
        case 2:
            return m_lot(10, 60);
        default:
            return m_lot(1, 12);
        }
    }

    blocks entry(unsigned kind)
    {
        static const unsigned max_length[] = {300, 12, 100, 40, 1000, 9000};
        static const unsigned max_gap[]    = {600, 60, 200, 100, 2000, 70000};
        unsigned length                    = m_lot(1, max_length[kind]);
        unsigned gap   = m_lot.once_in(4) ? 0 : m_lot(0, max_gap[kind]);
        unsigned count = m_lot.once_in(3) ? 1 :
                                            m_lot(1, (kind == 1) ? 4 :
                                                     (kind == 5) ? 5 :
                                                                   60);

        return {m_lot(0, 1), 0, length, length + gap, count};
    }

    /* Adds several entries, each in the gaps of the others. */
    void add_comb()
    {
        unsigned region = m_lot(0, 1), stride = m_lot(40, 400);
        unsigned count = m_lot(1, 40), start = m_pos[region], end = start;

        for (unsigned pos = 0; pos + 20 < stride; pos += m_lot(10, 60)) {
            m_pos[region] = start + pos;
            add({region, 0, m_lot(1, 10), stride, count});
            end = std::max(end, m_pos[region]);
        }
        m_pos[region] = end;
    }

    /* Adds pieces of equal length and distance, sometimes adjacent, from the
     * end of one region to the start of the other: they form no run. */
    void add_crossing()
    {
        unsigned length = m_lot(1, 40), stride = length + (m_lot(0, 1) * 24);
        unsigned num = m_lot(1, 10), first = SIZE - (num * stride);

        if ((m_pos[0] > first) || (m_pos[1] > 0)) {
            return;
        }
        for (unsigned i = 0; i < 2 * num; i++) {
            m_pos[i / num] = (first + (i * stride)) % SIZE;
            put({i / num, m_pos[i / num], length, stride, 1});
        }
    }

    /* Adds an entry after the existing ones, if there is room. */
    void add(blocks e)
    {
        e.offset = m_pos[e.region] + (m_lot(0, 1) ? 0 : m_lot(0, 30));
        while ((e.count > 1) && ((e.end() > SIZE) || (e.count > m_pieces) ||
                                 ((size_t)e.length * e.count > m_length))) {
            e.count /= 2;
        }
        put(e);
    }

    void put(const blocks &e)
    {
        if ((e.end() <= SIZE) && (m_pieces > 0) && (e.length <= m_length) &&
            (m_all.size() < MAX_IOV)) {
            m_pieces -= e.count;
            m_length -= (size_t)e.length * e.count;
            m_pos[e.region] = e.end();
            m_all.push_back(e);
        }
    }

    /* Moves some entries anywhere; they may overlap, as allowed for a
     * source. */
    void scatter()
    {
        for (auto &e : m_all) {
            if (m_lot.once_in(8)) {
                e.offset = m_lot(0, SIZE - (e.end() - e.offset));
            }
        }
    }

    draws &m_lot;
    unsigned m_max_pieces, m_pieces = 0, m_pos[2] = {};
    size_t m_max_length, m_length = 0;
    layout m_all;
};

class dcx_strided_random : public testing::TestWithParam<int> {
protected:
    dcx_strided_random() :
        m_seed(number_from_env("DCX_STRIDED_SEED", std::random_device()())),
        m_lot(m_seed)
    {
        printf("DCX_STRIDED_SEED=%u\n", m_seed);
    }

    /* Both ends. A peer in a process of its own starts first. */
    struct ends {
        ends(dcx_strided_random *test, bool is_other) :
            far(is_other), mem(loop, test->m_lot), expected(SIZE)
        {
            UCT_CALL(loop.create_ep(far.dev_addr, far.iface_addr, 0, &ep));
        }

        ~ends()
        {
            uct_ep_destroy(ep);
            loop.flush();
        }

        ucx_log_reader log;
        peer far; /* before this process opens the device */
        dcx_loop loop;
        memory mem;
        std::vector<uint8_t> expected; /* expected memory of the peer */
        uct_ep_h ep = NULL;
    };

    iovs to_iov(const layout &all)
    {
        iovs iov;

        for (auto &e : all) {
            /* an empty entry, which needs no handle: at most as many again */
            if ((all.size() < MAX_IOV / 2) && m_lot.once_in(50)) {
                iov.push_back({NULL, m_lot(0, 1) * 8, NULL, 16, 0});
            }
            iov.push_back({m_ends->mem.bytes.data() + e.start(), e.length,
                           m_ends->mem.memh[e.region], e.stride, e.count});
        }
        return iov;
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            m_ends->far.progress();
            if (uct_worker_progress(m_ends->loop.worker) == 0) {
                sched_yield();
            }
        }
    }

    /* Posts as soon as there is room, and waits for the completion. */
    template <typename F> ucs_status_t run(F post)
    {
        ucs_status_t status;
        dcx_end end;

        progress_until([&] {
            status = post(&end.comp);
            return status != UCS_ERR_NO_RESOURCE;
        });
        if (status != UCS_INPROGRESS) {
            return status;
        }
        progress_until([&] { return end.count > 0; });
        return end.status;
    }

    void expect_same(const uint8_t *bytes, const std::vector<uint8_t> &expected,
                     const char *what)
    {
        if (memcmp(bytes, expected.data(), expected.size()) != 0) {
            auto at = std::mismatch(expected.begin(), expected.end(), bytes);

            FAIL() << what << " differs at " << at.first - expected.begin();
        }
    }

    /* Compares all memory of both sides. */
    void expect_all()
    {
        expect_same(m_ends->far.shared->bytes, m_ends->expected, "the peer");
        expect_same(m_ends->mem.bytes.data(), m_ends->mem.expected,
                    "this side");
    }

    void put(const layout &all)
    {
        unsigned to = m_lot(0, SIZE - length_of(all)), pos = to;
        window *shared = m_ends->far.shared;
        const iovs iov = to_iov(all);

        for (auto &e : all) {
            e.each([&](unsigned from) {
                m_ends->expected[pos++] = m_ends->mem.bytes[from];
            });
        }
        ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_put_zcopy(
                          m_ends->ep, iov.data(), iov.size(),
                          (uintptr_t)shared->bytes + to, shared->rkey, comp);
                  }))
            << m_ends->log.take();
        expect_all();
    }

    bool overlaps(const layout &all)
    {
        std::vector<bool> taken(2 * SIZE);
        bool found = false;

        for (auto &e : all) {
            e.each([&](unsigned at) {
                found |= taken[at];
                taken[at] = true;
            });
        }
        return found;
    }

    /* Returns true for entries that need no layout: their overlap is not
     * checked. */
    static bool is_plain(const layout &all)
    {
        return (all.size() <= 11) &&
               std::all_of(all.begin(), all.end(),
                           [](const blocks &e) { return e.count == 1; });
    }

    void get(const layout &all)
    {
        unsigned from = m_lot(0, SIZE - length_of(all)), pos = from;
        window *shared = m_ends->far.shared;
        const iovs iov = to_iov(all);
        bool is_wrong  = overlaps(all);

        if (is_wrong && is_plain(all)) {
            return;
        }
        for (auto &e : is_wrong ? layout() : all) {
            e.each([&](unsigned to) {
                m_ends->mem.expected[to] = m_ends->expected[pos++];
            });
        }
        ASSERT_EQ(is_wrong ? UCS_ERR_INVALID_PARAM : UCS_OK,
                  run([&](uct_completion_t *comp) {
                      return uct_ep_get_zcopy(
                          m_ends->ep, iov.data(), iov.size(),
                          (uintptr_t)shared->bytes + from, shared->rkey, comp);
                  }))
            << m_ends->log.take();
        if (is_wrong) {
            std::string log = m_ends->log.take();

            m_refused++;
            ASSERT_NE(std::string::npos, log.find("overlap")) << log;
        }
        expect_all();
    }

    void am(const layout &all)
    {
        window *shared                = m_ends->far.shared;
        unsigned received             = shared->received;
        const iovs iov                = to_iov(all);
        std::vector<uint8_t> expected = {'h', 'e', 'a', 'd'};

        for (auto &e : all) {
            e.each([&](unsigned from) {
                expected.push_back(m_ends->mem.bytes[from]);
            });
        }
        ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_am_zcopy(m_ends->ep, AM_ID, expected.data(),
                                             HEADER, iov.data(), iov.size(), 0,
                                             comp);
                  }))
            << m_ends->log.take();
        progress_until([&] { return shared->received != received; });
        ASSERT_EQ(expected.size(), shared->length);
        ASSERT_EQ(0, memcmp(expected.data(), shared->message, expected.size()));
        expect_all();
    }

    void refill()
    {
        m_ends->mem.refill(m_lot);
        m_lot.fill(m_ends->far.shared->bytes, SIZE);
        m_ends->expected.assign(m_ends->far.shared->bytes,
                                m_ends->far.shared->bytes + SIZE);
    }

    /* Returns a new layout or an earlier one, whose key still has it if it is
     * recent enough. */
    layout next(generator &with, std::vector<layout> &earlier, bool may_overlap)
    {
        if (!earlier.empty() && m_lot.once_in(4)) {
            return earlier[m_lot(0, earlier.size() - 1)];
        }

        layout all = with.next(may_overlap);
        if (earlier.size() < 20) {
            earlier.push_back(all);
        } else {
            earlier[m_lot(0, 19)] = all;
        }
        return all;
    }

    /* Runs random operations, each with a layout of its own. Some gets have
     * overlapping blocks. */
    void run_random(bool is_other)
    {
        unsigned num        = number_from_env("DCX_STRIDED_LAYOUTS", 400);
        unsigned max_pieces = number_from_env("UCX_DCX_UMR_MAX_ENTRIES", 8192);
        ends both(this, is_other);
        generator long_ones(m_lot, max_pieces, SIZE / 2);
        generator short_ones(m_lot, max_pieces, MAX_MESSAGE);
        std::vector<layout> earlier[3];

        m_ends = &both;
        for (unsigned i = 0; (i < num) && !HasFailure(); i++) {
            if (i % 50 == 0) {
                refill();
            }
            layout all = next(long_ones, earlier[0], m_lot.once_in(2));
            SCOPED_TRACE("put of layout " + std::to_string(i) + text_of(all));
            put(all);
            all = next(long_ones, earlier[1], m_lot.once_in(8));
            SCOPED_TRACE("get of layout " + std::to_string(i) + text_of(all));
            get(all);
            all = next(short_ones, earlier[2], m_lot.once_in(2));
            SCOPED_TRACE("am of layout " + std::to_string(i) + text_of(all));
            am(all);
        }
        EXPECT_EQ("", both.log.take());
        if (num >= 200) {
            EXPECT_LT(0u, m_refused) << "no destination overlapped";
        }
        m_ends = NULL;
    }

    unsigned m_seed, m_refused = 0;
    draws m_lot;
    ends *m_ends = NULL;
};

TEST_P(dcx_strided_random, this_process)
{
    run_random(false);
}

TEST_P(dcx_strided_random, other_process)
{
    run_random(true);
}

INSTANTIATE_TEST_SUITE_P(plain, dcx_strided_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(copies, dcx_strided_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(keys, dcx_strided_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rand, dcx_strided_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(hw_dcs, dcx_strided_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_strided_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_strided_random, testing::Values(0));

} // namespace

int main(int argc, char **argv)
{
    const std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_FAILURE", "error"},
        {"SOFTHCA_LOG", "error"},
    };
    auto copies = env, keys = env, rand = env, hw_dcs = env, roce = env;
    auto late = env;

    copies.push_back({"UCX_DCX_STRIDED_COPY", "8192"});
    /* all memory of more than one piece uses a key, some of it with very
     * many */
    keys.push_back({"UCX_DCX_STRIDED_MAX_PLAIN", "1"});
    keys.push_back({"UCX_DCX_STRIDED_COPY", "0"});
    keys.push_back({"UCX_DCX_STRIDED_COPY_PIECE", "0"});
    keys.push_back({"UCX_DCX_UMR_MAX_ENTRIES", "8192"});
    keys.push_back({"UCX_DCX_UMR_SLOTS", "16"});
    rand.push_back({"UCX_DCX_TX_POLICY", "rand"});
    hw_dcs.push_back({"UCX_DCX_TX_POLICY", "hw_dcs"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    late.push_back({"SOFTHCA_DELAY", "20"});
    return hca_test_main(argc, argv,
                         {{"plain", env},
                          {"copies", copies},
                          {"keys", keys},
                          {"rand", rand},
                          {"hw_dcs", hw_dcs},
                          {"roce", roce},
                          {"late", late}});
}
