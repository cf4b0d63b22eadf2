/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Random layouts as handles, compared with a plain loop: on both sides, nested,
 * set again and freed at random, also while others name them; memory below them
 * is deregistered and registered. After each put, get and message all memory of
 * both sides is compared. A loop over the descriptions computes the places of
 * each layout, and predicts by the rules of <uct/dcx/dcx.h> which calls are
 * refused.
 *
 * The peer is another interface of this process, or another process, which sets
 * its layouts on request. DCX_STRIDED_SEED repeats a run; DCX_STRIDED_LAYOUTS
 * is the number of layouts set in each case.
 */
#include "dcx_end.h"
#include "dcx_layouts.h"
#include "ucx_log.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <poll.h>
#include <random>
#include <set>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

namespace {

enum {
    SIZE        = 1 << 16, /* bytes of a region */
    NUM_REGIONS = 2,
    NUM_HANDLES = 12,
    MAX_ENTRIES = 60,
    MAX_LENGTH  = 1 << 15, /* maximum bytes of a layout */
    MAX_MESSAGE = 8000,
    MAX_DEPTH   = 4,
    AM_ID       = 7
};

unsigned number_from_env(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return (text != NULL) ? strtoul(text, NULL, 0) : otherwise;
}

/* An entry of a layout. @what: region 0 or 1, or the number of a handle */
struct entry {
    unsigned what, offset, length, skip;

    uint64_t stride() const { return (uint64_t)length + skip; }
};

/* A command to a side. @access: UCT_MD_MEM_ACCESS_* */
struct command {
    enum { SET, FREE_LAYOUT, NEW_MEMORY, TELL_KEY } what;
    unsigned target, repeat, num;
    uint64_t access;
    entry entries[MAX_ENTRIES];
};

struct answer {
    ucs_status_t status;
    uint32_t rkey;
};

/* Memory of a side that the test reads, and messages that arrived there */
struct window {
    uint8_t bytes[NUM_REGIONS * SIZE];
    uint8_t message[MAX_MESSAGE];
    size_t length;
    std::atomic<unsigned> received;

    static window *map()
    {
        void *map = mmap(NULL, sizeof(window), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        HCA_CHECK_CALL(map != MAP_FAILED);
        return new (map) window{};
    }
};

/* An interface, its memory and its handles */
class side {
public:
    explicit side(window *shared) : mem(shared)
    {
        for (unsigned i = 0; i < NUM_REGIONS; i++) {
            open_region(i);
        }
        for (unsigned i = 0; i < NUM_HANDLES; i++) {
            open_handle(i);
        }
        UCT_CALL(uct_iface_set_am_handler(loop.iface, AM_ID, receive, this, 0));
    }

    /* Frees some handles before those that they name, others after. */
    ~side()
    {
        for (unsigned i = 0; i < NUM_HANDLES; i += 2) {
            uct_md_mem_dereg(loop.md(), memh[NUM_REGIONS + i]);
        }
        for (unsigned i = 0; i < NUM_REGIONS; i++) {
            uct_md_mem_dereg(loop.md(), memh[i]);
        }
        for (unsigned i = 1; i < NUM_HANDLES; i += 2) {
            uct_md_mem_dereg(loop.md(), memh[NUM_REGIONS + i]);
        }
    }

    side(const side &) = delete;

    answer execute(const command &cmd)
    {
        ucs_status_t status = UCS_OK;

        switch (cmd.what) {
        case command::SET:
            status = set(cmd);
            break;
        case command::FREE_LAYOUT:
            UCT_CALL(uct_md_mem_dereg(loop.md(), memh[cmd.target]));
            open_handle(cmd.target - NUM_REGIONS);
            break;
        case command::NEW_MEMORY:
            UCT_CALL(uct_md_mem_dereg(loop.md(), memh[cmd.target]));
            open_region(cmd.target);
            break;
        case command::TELL_KEY:
            break;
        }
        return {status, (uint32_t)dcx_peek_rkey(memh[cmd.target])};
    }

