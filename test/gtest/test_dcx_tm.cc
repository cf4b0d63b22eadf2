/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects of an interface whose device matches tags: it opens on devices with
 * more and with fewer features, active messages and flow control work as
 * without, and if one of the calls fails, opening fails with a line that names
 * the call, and leaves no object behind. dcx is linked in, so that the calls
 * pass through here.
 */
#include "dcx_loop.h"
#include "devx_bench.h"
#include "ucx_log.h"

#include <functional>
#include <memory>

namespace {

/* Calls of DEVX: their number, the number of the call that has to fail, and the
 * number of existing objects */
struct devx_calls {
    unsigned count = 0, fails = 0, alive = 0;
};

devx_calls calls;

bool next_call_fails()
{
    errno = EREMOTEIO;
    return ++calls.count == calls.fails;
}

template <typename T> T *created(T *object)
{
    calls.alive += (object != NULL);
    return object;
}

template <typename T> int destroyed(int (*destroy)(T *), T *object)
{
    calls.alive--;
    return destroy(object);
}

} /* namespace */

extern "C" {

#define WRAP(_result, _name, ...) \
    _result __real_##_name(__VA_ARGS__); \
    _result __wrap_##_name(__VA_ARGS__)

WRAP(struct mlx5dv_devx_obj *, mlx5dv_devx_obj_create, struct ibv_context *ctx,
     const void *in, size_t inlen, void *out, size_t outlen)
{
    return next_call_fails() ? NULL :
                               created(__real_mlx5dv_devx_obj_create(
                                   ctx, in, inlen, out, outlen));
}

WRAP(int, mlx5dv_devx_obj_modify, struct mlx5dv_devx_obj *obj, const void *in,
     size_t inlen, void *out, size_t outlen)
{
    return next_call_fails() ?
               EREMOTEIO :
               __real_mlx5dv_devx_obj_modify(obj, in, inlen, out, outlen);
}

WRAP(int, mlx5dv_devx_obj_destroy, struct mlx5dv_devx_obj *obj)
{
    return destroyed(__real_mlx5dv_devx_obj_destroy, obj);
}

WRAP(struct mlx5dv_devx_umem *, mlx5dv_devx_umem_reg, struct ibv_context *ctx,
     void *addr, size_t size, uint32_t access)
{
    return next_call_fails() ?
               NULL :
               created(__real_mlx5dv_devx_umem_reg(ctx, addr, size, access));
}

WRAP(int, mlx5dv_devx_umem_dereg, struct mlx5dv_devx_umem *umem)
{
    return destroyed(__real_mlx5dv_devx_umem_dereg, umem);
}

WRAP(struct mlx5dv_devx_uar *, mlx5dv_devx_alloc_uar, struct ibv_context *ctx,
     uint32_t flags)
{
    return next_call_fails() ?
               NULL :
               created(__real_mlx5dv_devx_alloc_uar(ctx, flags));
}

WRAP(void, mlx5dv_devx_free_uar, struct mlx5dv_devx_uar *uar)
{
    calls.alive--;
    __real_mlx5dv_devx_free_uar(uar);
}

} /* extern "C" */

namespace {

class dcx_tm : public testing::TestWithParam<int> {
protected:
    static constexpr uint8_t id = 6;

    dcx_tm()
    {
        calls = devx_calls();
        setenv("UCX_DCX_TM_ENABLE", "y", 1);
    }

    ~dcx_tm()
    {
        unsetenv("UCX_DCX_TM_ENABLE");
        unsetenv("UCX_DCX_TM_LIST_SIZE");
        unsetenv("UCX_DCX_DEVX");
        EXPECT_EQ(0u, calls.alive) << "DEVX objects were left";
        EXPECT_EQ("", m_hca_log.take());
    }

