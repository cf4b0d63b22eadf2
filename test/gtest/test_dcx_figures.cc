/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX_DCX_REPORT=y: the figures of a process, as "dcx_info --live" reads them,
 * against the counters of the device and the calls that the test makes.
 */
#include "dcx_end.h"
#include "dcx_loop.h"
#include "verbs_bench.h"

#include <cstdarg>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <sys/mman.h>

extern "C" {
#include <ucs/vfs/base/vfs_obj.h>
#include "uct/dcx/base/dcx_figures.h"
#include "uct/dcx/dcx.h"
}

namespace {

class dcx_figures : public testing::TestWithParam<int> {
protected:
    dcx_figures() : m_rkey(dcx_peek_rkey(m_dcx.memh)), m_first(read_all()) {}

    /* The table of --live: the numbers of each row, by its text */
    using table = std::map<std::string, std::vector<uint64_t>>;

    static std::string live(int pid)
    {
        std::string self = std::filesystem::read_symlink("/proc/self/exe");
        std::string path = self.substr(0, self.find("/test/gtest/")) +
                           "/src/tools/dcx_info --live " + std::to_string(pid) +
                           " 2>&1";
        std::string text;
        char part[256];
        FILE *pipe = popen(path.c_str(), "r");

        HCA_CHECK_CALL(pipe != NULL);
        while (fgets(part, sizeof(part), pipe) != NULL) {
            text += part;
        }
        pclose(pipe);
        return text;
    }

    static table read_all()
    {
        std::istringstream text(live(getpid()));
        std::string line;
        table rows;

        while (std::getline(text, line)) {
            size_t end = line.find_last_not_of("0123456789 ");
            std::istringstream numbers(line.substr(end + 1));
            std::string name = line.substr(0, end + 1);
            uint64_t number;

            name.erase(0, name.find_first_not_of(' '));
            while (numbers >> number) {
                rows[name].push_back(number);
            }
        }
        return rows;
    }

    /* Returns the figures since the test has begun. */
    table read() const
    {
        table rows = read_all();

        for (const auto &[name, numbers] : m_first) {
            EXPECT_EQ(numbers.size(), rows[name].size()) << name;
            rows[name].resize(numbers.size());
            for (size_t i = 0; i < numbers.size(); i++) {
                rows[name][i] -= numbers[i];
            }
        }
        return rows;
    }

    /* Returns a counter of the port. */
    static uint64_t count(const std::string &name)
    {
        std::ifstream file("/sys/class/infiniband/mlx5_0/ports/1/" + name);
        uint64_t value = ~0ull;

        EXPECT_TRUE(file >> value) << name;
        return value;
    }

    /* Expects a row with these numbers; zeros: there may be none. */
    static void expect(const table &rows, const std::string &name,
                       const std::vector<uint64_t> &numbers)
    {
        const std::vector<uint64_t> none(numbers.size());
        auto row = rows.find(name);

        EXPECT_EQ(numbers, (row == rows.end()) ? none : row->second) << name;
    }

    static size_t pack(void *dest, void *arg)
    {
        memset(dest, 0x22, (size_t)arg);
        return (size_t)arg;
    }

    static void unpack(void *dest, const void *data, size_t length)
    {
        memcpy(dest, data, length);
    }

    void put(uct_ep_h ep, size_t length)
    {
        ASSERT_EQ(UCS_OK, uct_ep_put_short(ep, m_dcx.mem.data(), length,
                                           remote(), m_rkey));
    }

    ssize_t put_bcopy(size_t length)
    {
        return uct_ep_put_bcopy(m_dcx.ep, pack, (void *)length, remote(),
                                m_rkey);
    }

    void zcopy(decltype(uct_ep_put_zcopy) *call, size_t length)
    {
        uct_iov_t iov = {m_dcx.mem.data(), length, m_dcx.memh, 0, 1};
        dcx_end end;

        ASSERT_EQ(UCS_INPROGRESS,
                  call(m_dcx.ep, &iov, 1, remote(), m_rkey, &end.comp));
        m_dcx.flush();
        EXPECT_EQ(UCS_OK, end.status);
    }