    window *mem;
    dcx_loop loop;
    uct_mem_h memh[NUM_REGIONS + NUM_HANDLES];

private:
    void open_region(unsigned i)
    {
        UCT_CALL(uct_md_mem_reg(loop.md(), mem->bytes + (i * SIZE), SIZE,
                                UCT_MD_MEM_ACCESS_ALL, &memh[i]));
    }

    /* Opens handles with keys of all sizes. */
    void open_handle(unsigned i)
    {
        UCT_CALL(m_api.create(loop.iface, (i % 3) ? 1024 : 40,
                              &memh[NUM_REGIONS + i]));
    }

    ucs_status_t set(const command &cmd)
    {
        std::vector<uct_dcx_block_t> blocks;
        dcx_deadline deadline;
        ucs_status_t status;

        for (unsigned i = 0; i < cmd.num; i++) {
            const entry &e = cmd.entries[i];

            blocks.push_back(
                {e.offset + ((e.what < NUM_REGIONS) ?
                                 (uintptr_t)mem->bytes + (e.what * SIZE) :
                                 0),
                 e.length, e.skip, memh[e.what]});
        }

        uct_dcx_layout_params_t params = {cmd.access, cmd.repeat, cmd.num,
                                          blocks.data()};
        while ((status = m_api.set(memh[cmd.target], &params)) ==
               UCS_ERR_NO_RESOURCE) {
            deadline.check("room for a layout");
            m_api.test(memh[cmd.target]);
        }
        if (status != UCS_OK) {
            return status;
        }
        while ((status = m_api.test(memh[cmd.target])) == UCS_INPROGRESS) {
            deadline.check("a layout");
        }
        return status;
    }

    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned)
    {
        window *to = ((side *)arg)->mem;

        to->length = length;
        memcpy(to->message, data, std::min<size_t>(length, MAX_MESSAGE));
        to->received.fetch_add(1);
        return UCS_OK;
    }

    dcx_layouts m_api;
};

/* The peer's side in this process, or in another one that starts before the
 * test opens the device */
class peer {
public:
    explicit peer(bool is_other) : mem(window::map())
    {
        is_other ? start() : open();
    }

    ~peer()
    {
        delete m_here;
        if (m_pid > 0) {
            close(m_to);
            close(m_from);

            int status = 0;
            EXPECT_EQ(m_pid, waitpid(m_pid, &status, 0));
            EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
        }
        munmap(mem, sizeof(window));
    }

    peer(const peer &) = delete;

    void progress()
    {
        if (m_here != NULL) {
            uct_worker_progress(m_here->loop.worker);
        }
    }

    answer execute(const command &cmd)
    {
        answer reply;

        if (m_here != NULL) {
            return m_here->execute(cmd);
        }
        HCA_CHECK_CALL(write(m_to, &cmd, sizeof(cmd)) == sizeof(cmd));
        HCA_CHECK_CALL(read(m_from, &reply, sizeof(reply)) == sizeof(reply));
        return reply;
    }

    window *mem;
    std::vector<uint8_t> dev_addr, iface_addr;

private:
    void open()
    {
        m_here     = new side(mem);
        dev_addr   = m_here->loop.dev_addr();
        iface_addr = m_here->loop.iface_addr();
    }

    void start()
    {
        int to[2], from[2];

        HCA_CHECK_CALL((pipe(to) == 0) && (pipe(from) == 0));
        HCA_CHECK_CALL((m_pid = fork()) >= 0);
        if (m_pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(to[1]);
            close(from[0]);
            serve(to[0], from[1]);
        }
        close(to[0]);
        close(from[1]);
        m_to   = to[1];
        m_from = from[0];
        for (auto *addr : {&dev_addr, &iface_addr}) {
            uint8_t size;

            HCA_CHECK_CALL(read(m_from, &size, 1) == 1);
            addr->resize(size);
            HCA_CHECK_CALL(read(m_from, addr->data(), size) == size);
        }
    }