    /* Checks that messages of @from arrive at @to unchanged. */
    void expect_sends(dcx_loop &from, dcx_loop &to)
    {
        uct_ep_h ep = from.make_ep(to);

        UCT_CALL(uct_iface_set_am_handler(to.iface, id, take, this, 0));
        for (size_t length = 0; length <= from.attr.cap.am.max_short - 8;
             length++) {
            send(from, to, length, [&](const std::vector<uint8_t> &data) {
                uint64_t header;

                memcpy(&header, data.data(), sizeof(header));
                return uct_ep_am_short(ep, id, header, data.data() + 8,
                                       data.size() - 8);
            });
        }
        for (size_t length : {0ul, 1ul, 53ul, 54ul, 55ul, 1000ul, 4096ul,
                              from.attr.cap.am.max_bcopy - 8}) {
            send(from, to, length, [&](const std::vector<uint8_t> &data) {
                ssize_t ret = uct_ep_am_bcopy(ep, id, pack, (void *)&data, 0);

                return (ret < 0) ? (ucs_status_t)ret : UCS_OK;
            });
        }
        uct_ep_destroy(ep);
    }

    /* Opens an interface, which may fail. Returns the log. */
    std::string open_fails()
    {
        ucx_log_reader log;

        try {
            dcx_loop();
        } catch (const std::runtime_error &) {
            return log.take();
        }
        return log.take();
    }

    static void expect_tags(const char *list_size, unsigned num_tags)
    {
        setenv("UCX_DCX_TM_LIST_SIZE", list_size, 1);
        dcx_loop dcx;
        EXPECT_EQ(num_tags, dcx_peek_num_tags(dcx.iface)) << list_size;
    }

    /* Checks that a longer list is refused with TM_ENABLE=y, with the maximum
     * in the log, and shortened with TM_ENABLE=try. */
    void expect_max_tags(unsigned max)
    {
        const std::string more = std::to_string(max + 1);

        expect_tags("auto", std::min(max, 255u));
        expect_tags(std::to_string(max).c_str(), max);
        setenv("UCX_DCX_TM_LIST_SIZE", more.c_str(), 1);
        EXPECT_EQ("UCX_DCX_TM_LIST_SIZE=" + more +
                      " exceeds the limit of the device: set it to at most " +
                      std::to_string(max) + "\n",
                  open_fails());
        setenv("UCX_DCX_TM_ENABLE", "try", 1);
        expect_tags(more.c_str(), max);
        expect_tags("8192", max);
        EXPECT_EQ("", m_log.take());
    }

    static bool dcx_is_roce() { return hca_device().is_roce(); }

    /* Checks the path of the command QP, which is connected to itself. The
     * values are those of the software device's first port; on RoCE the
     * priority is in the place of the service level. */
    static void expect_own_path(const devx_mailbox &out, size_t path)
    {
        const bool roce   = dcx_is_roce();
        const bool global = getenv("UCX_DCX_IS_GLOBAL") != NULL;

        EXPECT_EQ(global || roce, out.get(path + 0x04, 23, 23)) << "GRH";
        EXPECT_EQ(roce ? 0u : 1u, out.get(path + 0x04, 15, 0)) << "LID";
        EXPECT_EQ(14u, out.get(path + 0x08, 31, 27)) << "ack timeout";
        EXPECT_EQ(roce ? 3u : 0u, out.get(path + 0x08, 23, 16)) << "GID";
        EXPECT_EQ((global || roce) ? 17u : 0u, out.get(path + 0x08, 7, 0));
        EXPECT_EQ(roce   ? 0xffffu :
                  global ? 0xfe800000u :
                           0u,
                  out.word(path + (roce ? 0x18 : 0x10)))
            << "GID";
        EXPECT_EQ(5u, out.get(path + 0x24, 27, 24)) << "SL";
        EXPECT_EQ(1u, out.get(path + 0x24, 23, 16)) << "port";
        EXPECT_EQ(roce ? 0x0264u : 0u, out.get(path + 0x24, 15, 0)) << "MAC";
        EXPECT_EQ(roce ? 0x63780000u : 0u, out.word(path + 0x28)) << "MAC";
    }