    uint64_t remote() { return (uintptr_t)m_dcx.mem.data() + 8192; }

    static void write_all(int fd, const std::string &text)
    {
        HCA_CHECK_CALL(write(fd, text.data(), text.size()) ==
                       (ssize_t)text.size());
    }

    /* The figures of this process, to be changed */
    struct figures_map {
        figures_map()
        {
            namespace fs = std::filesystem;

            for (const auto &entry : fs::directory_iterator("/proc/self/fd")) {
                std::error_code error;

                if (fs::read_symlink(entry, error)
                        .string()
                        .find("/memfd:" UCT_DCX_FIGURES_NAME) == 0) {
                    int fd = open(entry.path().c_str(), O_RDWR);

                    figures = (uct_dcx_figures_t *)mmap(NULL, sizeof(*figures),
                                                        PROT_READ | PROT_WRITE,
                                                        MAP_SHARED, fd, 0);
                    close(fd);
                    break;
                }
            }
            HCA_CHECK_CALL((figures != NULL) && (figures != MAP_FAILED));
        }

        ~figures_map() { munmap(figures, sizeof(*figures)); }

        uct_dcx_figures_t *figures = NULL;
    };

    dcx_loop m_dcx;
    uct_rkey_t m_rkey;
    table m_first;
};

/* Operations and bytes by kind are those of the calls, and of the device. */
TEST_P(dcx_figures, are_those_of_the_device)
{
    uint64_t result = 0, packets, bytes;
    dcx_end end;

    packets = count("counters/port_xmit_packets");
    bytes   = count("counters/port_xmit_data") * 4;
    for (int i = 0; i < 3; i++) {
        put(m_dcx.ep, 8);
    }
    /* The interface changes the function for the next one, and back. */
    EXPECT_EQ(16, put_bcopy(16));
    EXPECT_EQ(4096, put_bcopy(4096));
    EXPECT_EQ(4000, put_bcopy(4000));
    EXPECT_EQ(24, put_bcopy(24));
    zcopy(uct_ep_put_zcopy, 1000);
    zcopy(uct_ep_get_zcopy, 2000);
    zcopy(uct_ep_get_zcopy, 2000);
    ASSERT_EQ(UCS_OK, uct_ep_atomic64_post(m_dcx.ep, UCT_ATOMIC_OP_ADD, 1,
                                           remote(), m_rkey));
    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_atomic_cswap64(m_dcx.ep, 1, 2, remote(), m_rkey, &result,
                                    &end.comp));
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ(UCS_OK, uct_ep_am_short(m_dcx.ep, 5, i, NULL, 0));
    }
    m_dcx.flush();
    packets = count("counters/port_xmit_packets") - packets;
    bytes   = count("counters/port_xmit_data") * 4 - bytes - packets * 24;

    table rows = read();
    expect(rows, "put_short", {3, 24, 0});
    expect(rows, "put_bcopy", {4, 8136, 0});
    expect(rows, "put_zcopy", {1, 1000, 0});
    expect(rows, "get_zcopy", {2, 4000, 0});
    expect(rows, "atomic", {2, 16, 0});
    expect(rows, "am_short", {5, 40, 0});
    expect(rows, "am_bcopy", {0, 0, 0});
    expect(rows, "connections to another target", {1});

    expect(rows, "rx_write_requests", {8});
    expect(rows, "rx_read_requests", {2});
    expect(rows, "rx_atomic_requests", {2});
    expect(rows, "rx_dct_connect", {1});
    expect(rows, "port_xmit_packets", {packets});
    expect(rows, "port_xmit_data", {bytes / 4 + packets * 6});
    expect(rows, "port_rcv_packets", {packets}); /* from itself */
    expect(rows, "port_rcv_data", {bytes / 4 + packets * 6});
    /* requests and answers: of reads and atomics both are packets */
    EXPECT_EQ(3u + 4 + 1 + 2 * 2 + 2 * 2 + 5, packets);
    /* dcx adds 2 bytes to an active message, which is padded */
    EXPECT_EQ(24u + 8136 + 1000 + 4000 + 16 + 5 * 12, bytes);
}