    /* Executes commands until the test closes its end. */
    [[noreturn]] void serve(int in, int out)
    {
        {
            ucx_log_reader log; /* refused calls are logged */
            side self(mem);
            command cmd;

            for (auto addr : {self.loop.dev_addr(), self.loop.iface_addr()}) {
                uint8_t size = addr.size();

                HCA_CHECK_CALL(write(out, &size, 1) == 1);
                HCA_CHECK_CALL(write(out, addr.data(), size) == size);
            }
            while (wait_input(self.loop, in) &&
                   (read(in, &cmd, sizeof(cmd)) == sizeof(cmd))) {
                answer reply = self.execute(cmd);

                HCA_CHECK_CALL(write(out, &reply, sizeof(reply)) ==
                               sizeof(reply));
            }
        }
        _exit(0);
    }

    static bool wait_input(dcx_loop &loop, int in)
    {
        struct pollfd poll_fd = {};

        poll_fd.fd     = in;
        poll_fd.events = POLLIN;
        while (poll(&poll_fd, 1, 0) == 0) {
            if (uct_worker_progress(loop.worker) == 0) {
                sched_yield();
            }
        }
        return true;
    }

    side *m_here = NULL;
    pid_t m_pid  = 0;
    int m_to, m_from;
};

using places = std::vector<unsigned>; /* offsets in the bytes of a window */

/* The expected state of a side, computed by a loop */
class model {
public:
    struct handle {
        bool is_set    = false;
        command cmd    = {};
        unsigned depth = 0;
        std::set<unsigned> names;
        size_t length = 0;
        uint32_t rkey = 0;
    };

    explicit model(window *mem) : now(mem->bytes), expected(NUM_REGIONS * SIZE)
    {
        for (unsigned i = 0; i < NUM_REGIONS; i++) {
            m_known[i].resize(SIZE);
            std::iota(m_known[i].begin(), m_known[i].end(), i * SIZE);
        }
    }

    handle &at(unsigned what) { return m_handles[what - NUM_REGIONS]; }

    size_t length(unsigned what)
    {
        return (what < NUM_REGIONS) ? (size_t)SIZE : at(what).length;
    }

    bool is_set(unsigned what)
    {
        return (what < NUM_REGIONS) || at(what).is_set;
    }

    unsigned depth(unsigned what)
    {
        return (what < NUM_REGIONS) ? 0 : at(what).depth;
    }

    bool is_named(unsigned what)
    {
        return std::any_of(m_handles, m_handles + NUM_HANDLES,
                           [&](handle &h) { return h.names.count(what); });
    }

    /* Returns the places of the bytes of @what, in the current state. */
    const places &bytes_of(unsigned what)
    {
        for (unsigned i = 0; i < NUM_HANDLES; i++) {
            m_known[NUM_REGIONS + i].clear();
        }
        if (what >= NUM_REGIONS) {
            find_bytes(what);
        }
        return m_known[what];
    }

    /* Returns true if each level of nesting has the right to write. */
    bool is_writable(unsigned what)
    {
        if (what < NUM_REGIONS) {
            return true;
        }

        handle &h = at(what);
        return ((h.cmd.access == 0) ||
                (h.cmd.access & UCT_MD_MEM_ACCESS_REMOTE_PUT)) &&
               std::all_of(h.names.begin(), h.names.end(),
                           [&](unsigned inner) { return is_writable(inner); });
    }

    /* Returns true if the call must succeed, by its bytes and by its
     * nesting. */
    bool is_allowed(const command &cmd)
    {
        std::vector<std::vector<bool>> taken(NUM_REGIONS + NUM_HANDLES);
        bool is_written = (cmd.access == 0) ||
                          (cmd.access & UCT_MD_MEM_ACCESS_REMOTE_PUT);
        bool has_bytes = false;

        for (unsigned i = 0; i < cmd.num; i++) {
            const entry &e = cmd.entries[i];

            if (e.length == 0) {
                continue;
            }
            has_bytes = true;
            if (!may_name(cmd.target, e.what) ||
                (e.offset + ((cmd.repeat - 1) * e.stride()) + e.length >
                 length(e.what))) {
                return false;
            }
            taken[e.what].resize(length(e.what));
            for (unsigned round = 0; round < cmd.repeat; round++) {
                auto at = taken[e.what].begin() + e.offset +
                          (round * e.stride());

                if (is_written &&
                    (std::find(at, at + e.length, true) != at + e.length)) {
                    return false;
                }
                std::fill(at, at + e.length, true);
            }
        }
        return has_bytes;
    }

