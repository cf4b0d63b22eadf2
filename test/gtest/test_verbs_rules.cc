/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_FAULT: faults of messages, objects, commands and allocations, each in
 * a mode of its own; and rules that softhca-fault sets while programs run
 */
#include "umr_bench.h"
#include "verbs_peer.h"

namespace {

class verbs_rules : public verbs_test {
protected:
    /* Returns a counter of the port, below its folder in sysfs. */
    static unsigned long counter(const std::string &name)
    {
        std::ifstream in("/sys/class/infiniband/mlx5_0/ports/1/" + name);
        unsigned long count = ~0ul;

        in >> count;
        return count;
    }

    verbs_op read(uint64_t wr_id = 0)
    {
        return verbs_op(IBV_WR_RDMA_READ, wr_id).local(src, 64).remote(dst);
    }

    verbs_op add(uint64_t wr_id = 0)
    {
        verbs_op op(IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id);

        op.local(src, 8);
        op.wr.wr.atomic.remote_addr = (uintptr_t)dst.addr;
        op.wr.wr.atomic.rkey        = dst.mr->rkey;
        op.wr.wr.atomic.compare_add = 1;
        return op;
    }

    /* Returns the number of bits by which `mem` differs from `fill`. */
    static int flipped(const strict_mem &mem, uint8_t fill, size_t length = 64)
    {
        int bits = 0;

        for (size_t i = 0; i < length; i++) {
            bits += __builtin_popcount(mem.addr[i] ^ fill);
        }
        return bits;
    }
};

/* --- messages ------------------------------------------------------------- */

/* The second message of three is corrupted: the receiver's port counts and
 * drops it, and the sender repeats it. */
class verbs_corrupt : public verbs_rules {
protected:
    void run_three(const char *name)
    {
        verbs_pair pair(dev);
        unsigned long errors   = counter(name);
        unsigned long timeouts = counter("hw_counters/local_ack_timeout_err");

        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
        }
        EXPECT_EQ(errors + 1, counter(name));
        EXPECT_EQ(timeouts + 1, counter("hw_counters/local_ack_timeout_err"));
    }
};

TEST_P(verbs_corrupt, is_dropped_by_the_receiver)
{
    run_three(dev.is_roce() ? "hw_counters/rx_icrc_encapsulated" :
                              "counters/port_rcv_errors");
    EXPECT_EQ(0u, counter(dev.is_roce() ? "counters/port_rcv_errors" :
                                          "hw_counters/rx_icrc_encapsulated"));
    EXPECT_EQ(0, flipped(dst, 0x11));
}

INSTANTIATE_TEST_SUITE_P(corrupt, verbs_corrupt, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(corrupt_roce, verbs_corrupt, testing::Values(0));

class verbs_flipped : public verbs_rules {};

TEST_P(verbs_flipped, changes_a_bit_of_the_payload)
{
    verbs_pair pair(dev);
    uint64_t result;

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    EXPECT_EQ(1, flipped(dst, 0x11));
    EXPECT_EQ(0, flipped(src, 0x11)) << "the sender's memory is as it was";

    memset(dst.addr, 0x22, 64);
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
    EXPECT_EQ(64u, verbs_wait(pair.b.recv_cq).byte_len);
    EXPECT_EQ(1, flipped(dst, 0x11));

    memset(dst.addr, 0x22, 64);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, read()));
    EXPECT_EQ(1, flipped(src, 0x22));
    EXPECT_EQ(0, flipped(dst, 0x22));

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, add()));
    memcpy(&result, src.addr, sizeof(result));
    EXPECT_EQ(1, __builtin_popcountll(result ^ 0x2222222222222222ull));
    EXPECT_EQ(0x23, dst.addr[0]) << "it was executed once";
}

TEST_P(verbs_flipped, passes_what_has_no_payload)
{
    verbs_pair pair(dev);

    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send(0, 0)));
    EXPECT_EQ(0u, verbs_wait(pair.b.recv_cq).byte_len);
}