/* One initiator serves two targets, one after the other. */
TEST_P(dcx_figures, connections)
{
    dcx_loop other;
    uct_ep_h ep = m_dcx.make_ep(other);

    for (int i = 0; i < 3; i++) {
        put(m_dcx.ep, 8);
        m_dcx.flush();
        ASSERT_EQ(UCS_OK, uct_ep_am_short(ep, 5, i, NULL, 0));
        ASSERT_EQ(UCS_OK, uct_ep_am_short(ep, 5, i, NULL, 0));
        m_dcx.flush();
    }
    table rows = read();
    expect(rows, "connections to another target", {6});
    expect(rows, "rx_dct_connect", {6});
    uct_ep_destroy(ep);
}

/* A full queue, and a request that waits for it */
TEST_P(dcx_figures, waits)
{
    uct_pending_req_t req = {};
    unsigned sent         = 0;
    table rows;

    while (put_bcopy(4096) > 0) {
        sent++;
    }
    req.func = [](uct_pending_req_t *) { return UCS_OK; };
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(m_dcx.ep, &req, 0));
    m_dcx.flush();
    rows = read();
    expect(rows, "put_bcopy", {sent, sent * 4096ull, 1});
    expect(rows, "requests that waited in a queue", {1});
    expect(rows, "rx_write_requests", {sent});
}

/* Kinds of operations that the other tests do not use. Buffers of sends are
 * registered with the first am_bcopy; with a cache, registering memory counts
 * only if it is new. */
TEST_P(dcx_figures, other_kinds)
{
    alignas(4096) static char memory[4096];
    uct_iov_t iov = {m_dcx.mem.data(), 16, m_dcx.memh, 0, 1};
    dcx_end got, sent;
    uct_mem_h memh;

    ASSERT_EQ(UCS_INPROGRESS,
              uct_ep_get_bcopy(m_dcx.ep, unpack, m_dcx.mem.data(), 100,
                               remote(), m_rkey, &got.comp));
    EXPECT_EQ(200, uct_ep_am_bcopy(m_dcx.ep, 5, pack, (void *)200, 0));
    EXPECT_EQ(2000, uct_ep_am_bcopy(m_dcx.ep, 5, pack, (void *)2000, 0));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_am_zcopy(m_dcx.ep, 5, "headers", 8, &iov,
                                              1, 0, &sent.comp));
    EXPECT_EQ(UCS_OK, uct_ep_am_short_iov(m_dcx.ep, 5, &iov, 1));
    ASSERT_EQ(UCS_OK, uct_md_mem_reg(m_dcx.md(), memory, sizeof(memory),
                                     UCT_MD_MEM_ACCESS_ALL, &memh));
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), memh));
    m_dcx.flush();

    table rows = read();
    expect(rows, "get_bcopy", {1, 100, 0});
    expect(rows, "am_bcopy", {2, 2200, 0});
    expect(rows, "am_zcopy", {1, 24, 0});
    expect(rows, "am_short", {1, 16, 0});
    expect(rows, "registrations", {2});
}

/* A counter of the adapter has wrapped at 32 bits since the port was opened. */
TEST_P(dcx_figures, counter_that_wraps)
{
    enum { WRITES = 4 };

    put(m_dcx.ep, 8);
    m_dcx.flush();

    figures_map map;
    uint64_t *first = &map.figures->ports[0].first[WRITES], old = *first;
    *first     = UINT32_MAX - 4;
    table rows = read_all();
    *first     = old;
    expect(rows, "rx_write_requests",
           {count("hw_counters/rx_write_requests") + 5});
}