    bool may_name(unsigned target, unsigned what)
    {
        unsigned below = depth(what) + 1;

        return (what < NUM_REGIONS) ||
               ((what != target) && at(what).is_set && (below <= MAX_DEPTH) &&
                (!is_named(target) || (below <= depth(target))));
    }

    void set(const command &cmd, uint32_t rkey)
    {
        handle &h = at(cmd.target);

        h.is_set = true;
        h.cmd    = cmd;
        h.rkey   = rkey;
        h.depth  = 1;
        h.length = 0;
        h.names.clear();
        for (unsigned i = 0; i < cmd.num; i++) {
            if (cmd.entries[i].length > 0) {
                h.names.insert(cmd.entries[i].what);
                h.depth = std::max(h.depth, depth(cmd.entries[i].what) + 1);
                h.length += (size_t)cmd.entries[i].length * cmd.repeat;
            }
        }
    }

    /* Drops all layouts that name @what, directly or through others, and @what
     * itself. */
    void forget(unsigned what)
    {
        for (unsigned i = 0; i < NUM_HANDLES; i++) {
            handle &h = m_handles[i];

            if (h.names.count(what) != 0) {
                drop(NUM_REGIONS + i);
            }
        }
        if (what >= NUM_REGIONS) {
            at(what) = handle();
        }
    }

    uint8_t *now;
    std::vector<uint8_t> expected;

private:
    void find_bytes(unsigned what)
    {
        const command &cmd = at(what).cmd;

        for (unsigned inner : at(what).names) {
            if (m_known[inner].empty()) {
                find_bytes(inner);
            }
        }
        for (unsigned round = 0; round < cmd.repeat; round++) {
            for (unsigned i = 0; i < cmd.num; i++) {
                const entry &e = cmd.entries[i];
                auto from      = m_known[e.what].begin() + e.offset +
                            (round * e.stride());

                if (e.length > 0) {
                    m_known[what].insert(m_known[what].end(), from,
                                         from + e.length);
                }
            }
        }
    }

    void drop(unsigned what)
    {
        at(what).is_set = false;
        at(what).names.clear();
        for (unsigned i = 0; i < NUM_HANDLES; i++) {
            if (m_handles[i].is_set && (m_handles[i].names.count(what) != 0)) {
                drop(NUM_REGIONS + i);
            }
        }
    }

    handle m_handles[NUM_HANDLES];
    places m_known[NUM_REGIONS + NUM_HANDLES];
};

/* Returns true if no byte occurs twice. */
bool is_once(const places &where)
{
    std::vector<bool> taken(NUM_REGIONS * SIZE);

    for (unsigned place : where) {
        if (taken[place]) {
            return false;
        }
        taken[place] = true;
    }
    return true;
}

class dcx_mem_layout_random : public testing::TestWithParam<int> {
protected:
    dcx_mem_layout_random() :
        m_seed(number_from_env("DCX_STRIDED_SEED", std::random_device()())),
        m_random(m_seed)
    {
        printf("DCX_STRIDED_SEED=%u\n", m_seed);
    }

    struct ends {
        explicit ends(bool is_other) :
            far(is_other), mem(window::map()), near(new side(mem)),
            near_model(mem), far_model(far.mem)
        {
            near->loop.survives_errors = true;
            connect();
        }

        ~ends()
        {
            uct_ep_destroy(ep);
            near->loop.flush();
            delete near;
            munmap(mem, sizeof(*mem));
        }

        void connect()
        {
            UCT_CALL(
                near->loop.create_ep(far.dev_addr, far.iface_addr, 0, &ep));
        }