/* Data that is gathered from three pieces */
TEST_P(verbs_flipped, changes_data_in_pieces)
{
    verbs_pair pair(dev);

    memset(dst.addr, 0x22, 64);
    EXPECT_EQ(
        IBV_WC_SUCCESS,
        run(pair.a, verbs_op(IBV_WR_RDMA_WRITE)
                        .local((uintptr_t)src.addr, 3, src.mr->lkey)
                        .local((uintptr_t)src.addr + 100, 50, src.mr->lkey)
                        .local((uintptr_t)src.addr + 9, 11, src.mr->lkey)
                        .remote(dst)));
    EXPECT_EQ(1, flipped(dst, 0x11));
}

INSTANTIATE_TEST_SUITE_P(flipped, verbs_flipped, testing::Values(0));

class verbs_twice : public verbs_rules {};

TEST_P(verbs_twice, is_executed_once_by_a_connected_queue_pair)
{
    unsigned long repeated = counter("hw_counters/duplicate_request");
    verbs_pair pair(dev);

    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, 1));
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, 2));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
    verbs_expect_wcs(pair.b.recv_cq, IBV_WC_SUCCESS, 1, 1);
    EXPECT_TRUE(verbs_is_empty(pair.b.recv_cq));

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, add()));
    EXPECT_EQ(0x12, dst.addr[0]);
    EXPECT_EQ(0x11, src.addr[0]);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
    verbs_expect_wcs(pair.b.recv_cq, IBV_WC_SUCCESS, 2, 2);
    EXPECT_EQ(repeated + 3, counter("hw_counters/duplicate_request"));
}

TEST_P(verbs_twice, arrives_twice_as_a_datagram)
{
    verbs_datagrams ud(dev);

    ASSERT_EQ(0, verbs_recv(ud.b.qp, dst, 128, 1));
    ASSERT_EQ(0, verbs_recv(ud.b.qp, dst, 128, 2));
    EXPECT_EQ(IBV_WC_SUCCESS, run(ud.a, ud.to_b(send())));
    verbs_expect_wcs(ud.b.recv_cq, IBV_WC_SUCCESS, 1, 2);
    EXPECT_TRUE(verbs_is_empty(ud.a.send_cq)) << "it was sent once";
}

INSTANTIATE_TEST_SUITE_P(twice, verbs_twice, testing::Values(0));

/* The first write is held up for 30 ms. */
class verbs_delayed : public verbs_rules {};

TEST_P(verbs_delayed, keeps_the_order_of_its_queue_pair_only)
{
    verbs_pair slow(dev), fast(dev);
    uint64_t start = time_now_us();

    ASSERT_EQ(0, write(1).post(slow.a.qp));
    ASSERT_EQ(0, write(2).post(slow.a.qp));
    EXPECT_EQ(IBV_WC_SUCCESS, run(fast.a, write()));
    bool was_empty = verbs_is_empty(slow.a.send_cq);
    EXPECT_TRUE(was_empty || (time_now_us() - start > 25000));
    verbs_expect_wcs(slow.a.send_cq, IBV_WC_SUCCESS, 1, 2);
    EXPECT_LE(30000u, time_now_us() - start);
}

INSTANTIATE_TEST_SUITE_P(delayed, verbs_delayed, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(delayed_late, verbs_delayed, testing::Values(0));

/* 30,000 bytes at a megabyte a second */
class verbs_slow : public verbs_rules {};

TEST_P(verbs_slow, takes_the_time_of_its_bytes)
{
    verbs_pair pair(dev);
    uint64_t start = time_now_us();

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write(0, 15000)));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write(0, 15000)));
    EXPECT_LE(30000u, time_now_us() - start);
}

INSTANTIATE_TEST_SUITE_P(slow, verbs_slow, testing::Values(0));

/* Every second message gets an RNR NAK; the receiver's timer is 20.48 ms. */
class verbs_rnr : public verbs_rules {};

TEST_P(verbs_rnr, takes_the_time_of_the_receiver)
{
    verbs_options options;

    options.rnr_retry     = 1;
    options.min_rnr_timer = 22; /* 20.48 ms: table 45 */
    verbs_pair pair(dev, options);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    uint64_t start = time_now_us();
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    uint64_t time = time_now_us() - start;
    EXPECT_LE(20480u, time);
    EXPECT_GT(600000u, time) << "waited for the longest timer, 655.36 ms";
}

INSTANTIATE_TEST_SUITE_P(rnr, verbs_rnr, testing::Values(0));