/* A forked child that opens an interface has figures of its own. */
TEST_P(dcx_figures, forked_child)
{
    int fds[2], status;
    std::string text;
    char part[256];
    ssize_t length;

    ASSERT_EQ(0, pipe(fds));
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        text = live(getpid());
        {
            dcx_loop loop;

            for (int i = 0; i < 2; i++) {
                UCT_CALL(uct_ep_am_short(loop.ep, 5, i, NULL, 0));
            }
            loop.flush();
            text += live(getpid());
        }
        write_all(fds[1], text);
        _exit(0);
    }
    close(fds[1]);
    while ((length = ::read(fds[0], part, sizeof(part))) > 0) {
        text.append(part, length);
    }
    close(fds[0]);
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status);

    std::string name = "process " + std::to_string(pid);
    EXPECT_EQ(0u, text.find("dcx_info: " + name + " has no figures: ")) << text;
    EXPECT_NE(std::string::npos, text.find("dcx figures: " + name + "\n"))
        << text;
    EXPECT_NE(std::string::npos,
              text.find("\n  am_short                    2               16 "))
        << text;
    expect(read(), "am_short", {0, 0, 0});
}

/* The figures of closed interfaces stay, and a new one begins with none. */
TEST_P(dcx_figures, stay_when_the_interface_is_closed)
{
    {
        dcx_loop other;

        ASSERT_EQ(UCS_OK, uct_ep_am_short(other.ep, 5, 0, NULL, 0));
        other.flush();
    }
    expect(read(), "am_short", {1, 8, 0});
    dcx_loop other;
    expect(read(), "am_short", {1, 8, 0});
    ASSERT_EQ(UCS_OK, uct_ep_am_short(m_dcx.ep, 5, 0, NULL, 0));
    ASSERT_EQ(UCS_OK, uct_ep_am_short(other.ep, 5, 0, NULL, 0));
    expect(read(), "am_short", {3, 24, 0});
    other.flush();
    m_dcx.flush();
}

/* The files of an interface in UCX's virtual file system, as ucx_vfs shows
 * them */
class dcx_figures_vfs : public dcx_figures {
protected:
    std::string file(const std::string &name) const
    {
        ucs_string_buffer_t text = UCS_STRING_BUFFER_INITIALIZER;
        char path[256];

        snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p", m_dcx.worker,
                 m_dcx.iface);
        /* UCX adds the files then. */
        ucs_vfs_path_list_dir(
            path, [](const char *, void *) {}, NULL);
        EXPECT_EQ(UCS_OK,
                  ucs_vfs_path_read_file((path + ("/" + name)).c_str(), &text))
            << name;
        std::string result = ucs_string_buffer_cstr(&text);
        ucs_string_buffer_cleanup(&text);
        return result;
    }

    static std::string format(const char *pattern, ...)
    {
        char text[256];
        va_list ap;

        va_start(ap, pattern);
        vsnprintf(text, sizeof(text), pattern, ap);
        va_end(ap);
        return text;
    }
};

TEST_P(dcx_figures_vfs, show_states)
{
    struct dcx_view view = m_dcx.view();
    std::string target   = format("DCT 0x%x, receive buffers ", view.dctn);

    EXPECT_EQ(format("dcs_quota, 1 of 1, 1 idle, 0 lost\n"
                     "DCI 0x%x IDLE endpoint (nil) WQEBBs 0\n",
                     view.qpn),
              file("initiators"));
    put(m_dcx.ep, 8);
    EXPECT_EQ(format("dcs_quota, 1 of 1, 0 idle, 0 lost\n"
                     "DCI 0x%x HELD endpoint %p WQEBBs 1\n",
                     view.qpn, m_dcx.ep),
              file("initiators"));
    m_dcx.flush();

    EXPECT_EQ(target, file("target").substr(0, target.size()));
    EXPECT_EQ("flow control 1, window 214, first 10, granted 0 of 409, "
              "endpoints without credits 0\n",
              file("credits"));
    EXPECT_EQ("posted buffers 0 of 0, lost rendezvous 0\n", file("tags"));
    EXPECT_EQ("", file("mkeys")) << "none were made";
    EXPECT_EQ("dcx figures: process ", file("figures").substr(0, 21));
}