        ucx_log_reader log;
        peer far;
        window *mem;
        side *near;
        model near_model, far_model;
        uct_ep_h ep = NULL;
    };

    unsigned draw(unsigned min, unsigned max)
    {
        return min + (m_random() % (max - min + 1));
    }

    bool once_in(unsigned n) { return draw(1, n) == 1; }

    model &model_of(bool is_far)
    {
        return is_far ? m_ends->far_model : m_ends->near_model;
    }

    answer execute(bool is_far, const command &cmd)
    {
        return is_far ? m_ends->far.execute(cmd) : m_ends->near->execute(cmd);
    }

    void refill()
    {
        for (bool is_far : {false, true}) {
            model &of = model_of(is_far);

            for (size_t i = 0; i < of.expected.size(); i += 4) {
                uint32_t word = m_random();

                memcpy(of.now + i, &word, sizeof(word));
            }
            memcpy(of.expected.data(), of.now, of.expected.size());
        }
    }

    /* --- layouts ---------------------------------------------------------- */

    /* Chooses a region or a layout that may be named, sometimes any. */
    unsigned choose_what(model &of, unsigned target)
    {
        unsigned what = draw(0, NUM_REGIONS + NUM_HANDLES - 1);

        return (once_in(20) || of.may_name(target, what)) ?
                   what :
                   draw(0, NUM_REGIONS - 1);
    }

    /* Chooses an entry after the last one in the same memory, in its gaps, or
     * anywhere. */
    entry choose_entry(model &of, const command &cmd)
    {
        entry e           = {choose_what(of, cmd.target), 0, 0, 0};
        unsigned size     = std::max<size_t>(of.length(e.what), 1);
        unsigned room     = size / cmd.repeat;
        const entry *last = NULL;

        e.length = once_in(20) ? 0 : draw(1, std::min(room / 2 + 1, 400u));
        e.skip   = once_in(3) ? 0 : draw(0, room / 2);
        for (unsigned i = 0; i < cmd.num; i++) {
            last = (cmd.entries[i].what == e.what) ? &cmd.entries[i] : last;
        }
        if ((last == NULL) || once_in(10)) {
            e.offset = draw(0, size / 4);
        } else if ((last->skip > 2) && once_in(2)) {
            e.offset = last->offset + last->length;
            e.length = draw(1, last->skip);
            e.skip   = last->stride() - e.length;
        } else {
            e.offset = last->offset + (last->stride() * (cmd.repeat - 1)) +
                       last->length + draw(0, 10);
        }
        while ((e.offset + ((cmd.repeat - 1) * e.stride()) + e.length > size) &&
               (e.length > 1) && !once_in(20)) {
            e.length /= 2;
            e.skip /= 2;
        }
        return e;
    }

    command choose_layout(model &of)
    {
        static const uint64_t access[] = {
            0,
            UCT_MD_MEM_ACCESS_RMA,
            UCT_MD_MEM_ACCESS_RMA,
            UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_REMOTE_GET,
        };
        command cmd   = {command::SET,
                         NUM_REGIONS + draw(0, NUM_HANDLES - 1),
                         1,
                         0,
                         access[draw(0, 3)],
                         {}};
        unsigned num  = draw(1, once_in(4) ? MAX_ENTRIES : 6);
        size_t length = 0;

        cmd.repeat = once_in(3) ? 1 : draw(1, once_in(4) ? 300 : 20);
        while (cmd.num < num) {
            entry e = choose_entry(of, cmd);

            length += (size_t)e.length * cmd.repeat;
            if (length > MAX_LENGTH) {
                break;
            }
            cmd.entries[cmd.num++] = e;
        }
        return cmd;
    }

    /* Returns true if the layout gets shorter while others name it: they need
     * all of its bytes. */
    bool shortens(model &of, const command &cmd)
    {
        size_t length = 0;

        for (unsigned i = 0; i < cmd.num; i++) {
            length += (size_t)cmd.entries[i].length * cmd.repeat;
        }
        return of.is_named(cmd.target) && (length < of.length(cmd.target));
    }