/* Only messages to this process are lost. */
class verbs_to_peer : public verbs_rules {};

void be_written_to(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);

    peer_connect(fd, ep, peer_exchange(fd, ep, mem));
    peer_meet(fd);
}

TEST_P(verbs_to_peer, loses_its_messages_only)
{
    peer_process peer(be_written_to);

    {
        verbs_pair pair(dev);
        verbs_ep ep(dev);
        peer_card card = peer_exchange(peer.fd, ep, dst);

        peer_connect(peer.fd, ep, card);
        EXPECT_EQ(IBV_WC_SUCCESS, run(ep, verbs_op(IBV_WR_RDMA_WRITE)
                                              .local(src, 64)
                                              .remote(card.addr, card.rkey)));
        EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, run(pair.a, write()));
        peer_meet(peer.fd);
    }
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(own, verbs_to_peer, testing::Values(0));

/* --- objects -------------------------------------------------------------- */

class verbs_qp_fatal : public verbs_rules {};

TEST_P(verbs_qp_fatal, fails_the_sender)
{
    verbs_pair pair(dev), other(dev);

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    ASSERT_EQ(0, write(1).post(pair.a.qp));
    ASSERT_EQ(0, write(2).post(pair.a.qp));
    struct ibv_async_event event = verbs_event(dev.ctx);
    EXPECT_EQ(IBV_EVENT_QP_FATAL, event.event_type);
    EXPECT_EQ(pair.a.qp, event.element.qp);
    verbs_expect_wcs(pair.a.send_cq, IBV_WC_WR_FLUSH_ERR, 1, 2);
    EXPECT_EQ(IBV_QPS_ERR, pair.a.state());
    EXPECT_EQ(IBV_QPS_RTS, pair.b.state());
    EXPECT_EQ(IBV_WC_SUCCESS, run(other.a, write()));
}

INSTANTIATE_TEST_SUITE_P(fatal, verbs_qp_fatal, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(fatal_late, verbs_qp_fatal, testing::Values(0));

class verbs_overrun : public verbs_rules {};

TEST_P(verbs_overrun, fails_the_queue_pairs_of_the_cq)
{
    verbs_pair pair(dev);

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    ASSERT_EQ(0, write().post(pair.a.qp));
    struct ibv_async_event event = verbs_event(dev.ctx);
    EXPECT_EQ(IBV_EVENT_CQ_ERR, event.event_type);
    EXPECT_EQ(pair.a.send_cq, event.element.cq);
    event = verbs_event(dev.ctx);
    EXPECT_EQ(IBV_EVENT_QP_FATAL, event.event_type);
    EXPECT_EQ(pair.a.qp, event.element.qp);
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0));
    EXPECT_TRUE(verbs_is_empty(pair.a.send_cq));
    EXPECT_EQ(IBV_QPS_ERR, pair.a.state());
    EXPECT_EQ(IBV_QPS_RTS, pair.b.state());
}