/* With a handle of a layout; and in another mode with posted tags */
TEST_P(dcx_figures_vfs, show_mkeys)
{
    void *module = dlopen(dcx_loop::module(), RTLD_NOW | RTLD_NOLOAD);
    auto create  = (decltype(uct_dcx_layout_create) *)dlsym(
         module, "uct_dcx_layout_create");
    uct_mem_h memh;

    ASSERT_EQ(UCS_OK, create(m_dcx.iface, 3, &memh));
    std::string text = file("mkeys");
    EXPECT_NE(std::string::npos, text.find("\nhandles of 4 pieces: 8 of "))
        << text;
    EXPECT_NE(std::string::npos, text.find(", in use 1\nhandles of 52 "))
        << text;
    EXPECT_NE(std::string::npos, text.find("found 0, written 0, evicted 0\n"));
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), memh));
    dlclose(module);
}

class dcx_figures_tags : public dcx_figures_vfs {};

TEST_P(dcx_figures_tags, show_posted_buffers)
{
    uct_iov_t iov = {m_dcx.mem.data(), m_dcx.mem.size(), m_dcx.memh, 0, 1};
    uct_tag_context_t ctx = {};

    ASSERT_EQ(UCS_OK,
              uct_iface_tag_recv_zcopy(m_dcx.iface, 1, ~0ul, &iov, 1, &ctx));
    EXPECT_EQ("posted buffers 1 of 255, lost rendezvous 0\n", file("tags"));
    expect(read(), "tag_recv", {1, m_dcx.mem.size(), 0});
    ASSERT_EQ(UCS_OK, uct_iface_tag_recv_cancel(m_dcx.iface, &ctx, 1));
    dcx_deadline deadline;
    while (file("tags") != "posted buffers 0 of 255, lost rendezvous 0\n") {
        deadline.check("the end of a receive");
        uct_worker_progress(m_dcx.worker);
    }
}

/* A buffer that is posted already did not find a full list. */
TEST_P(dcx_figures_tags, full_list_is_no_room)
{
    std::vector<uct_tag_context_t> ctx(256);
    uct_iov_t iov       = {m_dcx.mem.data(), 1, m_dcx.memh, 0, 1};
    ucs_status_t status = UCS_OK;
    unsigned posted     = 0;

    auto post = [&] {
        return uct_iface_tag_recv_zcopy(m_dcx.iface, 1, ~0ul, &iov, 1,
                                        &ctx[posted]);
    };
    EXPECT_EQ(UCS_OK, post());
    posted++;
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, post());
    expect(read(), "tag_recv", {1, 1, 0});

    dcx_deadline deadline;
    while (posted < 255) {
        deadline.check("room for a receive");
        iov.buffer = &m_dcx.mem[posted];
        status     = post();
        if (status == UCS_OK) {
            posted++;
        } else {
            uct_worker_progress(m_dcx.worker);
        }
    }
    uint64_t waits = read()["tag_recv"][2];
    iov.buffer     = &m_dcx.mem[posted];
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, post());
    expect(read(), "tag_recv", {posted, posted, waits + 1});
    for (unsigned i = 0; i < posted; i++) {
        EXPECT_EQ(UCS_OK, uct_iface_tag_recv_cancel(m_dcx.iface, &ctx[i], 1));
    }
}

/* A mode loses two messages and refuses three others, as if no receive were
 * posted. */
class dcx_figures_faults : public dcx_figures {};

TEST_P(dcx_figures_faults, retransmissions)
{
    uint64_t timeouts = count("hw_counters/local_ack_timeout_err");
    uint64_t refusals = count("hw_counters/rnr_nak_retry_err");

    for (int i = 0; i < 4; i++) {
        put(m_dcx.ep, 8);
        ASSERT_EQ(UCS_OK, uct_ep_am_short(m_dcx.ep, 5, i, NULL, 0));
    }
    m_dcx.flush();
    EXPECT_EQ(timeouts + 2, count("hw_counters/local_ack_timeout_err"));
    EXPECT_EQ(refusals + 3, count("hw_counters/rnr_nak_retry_err"));

    table rows = read();
    expect(rows, "put_short", {4, 32, 0});
    expect(rows, "rx_write_requests", {4});
    expect(rows, "local_ack_timeout_err", {2});
    expect(rows, "rnr_nak_retry_err", {3});
}