    static size_t pieces(const command &cmd)
    {
        std::vector<uct_dcx_block_t> blocks;
        dcx_layouts api;

        for (unsigned i = 0; i < cmd.num; i++) {
            blocks.push_back(
                {0, cmd.entries[i].length, cmd.entries[i].skip, NULL});
        }

        uct_dcx_layout_params_t params = {0, cmd.repeat, cmd.num,
                                          blocks.data()};
        return api.pieces(&params);
    }

    static std::string text_of(const command &cmd)
    {
        std::string text = "handle " + std::to_string(cmd.target) + " access " +
                           std::to_string(cmd.access) + " repeat " +
                           std::to_string(cmd.repeat);

        for (unsigned i = 0; i < cmd.num; i++) {
            const entry &e = cmd.entries[i];

            text += " " + std::to_string(e.what) + "+" +
                    std::to_string(e.offset) + ":" + std::to_string(e.length) +
                    "/" + std::to_string(e.skip);
        }
        return text;
    }

    void set_one(bool is_far)
    {
        model &of     = model_of(is_far);
        command cmd   = choose_layout(of);
        unsigned room = ((cmd.target - NUM_REGIONS) % 3) ? 1024 : 40;

        if ((cmd.num == 0) || shortens(of, cmd)) {
            return;
        }
        SCOPED_TRACE((is_far ? "far " : "near ") + text_of(cmd));
        ucs_status_t expected = !has_bytes(cmd)      ? UCS_ERR_INVALID_PARAM :
                                (pieces(cmd) > room) ? UCS_ERR_EXCEEDS_LIMIT :
                                of.is_allowed(cmd)   ? UCS_OK :
                                                       UCS_ERR_INVALID_PARAM;
        answer reply          = execute(is_far, cmd);
        ASSERT_EQ(expected, reply.status) << m_ends->log.take();
        if (reply.status == UCS_OK) {
            of.set(cmd, reply.rkey);
            m_num_set++;
        } else {
            /* a peer logs it in its own log */
            bool is_told = !m_ends->log.take().empty();
            ASSERT_TRUE(is_far || is_told);
            m_num_refused++;
        }
    }

    static bool has_bytes(const command &cmd)
    {
        return std::any_of(cmd.entries, cmd.entries + cmd.num,
                           [](const entry &e) { return e.length > 0; });
    }

    void free_one(bool is_far)
    {
        command cmd = {command::FREE_LAYOUT,
                       NUM_REGIONS + draw(0, NUM_HANDLES - 1),
                       0,
                       0,
                       0,
                       {}};

        if (once_in(3)) {
            cmd.what   = command::NEW_MEMORY;
            cmd.target = draw(0, NUM_REGIONS - 1);
        }
        execute(is_far, cmd);
        model_of(is_far).forget(cmd.target);
    }