INSTANTIATE_TEST_SUITE_P(overrun, verbs_overrun, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(overrun_late, verbs_overrun, testing::Values(0));

class verbs_srq_error : public verbs_rules {};

TEST_P(verbs_srq_error, fails_the_receiver)
{
    struct ibv_srq_init_attr init = {NULL, {16, 1, 0}};
    struct ibv_srq *srq           = ibv_create_srq(dev.pd, &init);
    verbs_options options;

    ASSERT_NE(nullptr, srq);
    options.srq = srq;
    {
        verbs_pair pair(dev, {}, options);
        ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
        EXPECT_EQ(IBV_WC_REM_OP_ERR, run(pair.a, send()));
        struct ibv_async_event event = verbs_event(dev.ctx);
        EXPECT_EQ(IBV_EVENT_SRQ_ERR, event.event_type);
        EXPECT_EQ(srq, event.element.srq);
        EXPECT_EQ(IBV_QPS_ERR, pair.b.state());
        EXPECT_TRUE(verbs_is_empty(pair.b.recv_cq));
        while (verbs_readable(dev.ctx->async_fd, 0)) {
            verbs_event(dev.ctx); /* of the queue pair */
        }
    }
    EXPECT_EQ(0, ibv_destroy_srq(srq));
}

INSTANTIATE_TEST_SUITE_P(srq, verbs_srq_error, testing::Values(0));

/* --- commands, allocations, layouts --------------------------------------- */

class verbs_failing : public verbs_rules {};

TEST_P(verbs_failing, command_fails_with_its_error)
{
    struct ibv_cq *cq = ibv_create_cq(dev.ctx, 1, NULL, NULL, 0);

    ASSERT_NE(nullptr, cq);
    EXPECT_EQ(nullptr, ibv_create_cq(dev.ctx, 1, NULL, NULL, 0));
    EXPECT_EQ(EIO, errno);
    EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* Commands of the firmware fail as for a lack of resources. */
TEST_P(verbs_failing, devx_command_fails)
{
    EXPECT_THROW(umr_key key(dev.pd), std::runtime_error);
    umr_key key(dev.pd);
}

TEST_P(verbs_failing, allocation_fails)
{
    EXPECT_THROW(verbs_ep ep(dev), std::runtime_error);
    EXPECT_EQ(ENOMEM, errno);
    verbs_ep ep(dev);
}

INSTANTIATE_TEST_SUITE_P(failing, verbs_failing, testing::Values(0));

/* A process logs the counts of its rules when it ends. */
class verbs_counted : public verbs_rules {};

void open_and_exit(int)
{
    struct ibv_port_attr port;
    {
        hca_device dev;

        for (int i = 0; i < 7; i++) {
            HCA_CHECK_CALL(ibv_query_port(dev.ctx, 1, &port) == 0);
        }
    }
    exit(0);
}

TEST_P(verbs_counted, logs_the_number_of_commands)
{
    hca_log_reader reader;
    peer_process peer(open_and_exit);
    uint64_t seen = 0;

    EXPECT_EQ(0, peer.wait());
    std::string log        = reader.take();
    const std::string line = "fault: fail_verb:nth=1000000: seen ";
    size_t at              = log.find(line);
    ASSERT_NE(std::string::npos, at) << log;
    seen = std::stoul(log.substr(at + line.size()));
    EXPECT_LT(10u, seen);
    EXPECT_NE(std::string::npos,
              log.find(": seen " + std::to_string(seen) + ", hit 0\n"))
        << log;
}

INSTANTIATE_TEST_SUITE_P(counted, verbs_counted, testing::Values(0));

/* A layout of the destination, set and used by a pair of QPs */
class verbs_umr_rules : public verbs_rules {
protected:
    enum ibv_wc_status set() { return pair.set(key, layout); }

    /* Writes to the layout as a peer. */
    enum ibv_wc_status use() { return pair.run(write().remote(0, key.rkey())); }

    umr_pair pair{dev};
    umr_key key{dev.pd};
    umr_layout layout = umr_layout().range(dst.addr, 64, dst.mr->lkey);
};

class verbs_umr_refused : public verbs_umr_rules {};

TEST_P(verbs_umr_refused, ends_as_a_bind_error)
{
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_MW_BIND_ERR, set());
    pair.reconnect();
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_SUCCESS, use());
    EXPECT_EQ(0, flipped(dst, 0x11));
}

INSTANTIATE_TEST_SUITE_P(umr, verbs_umr_refused, testing::Values(0));

class verbs_inval_raced : public verbs_umr_rules {};

/* The mkey has no layout after it, unlike after umr_refused. */
TEST_P(verbs_inval_raced, takes_the_layout)
{
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_SUCCESS, use());
    EXPECT_EQ(IBV_WC_MW_BIND_ERR, set());
    pair.reconnect();
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, use());
    pair.reconnect();
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_SUCCESS, use());
}

INSTANTIATE_TEST_SUITE_P(raced, verbs_inval_raced, testing::Values(0));

class verbs_inval_early : public verbs_umr_rules {};

/* The UMR succeeds, and what uses the mkey behind it fails: on the own side,
 * and on that of a peer. */
TEST_P(verbs_inval_early, takes_the_layout_before_its_use)
{
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_SUCCESS, use());
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, use());
    pair.reconnect();
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_LOC_PROT_ERR, pair.run(verbs_op(IBV_WR_RDMA_WRITE, 1)
                                                .local(0, 64, key.lkey())
                                                .remote(dst)));
    pair.reconnect();
    EXPECT_EQ(IBV_WC_SUCCESS, set());
    EXPECT_EQ(IBV_WC_SUCCESS, use());
}