/* The report has the counters of the port, and so those of a connected queue
 * pair of this test. A mode repeats an atomic. */
TEST_P(dcx_figures_faults, sequence_numbers)
{
    hca_device dev;
    strict_mem src(dev.pd, ACCESS_ALL, 0), dst(dev.pd, ACCESS_ALL, 0);
    verbs_pair pair(dev);
    verbs_ep a(dev), b(dev);
    verbs_op add(IBV_WR_ATOMIC_FETCH_AND_ADD);

    add.local(src, 8).wr.wr.atomic = {(uintptr_t)dst.addr, 1, 0, dst.mr->rkey};
    ASSERT_EQ(0, add.post(pair.a.qp));
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.a.send_cq).status);

    verbs_connect_ahead(a, b);
    ASSERT_EQ(0,
              verbs_op(IBV_WR_RDMA_READ).local(src, 8).remote(dst).post(a.qp));
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, verbs_wait(a.send_cq).status);

    table rows = read();
    expect(rows, "duplicate_request", {1});
    expect(rows, "out_of_sequence", {2});
    expect(rows, "packet_seq_err", {2});
}

/* In a mode the receiver has four buffers, and senders need no credits. */
class dcx_figures_no_buffers : public dcx_figures {};

TEST_P(dcx_figures_no_buffers, endpoint_that_fails)
{
    uint64_t failed = count("hw_counters/req_rnr_retries_exceeded");

    m_dcx.survives_errors = true;
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ(UCS_OK, uct_ep_am_short(m_dcx.ep, 5, i, NULL, 0));
    }
    /* Progress would return buffers, and so let the next try succeed. */
    ASSERT_TRUE(hca_until([&] {
        return count("hw_counters/req_rnr_retries_exceeded") > failed;
    }));
    dcx_deadline deadline;
    while (m_dcx.errors.empty()) {
        deadline.check("the error");
        uct_worker_progress(m_dcx.worker);
    }

    table rows = read();
    expect(rows, "out_of_buffer", {2});
    expect(rows, "rnr_nak_retry_err", {2});
    expect(rows, "req_rnr_retries_exceeded", {1});
    expect(rows, "endpoints failed, RNR retries exhausted", {1});
}

/* In a mode every message is lost. */
class dcx_figures_lost : public dcx_figures {};

TEST_P(dcx_figures_lost, endpoint_that_fails)
{
    m_dcx.survives_errors = true;
    put(m_dcx.ep, 8);
    dcx_deadline deadline;
    while (m_dcx.errors.empty()) {
        deadline.check("the error");
        uct_worker_progress(m_dcx.worker);
    }

    table rows = read();
    expect(rows, "endpoints failed, retries exhausted", {1});
    expect(rows, "req_transport_retries_exceeded", {1});
}

/* In a mode the device fails at the first write. */
class dcx_figures_dead : public dcx_figures {};

TEST_P(dcx_figures_dead, endpoints_fail)
{
    uct_ep_h other = m_dcx.make_ep();

    m_dcx.survives_errors = true;
    put(m_dcx.ep, 8);
    dcx_deadline deadline;
    while (m_dcx.errors.size() < 2) {
        deadline.check("the errors");
        uct_worker_progress(m_dcx.worker);
    }
    expect(read(), "endpoints failed, other reasons", {2});
    uct_ep_destroy(other);
}

/* In a mode packets have a GID, and the only initiator gives up soon. */
class dcx_figures_global : public dcx_figures {};