    /* --- operations ------------------------------------------------------- */

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            m_ends->far.progress();
            if (uct_worker_progress(m_ends->near->loop.worker) == 0) {
                sched_yield();
            }
        }
    }

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

    /* Returns a layout that is set, or a region. */
    unsigned choose_set(model &of)
    {
        for (unsigned i = 0; i < 20; i++) {
            unsigned what = draw(0, NUM_REGIONS + NUM_HANDLES - 1);

            if (of.is_set(what) && !once_in(10)) {
                return what;
            }
        }
        return 0;
    }

    /* Part of a region or a layout, and the places of its bytes */
    struct part {
        unsigned what, offset;
        places where;
        bool is_dest; /* may be a destination */
    };

    part choose_part(model &of, unsigned length)
    {
        part one          = {choose_set(of), 0, {}, true};
        const places &all = of.bytes_of(one.what);

        length     = std::min<size_t>(length, all.size());
        one.offset = draw(0, all.size() - length);
        one.where.assign(all.begin() + one.offset,
                         all.begin() + one.offset + length);
        one.is_dest = of.is_writable(one.what) && is_once(one.where);
        return one;
    }

    uct_iov_t iov_of(const part &one)
    {
        uint8_t *base = (one.what < NUM_REGIONS) ?
                            m_ends->mem->bytes + (one.what * SIZE) :
                            NULL;

        return {base + one.offset, one.where.size(),
                m_ends->near->memh[one.what], 0, 1};
    }

    void expect_same()
    {
        for (bool is_far : {false, true}) {
            model &of = model_of(is_far);

            if (memcmp(of.now, of.expected.data(), of.expected.size()) != 0) {
                auto at = std::mismatch(of.expected.begin(), of.expected.end(),
                                        of.now);

                FAIL() << (is_far ? "far" : "near") << " differs at "
                       << at.first - of.expected.begin();
            }
        }
    }

    void copy(model &to, const places &dst, model &from, const places &src)
    {
        for (size_t i = 0; i < dst.size(); i++) {
            to.expected[dst[i]] = from.expected[src[i]];
        }
    }

    /* Moves data between up to three local parts and a remote one. */
    void move_once()
    {
        model &near = m_ends->near_model, &far = m_ends->far_model;
        part there     = choose_part(far, draw(1, MAX_LENGTH));
        uint32_t rkey  = far_rkey(there.what);
        uint64_t start = there.offset + ((there.what < NUM_REGIONS) ?
                                             (uintptr_t)m_ends->far.mem->bytes +
                                                 (there.what * SIZE) :
                                             0);
        std::vector<uct_iov_t> iov;
        bool is_dest = true;
        places here;

        for (unsigned i = draw(1, 3); i > 0 && here.size() < there.where.size();
             i--) {
            part one = choose_part(near, there.where.size() - here.size());

            here.insert(here.end(), one.where.begin(), one.where.end());
            is_dest &= one.is_dest;
            iov.push_back(iov_of(one));
        }
        is_dest &= is_once(here);
        there.where.resize(here.size());
        bool is_put = is_dest ? (there.is_dest && draw(0, 1)) : true;

        if (!(is_put ? is_remote(there.what, UCT_MD_MEM_ACCESS_REMOTE_PUT) &&
                           there.is_dest :
                       is_remote(there.what, UCT_MD_MEM_ACCESS_REMOTE_GET))) {
            return;
        }
        SCOPED_TRACE(std::string(is_put ? "put" : "get") + " far " +
                     std::to_string(there.what) + "+" +
                     std::to_string(there.offset) + ", near " +
                     std::to_string(iov.size()) + " parts");
        is_put ? copy(far, there.where, near, here) :
                 copy(near, here, far, there.where);
        ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return is_put ? uct_ep_put_zcopy(m_ends->ep, iov.data(),
                                                       iov.size(), start, rkey,
                                                       comp) :
                                      uct_ep_get_zcopy(m_ends->ep, iov.data(),
                                                       iov.size(), start, rkey,
                                                       comp);
                  }))
            << m_ends->log.take();
        expect_same();
        m_num_moved++;
    }

    uint32_t far_rkey(unsigned what)
    {
        return (what < NUM_REGIONS) ? m_region_rkey[what] :
                                      m_ends->far_model.at(what).rkey;
    }

    bool is_remote(unsigned what, uint64_t access)
    {
        return (what < NUM_REGIONS) ||
               (m_ends->far_model.at(what).cmd.access & access);
    }

    void send_once()
    {
        part one    = choose_part(m_ends->near_model, draw(1, MAX_MESSAGE));
        window *far = m_ends->far.mem;
        unsigned received = far->received;
        uct_iov_t iov     = iov_of(one);

        SCOPED_TRACE("message from " + std::to_string(one.what));
        ASSERT_EQ(UCS_OK, run([&](uct_completion_t *comp) {
                      return uct_ep_am_zcopy(m_ends->ep, AM_ID, NULL, 0, &iov,
                                             1, 0, comp);
                  }))
            << m_ends->log.take();
        progress_until([&] { return far->received != received; });
        ASSERT_EQ(one.where.size(), far->length);
        for (size_t i = 0; i < far->length; i++) {
            ASSERT_EQ(m_ends->near_model.expected[one.where[i]],
                      far->message[i])
                << i;
        }
        expect_same();
    }

    /* Puts by the key of a layout that was invalidated with one below it: no
     * access. */
    void put_to_lost()
    {
        for (unsigned i = 0; i < NUM_HANDLES; i++) {
            model::handle &h = m_ends->far_model.at(NUM_REGIONS + i);
            uct_iov_t iov    = {m_ends->mem->bytes, 1, m_ends->near->memh[0], 0,
                                1};

            if (h.is_set || (h.rkey == 0)) {
                continue;
            }
            SCOPED_TRACE("lost far " + std::to_string(NUM_REGIONS + i));
            ASSERT_NE(UCS_OK, run([&](uct_completion_t *comp) {
                          return uct_ep_put_zcopy(m_ends->ep, &iov, 1, 0,
                                                  h.rkey, comp);
                      }));
            expect_same();
            h.rkey = 0;
            uct_ep_destroy(m_ends->ep);
            m_ends->connect();
            m_ends->log.take();
            return;
        }
    }

    void run_random(bool is_other)
    {
        unsigned num = number_from_env("DCX_STRIDED_LAYOUTS", 1000);
        ends both(is_other);

        m_ends = &both;
        get_region_rkeys();
        for (unsigned i = 0; (m_num_set < num) && !HasFailure(); i++) {
            SCOPED_TRACE("step " + std::to_string(i));
            if (i % 100 == 0) {
                refill();
            }
            set_one(draw(0, 1));
            move_once();
            if (once_in(4)) {
                send_once();
            }
            if (once_in(30)) {
                free_one(draw(0, 1));
                get_region_rkeys();
            }
            if (once_in(60)) {
                put_to_lost();
            }
        }
        printf("%u set, %u refused, %u moved\n", m_num_set, m_num_refused,
               m_num_moved);
        if (num >= 200) {
            EXPECT_LT(num / 20, m_num_refused);
            EXPECT_LT(num / 5, m_num_moved);
        }
        EXPECT_EQ("", both.log.take());
        m_ends = NULL;
    }

    void get_region_rkeys()
    {
        for (unsigned i = 0; i < NUM_REGIONS; i++) {
            m_region_rkey[i] =
                execute(true, {command::TELL_KEY, i, 0, 0, 0, {}}).rkey;
        }
    }

    unsigned m_seed;
    std::mt19937 m_random;
    ends *m_ends = NULL;
    uint32_t m_region_rkey[NUM_REGIONS];
    unsigned m_num_set = 0, m_num_refused = 0, m_num_moved = 0;
};