INSTANTIATE_TEST_SUITE_P(early, verbs_inval_early, testing::Values(0));

/* --- rules of the fabric -------------------------------------------------- */

class verbs_fabric_rules : public verbs_rules {
protected:
    struct result {
        int status;
        std::string text;
    };

    ~verbs_fabric_rules() override { EXPECT_EQ(0, fault("clear").status); }

    /* Runs softhca-fault; it is not to be preloaded with the device. */
    static result fault(const std::string &args)
    {
        std::string command = "LD_PRELOAD= " HCA_TEST_FAULT " " + args +
                              " 2>&1";
        FILE *pipe = popen(command.c_str(), "r");
        result ret = {-1, ""};
        char line[256];

        HCA_CHECK_CALL(pipe != NULL);
        while (fgets(line, sizeof(line), pipe) != NULL) {
            ret.text += line;
        }
        ret.status = WEXITSTATUS(pclose(pipe));
        return ret;
    }
};

TEST_P(verbs_fabric_rules, change_while_programs_run)
{
    verbs_pair pair(dev), other(dev);

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    ASSERT_EQ(0, fault("add nak_access:op=write:nth=2").status);
    EXPECT_EQ("0 nak_access:op=write:nth=2: seen 0, hit 0\n",
              fault("list").text);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, run(pair.a, write()));
    EXPECT_EQ("0 nak_access:op=write:nth=2: seen 2, hit 1\n",
              fault("list").text);

    ASSERT_EQ(0, fault("add nak_op:count=0 drop:nth=9").status);
    ASSERT_EQ(0, fault("clear 0 1").status);
    EXPECT_EQ("2 drop:nth=9: seen 0, hit 0\n", fault("list").text);
    EXPECT_EQ(IBV_WC_SUCCESS, run(other.a, write()));
    EXPECT_EQ(0, fault("clear").status);
    EXPECT_EQ("", fault("list").text);
}

/* A rule holds for the sender (pid) or the receiver (peer) that it names. */
TEST_P(verbs_fabric_rules, hold_for_a_process)
{
    peer_process peer(be_written_to);

    {
        verbs_pair pair(dev);
        verbs_ep ep(dev);
        peer_card card = peer_exchange(peer.fd, ep, dst);
        verbs_op op    = verbs_op(IBV_WR_RDMA_WRITE)
                          .local(src, 64)
                          .remote(card.addr, card.rkey);

        peer_connect(peer.fd, ep, card);
        std::string pid = std::to_string(peer.pid);
        ASSERT_EQ(0, fault("add drop:count=0:pid=" + pid).status);
        EXPECT_EQ(IBV_WC_SUCCESS, run(ep, op));
        ASSERT_EQ(0, fault("add drop:count=0:peer=" + pid).status);
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
        EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, run(ep, op));
        peer_meet(peer.fd);
    }
    EXPECT_EQ(0, peer.wait());
}

/* A rule with `for=` puts the port down once; it comes up with the first retry
 * after that time. */
TEST_P(verbs_fabric_rules, put_the_port_down_for_a_time)
{
    verbs_options stubborn;

    stubborn.retry_cnt = 7;
    stubborn.timeout   = 18; /* 1.07 s */
    verbs_pair pair(dev, stubborn);
    ASSERT_EQ(0, fault("add port_down:op=write:for=1s").status);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    EXPECT_EQ(IBV_EVENT_PORT_ERR, verbs_event(dev.ctx).event_type);
    EXPECT_EQ(IBV_EVENT_PORT_ACTIVE, verbs_event(dev.ctx).event_type);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0)) << "it was down twice";
}