/* Two targets with the same number and LID, but with another GID */
TEST_P(dcx_figures_global, connections)
{
    std::vector<uint8_t> dev_addr = m_dcx.dev_addr();
    uct_ep_h other;

    m_dcx.survives_errors = true;
    dev_addr[21] ^= 1; /* the end of uct_dcx_dev_addr_t's GID */
    ASSERT_EQ(UCS_OK, m_dcx.create_ep(dev_addr, 0, &other));
    put(m_dcx.ep, 8);
    m_dcx.flush();
    put(other, 8);
    expect(read(), "connections to another target", {2});
    m_dcx.flush();
    uct_ep_destroy(other);
}

/* Without the option there is nothing to read. */
class dcx_figures_off : public dcx_figures {};

/* A process may write anything: no name of a port leads out of its folder. */
TEST_P(dcx_figures_off, foreign_names)
{
    auto figures        = std::make_unique<uct_dcx_figures_t>();
    std::string process = std::to_string(getpid());
    int fd              = memfd_create(UCT_DCX_FIGURES_NAME, MFD_CLOEXEC);

    figures->size = sizeof(*figures);
    figures->pid  = getpid();
    memset(figures->ports[0].name, 'x', sizeof(figures->ports[0].name));
    memset(figures->ports[0].first, 'y', sizeof(figures->ports[0].first));
    strcpy(figures->ports[1].name, "mlx5_0:1/../1");
    ASSERT_EQ((ssize_t)sizeof(*figures),
              write(fd, figures.get(), sizeof(*figures)));
    EXPECT_EQ("dcx figures: process " + process +
                  "\n  operation              number            bytes      "
                  "no room\n  port " +
                  std::string(63, 'x') +
                  ", all processes since it was opened:\n",
              live(getpid()));
    close(fd);
}

TEST_P(dcx_figures_off, are_not_there)
{
    EXPECT_EQ("dcx_info: process " + std::to_string(getpid()) +
                  " has no figures: start it with UCX_DCX_REPORT=y\n",
              live(getpid()));
}

INSTANTIATE_TEST_SUITE_P(on, dcx_figures, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(on, dcx_figures_vfs, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(tags, dcx_figures_tags, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(faults, dcx_figures_faults, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(no_buffers, dcx_figures_no_buffers,
                         testing::Values(0));
INSTANTIATE_TEST_SUITE_P(lost, dcx_figures_lost, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(dead, dcx_figures_dead, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(global, dcx_figures_global, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(off, dcx_figures_off, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    const char *faults =
        "drop:op=write:nth=2:count=2,rnr:op=send:nth=1:count=3,"
        "duplicate:op=atomic:nth=1";

    return hca_test_main(
        argc, argv,
        {{"on",
          {{"UCX_DCX_REPORT", "y"},
           {"UCX_DCX_NUM_DCI", "1"},
           {"UCX_DCX_DM_SIZE", "0"}}},
         {"faults",
          {{"UCX_DCX_REPORT", "y"},
           {"UCX_DCX_TIMEOUT", "20ms"},
           {"SOFTHCA_FAULT", faults}}},
         {"no_buffers",
          {{"UCX_DCX_REPORT", "y"},
           {"UCX_DCX_FC_ENABLE", "n"},
           {"UCX_DCX_RX_QUEUE_LEN", "4"},
           {"UCX_DCX_RNR_RETRY_COUNT", "1"}}},
         {"lost",
          {{"UCX_DCX_REPORT", "y"},
           {"UCX_DCX_TIMEOUT", "1ms"},
           {"UCX_DCX_RETRY_COUNT", "1"},
           {"SOFTHCA_FAULT", "drop:op=write:every=1"}}},
         {"tags", {{"UCX_DCX_REPORT", "y"}, {"UCX_DCX_TM_ENABLE", "y"}}},
         {"dead",
          {{"UCX_DCX_REPORT", "y"},
           {"SOFTHCA_FAULT", "device_fatal:op=write"}}},
         {"global",
          {{"UCX_DCX_REPORT", "y"},
           {"UCX_DCX_NUM_DCI", "1"},
           {"UCX_DCX_IS_GLOBAL", "y"},
           {"UCX_DCX_TIMEOUT", "1ms"},
           {"UCX_DCX_RETRY_COUNT", "1"}}},
         {"off", {}}});
}