    static void query(struct mlx5dv_devx_obj *obj, uint16_t opcode,
                      uint32_t number, devx_mailbox *out)
    {
        devx_mailbox in = devx_mailbox(16, opcode).put(8, number);

        EXPECT_EQ(0,
                  mlx5dv_devx_obj_query(obj, in.bytes.data(), 16,
                                        out->bytes.data(), out->bytes.size()));
    }

    ucx_log_reader m_log;
    hca_log_reader m_hca_log;

private:
    /* Sends 8 bytes, and @length after them. */
    void send(dcx_loop &from, dcx_loop &to, size_t length,
              std::function<ucs_status_t(const std::vector<uint8_t> &)> post)
    {
        std::vector<uint8_t> data(8 + length);
        dcx_deadline deadline;
        ucs_status_t status;

        for (size_t i = 0; i < data.size(); i++) {
            data[i] = i * 7 + length;
        }
        while ((status = post(data)) == UCS_ERR_NO_RESOURCE) {
            deadline.check("room");
            uct_worker_progress(from.worker);
            uct_worker_progress(to.worker);
        }
        ASSERT_EQ(UCS_OK, status) << length;
        while (!m_is_there) {
            deadline.check("a message");
            uct_worker_progress(from.worker);
            uct_worker_progress(to.worker);
        }
        m_is_there = false;
        EXPECT_EQ(data, m_received) << length;
    }

    static size_t pack(void *dest, void *arg)
    {
        const auto *data = (const std::vector<uint8_t> *)arg;

        memcpy(dest, data->data(), data->size());
        return data->size();
    }

    static ucs_status_t take(void *arg, void *data, size_t length, unsigned)
    {
        dcx_tm *self = (dcx_tm *)arg;

        self->m_received.assign((uint8_t *)data, (uint8_t *)data + length);
        self->m_is_there = true;
        return UCS_OK;
    }