TEST_P(verbs_fabric_rules, wrong_commands_change_nothing)
{
    const struct {
        const char *args;
        int status;
        const char *text;
    } rows[] = {
        {"", 2, "Usage: softhca-fault add RULE..."},
        {"add", 2, "Usage: softhca-fault add RULE..."},
        {"list 1", 2, "Usage: softhca-fault add RULE..."},
        {"add drop:nth=0", 1, "softhca-fault: drop:nth=0: nth: use a number"},
        {"add drop drop:nth=0", 1, "softhca-fault: drop:nth=0: nth: use a"},
        {"clear 0", 1, "softhca-fault: there is no rule 0"},
        {"clear x", 1, "softhca-fault: there is no rule x"},
        {"clear 8", 1, "softhca-fault: there is no rule 8"},
    };

    for (const auto &row : rows) {
        result got = fault(row.args);

        EXPECT_EQ(row.status, got.status) << row.args;
        EXPECT_EQ(0u, got.text.find(row.text)) << got.text;
    }
    EXPECT_EQ("", fault("list").text);
    EXPECT_EQ(0, fault("add drop:nth=9 drop:nth=9 drop:nth=9 drop:nth=9 "
                       "drop:nth=9 drop:nth=9 drop:nth=9 drop:nth=9")
                     .status);
    EXPECT_EQ("softhca-fault: use up to 8 rules\n", fault("add drop").text);
    EXPECT_EQ(0, fault("clear 0").status);
    EXPECT_EQ(1, fault("add drop drop").status);
    EXPECT_EQ(1, fault("clear 7 x").status);
    const std::string list = fault("list").text;
    EXPECT_EQ(7, std::count(list.begin(), list.end(), '\n')) << list;

    setenv("SOFTHCA_FABRIC", "elsewhere", 1);
    result none = fault("list");
    unsetenv("SOFTHCA_FABRIC");
    EXPECT_EQ(1, none.status);
    EXPECT_EQ(0u, none.text.find("softhca-fault: no program runs on softhca"));
}

INSTANTIATE_TEST_SUITE_P(shared, verbs_fabric_rules, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    const char *mode    = getenv("DCX_TEST_MODE");
    std::string own     = "drop:count=0:peer=" + std::to_string(getpid());
    const char *corrupt = "corrupt:nth=2:every=3:op=write";

    if ((mode != NULL) && !strcmp(mode, "own")) {
        setenv("SOFTHCA_FAULT", own.c_str(), 1);
    }
    return hca_test_main(
        argc, argv,
        {
            {"corrupt", {{"SOFTHCA_FAULT", corrupt}}},
            {"corrupt_roce",
             {{"SOFTHCA_FAULT", corrupt}, {"SOFTHCA_LINK", "roce"}}},
            {"flipped", {{"SOFTHCA_FAULT", "corrupt_payload:count=0"}}},
            {"twice", {{"SOFTHCA_FAULT", "duplicate:count=0"}}},
            {"delayed", {{"SOFTHCA_FAULT", "delay:op=write:time=30ms"}}},
            {"delayed_late",
             {{"SOFTHCA_FAULT", "delay:op=write:time=30ms"},
              {"SOFTHCA_DELAY", "500"}}},
            {"slow", {{"SOFTHCA_FAULT", "delay:rate=1:count=0"}}},
            {"rnr", {{"SOFTHCA_FAULT", "rnr:nth=2:every=2"}}},
            {"own", {}},
            {"fatal", {{"SOFTHCA_FAULT", "qp_fatal:nth=2"}}},
            {"fatal_late",
             {{"SOFTHCA_FAULT", "qp_fatal:nth=2"}, {"SOFTHCA_DELAY", "500"}}},
            {"overrun", {{"SOFTHCA_FAULT", "cq_overrun:nth=2"}}},
            {"overrun_late",
             {{"SOFTHCA_FAULT", "cq_overrun:nth=2"}, {"SOFTHCA_DELAY", "500"}}},
            {"srq", {{"SOFTHCA_FAULT", "srq_error:op=send"}}},
            {"failing",
             {{"SOFTHCA_FAULT", "fail_verb:name=create_cq:nth=2:errno=EIO,"
                                "fail_devx:name=create_mkey,"
                                "fail_alloc:name=qp"}}},
            {"counted",
             {{"SOFTHCA_FAULT", "fail_verb:nth=1000000"},
              {"SOFTHCA_LOG", "info"}}},
            {"umr", {{"SOFTHCA_FAULT", "umr_refused:nth=2"}}},
            {"raced", {{"SOFTHCA_FAULT", "inval_raced:nth=2"}}},
            {"early", {{"SOFTHCA_FAULT", "inval_early:nth=2:count=2"}}},
            {"shared", {}},
        });
}