TEST_P(dcx_mem_layout_random, this_process)
{
    run_random(false);
}

TEST_P(dcx_mem_layout_random, other_process)
{
    run_random(true);
}

INSTANTIATE_TEST_SUITE_P(plain, dcx_mem_layout_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(single, dcx_mem_layout_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(rand, dcx_mem_layout_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(hw_dcs, dcx_mem_layout_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_mem_layout_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_mem_layout_random, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_mem_layout_random, testing::Values(0));

} // namespace

int main(int argc, char **argv)
{
    const std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_FAILURE", "error"},
        {"SOFTHCA_LOG", "error"},
    };
    auto single = env, rand = env, hw_dcs = env, roce = env, strict = env;
    auto late = env;

    single.push_back({"UCX_DCX_RCACHE", "n"});
    rand.push_back({"UCX_DCX_TX_POLICY", "rand"});
    hw_dcs.push_back({"UCX_DCX_TX_POLICY", "hw_dcs"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    strict.push_back({"SOFTHCA_STRICT", "1"});
    late.push_back({"SOFTHCA_DELAY", "20"});
    return hca_test_main(argc, argv,
                         {{"plain", env},
                          {"single", single},
                          {"rand", rand},
                          {"hw_dcs", hw_dcs},
                          {"roce", roce},
                          {"strict", strict},
                          {"late", late}});
}