    std::vector<uint8_t> m_received;
    bool m_is_there = false;
};

TEST_P(dcx_tm, active_messages)
{
    dcx_loop dcx;

    EXPECT_EQ(255u, dcx_peek_num_tags(dcx.iface));
    expect_sends(dcx, dcx);
}

/* Fewer tags than the device has, and more */
TEST_P(dcx_tm, list_sizes)
{
    expect_tags("1", 1);
    expect_tags("8", 8);
    expect_max_tags(1023);
}

/* Each peer matches tags or not, independently. */
TEST_P(dcx_tm, peers_without)
{
    dcx_loop tags;

    setenv("UCX_DCX_TM_ENABLE", "n", 1);
    dcx_loop none;
    EXPECT_EQ(0u, dcx_peek_num_tags(none.iface));
    EXPECT_TRUE(tags.is_reachable(none.dev_addr(), none.iface_addr()));
    EXPECT_TRUE(none.is_reachable(tags.dev_addr(), tags.iface_addr()));
    expect_sends(tags, none);
    expect_sends(none, tags);
}

/* Attributes of the objects in the device */
TEST_P(dcx_tm, objects)
{
    constexpr size_t ctx = 0x10, qpc = 0x18;
    const bool roce = dcx_is_roce();
    dcx_devx_objects objects;
    devx_mailbox xrq(0x150), dct(0x80), qp(0x100);
    struct dcx_view view;

    setenv("UCX_DCX_PATH_MTU", "512", 1);
    setenv("UCX_DCX_RNR_TIMEOUT", "2.56ms", 1);
    setenv("UCX_DCX_HOP_LIMIT", "17", 1);
    setenv("UCX_DCX_SL", "5", 1);
    setenv("UCX_DCX_TM_LIST_SIZE", "100", 1);
    dcx_loop dcx;
    for (const char *name : {"PATH_MTU", "RNR_TIMEOUT", "HOP_LIMIT", "SL"}) {
        unsetenv((std::string("UCX_DCX_") + name).c_str());
    }
    view = dcx.view();
    dcx_peek_devx(dcx.iface, &objects);

    query(objects.xrq, 0x719, objects.xrqn, &xrq);
    EXPECT_EQ(1u, xrq.get(ctx, 11, 8)) << "tag matching";
    EXPECT_EQ(1u, xrq.get(ctx, 3, 0)) << "offload";
    EXPECT_EQ(1u, xrq.get(ctx + 0x0c, 0, 0)) << "dc";
    EXPECT_EQ(7u, xrq.get(ctx + 0x20, 31, 28)) << "list of 128";

    query(objects.dct, 0x713, objects.dctn, &dct);
    EXPECT_EQ(view.dctn, objects.dctn);
    EXPECT_EQ(xrq.get(ctx + 0x08, 23, 0), dct.get(ctx + 0x08, 23, 0)) << "cqn";
    EXPECT_EQ(7u, dct.get(ctx + 0x0c, 19, 17)) << "rre, rwe, rae";
    EXPECT_EQ(16u, dct.get(ctx + 0x10, 12, 8)) << "RNR timer of 2.56 ms";
    EXPECT_EQ(objects.xrqn, dct.get(ctx + 0x14, 23, 0));
    EXPECT_EQ(view.dc_key >> 32, dct.word(ctx + 0x20));
    EXPECT_EQ((uint32_t)view.dc_key, dct.word(ctx + 0x24));
    EXPECT_EQ((unsigned)IBV_MTU_512, dct.get(ctx + 0x28, 26, 24));
    EXPECT_EQ(1u, dct.get(ctx + 0x28, 23, 16)) << "port";
    EXPECT_EQ(roce ? 3u : 0u, dct.get(ctx + 0x2c, 23, 16)) << "GID";
    EXPECT_EQ(17u, dct.get(ctx + 0x2c, 7, 0)) << "hop limit";

    query(objects.cmd, 0x50b, objects.cmd_qpn, &qp);
    EXPECT_EQ((unsigned)IBV_QPS_RTS, qp.get(qpc, 31, 28));
    EXPECT_EQ(8u, qp.get(qpc + 0x08, 14, 11)) << "2 * 100 + 8 WQEBBs";
    EXPECT_EQ(objects.cmd_qpn, qp.get(qpc + 0x14, 23, 0)) << "itself";
    EXPECT_EQ(objects.xrqn, qp.get(qpc + 0xac, 23, 0));
    EXPECT_EQ(1u, qp.get(qpc + 0xac, 26, 24)) << "receives of an SRQ";
    expect_own_path(qp, qpc + 0x18);
}

/* More messages than there are receives, and credits */
TEST_P(dcx_tm, flow_control)
{
    constexpr unsigned count = 5000;
    dcx_deadline deadline;
    dcx_loop dcx;

    for (unsigned i = 0; i < count;) {
        ucs_status_t status = uct_ep_am_short(dcx.ep, 5, i, NULL, 0);

        if (status == UCS_OK) {
            i++;
            continue;
        }
        ASSERT_EQ(UCS_ERR_NO_RESOURCE, status);
        deadline.check("credits");
        uct_worker_progress(dcx.worker);
    }
    dcx.flush();
    while (dcx.received < count) {
        deadline.check("messages");
        uct_worker_progress(dcx.worker);
    }
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_tm, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(global, dcx_tm, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_tm, testing::Values(0));

/* --- failures ------------------------------------------------------------- */

class dcx_tm_fails : public dcx_tm {};

TEST_P(dcx_tm_fails, each_call)
{
    const char *const lines[] = {
        "failed to register a ring of",
        "failed to create XRQ",
        "SET_XRQ_DC_PARAMS_ENTRY failed",
        "failed to create DCT",
        "failed to register a ring of",
        "failed to allocate a doorbell page",
        "failed to create command QP",
        "RST2INIT_QP failed",
        "INIT2RTR_QP failed",
        "RTR2RTS_QP failed",
    };

    for (const char *line : lines) {
        unsigned fails = calls.fails + 1;

        calls            = devx_calls();
        calls.fails      = fails;
        std::string text = open_fails();
        EXPECT_NE(std::string::npos, text.find(line)) << text;
        EXPECT_EQ(fails, calls.count) << line << ": the last call";
        EXPECT_EQ(0u, calls.alive) << line;
    }

    calls = devx_calls();
    EXPECT_EQ("", open_fails());
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_tm_fails, testing::Values(0));

/* --- devices without tag matching ----------------------------------------- */

class dcx_tm_none : public dcx_tm {
protected:
    void expect_none(const char *why)
    {
        std::string text = open_fails();

        EXPECT_NE(std::string::npos, text.find("UCX_DCX_TM_ENABLE=y")) << text;
        EXPECT_NE(std::string::npos, text.find(why)) << text;
        setenv("UCX_DCX_TM_ENABLE", "try", 1);
        dcx_loop dcx;
        EXPECT_EQ(0u, dcx_peek_num_tags(dcx.iface));
        expect_sends(dcx, dcx);
        EXPECT_EQ("", m_log.take());
    }
};

TEST_P(dcx_tm_none, tag_matching)
{
    expect_none("it has no tag matching");
}

INSTANTIATE_TEST_SUITE_P(lacks, dcx_tm_none, testing::Values(0));

class dcx_tm_no_rndv : public dcx_tm_none {};

TEST_P(dcx_tm_no_rndv, tag_matching)
{
    expect_none("it does not support rendezvous over DC");
}

INSTANTIATE_TEST_SUITE_P(no_rndv, dcx_tm_no_rndv, testing::Values(0));

class dcx_tm_no_devx : public dcx_tm_none {};

TEST_P(dcx_tm_no_devx, tag_matching)
{
    setenv("UCX_DCX_DEVX", "n", 1);
    expect_none("it was opened without DEVX");
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_tm_no_devx, testing::Values(0));

/* --- completion queues of 2047 -------------------------------------------- */

class dcx_tm_short : public dcx_tm_none {
protected:
    ~dcx_tm_short()
    {
        unsetenv("UCX_DCX_RX_QUEUE_LEN");
        unsetenv("UCX_DCX_TM_SEG_SIZE");
    }

    /* Sets a number of buffers that tag matching does not halve. */
    static void set_buffers(const char *num)
    {
        setenv("UCX_DCX_RX_QUEUE_LEN", num, 1);
        setenv("UCX_DCX_TM_SEG_SIZE", "8250", 1);
    }
};

/* Of 2,047 completions 529 are for messages, 5 for each tag, and 8 for all
 * tags. */
TEST_P(dcx_tm_short, list)
{
    expect_max_tags(302);
}

TEST_P(dcx_tm_short, one)
{
    set_buffers("2017");
    expect_max_tags(1);
}

TEST_P(dcx_tm_short, none)
{
    set_buffers("2018");
    expect_none("UCX_DCX_RX_QUEUE_LEN leaves no completions");
}

INSTANTIATE_TEST_SUITE_P(shorter, dcx_tm_short, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"ib", {}},
            {"global", {{"UCX_DCX_IS_GLOBAL", "y"}}},
            {"roce", {{"SOFTHCA_LINK", "roce"}, {"SOFTHCA_HAS", "tm_roce"}}},
            {"no_rndv", {{"SOFTHCA_LACKS", "tm_rndv_dc"}}},
            {"lacks", {{"SOFTHCA_LACKS", "tm"}}},
            {"shorter", {{"SOFTHCA_LIMITS", "max_cqe=2047"}}},
        });
}
