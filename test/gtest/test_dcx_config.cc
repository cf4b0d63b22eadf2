/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Every option of dcx: the ends of its range work; a value beyond is refused
 * with a line that names the option. test/clients/commands checks that each
 * option has a row here, and each row an option. Then values that contradict
 * each other or the device, and operations beyond the resulting limits.
 */
#include "dcx_loop.h"
#include "ucx_log.h"

#include <algorithm>
#include <climits>
#include <map>

namespace {

using settings = std::vector<std::pair<const char *, const char *>>;

struct option {
    std::vector<const char *> good, bad;
    settings with = {}; /* other options, which the good values need */
};

/* Saves memory: with the maximum of UCX_DCX_SEG_SIZE a buffer has 4 MiB. */
const settings few_buffers = {{"RX_QUEUE_LEN", "4"}};

const std::map<std::string, option> options = {
    /* of the domain */
    {"RCACHE", {{"y", "n", "try", "auto"}, {"perhaps", "", "2"}}},
    {"FORK_INIT", {{"n", "try"}, {"perhaps", "-1"}}},
    {"PCI_RELAXED_ORDERING",
     {{"n", "try", "auto"}, {"perhaps", "2", "y" /* the device has none */}}},
    {"ODP", {{"y", "n", "try"}, {"perhaps", "2"}}},
    {"GPU_DIRECT_RDMA", {{"n", "try"}, {"perhaps", "2"}}},
    {"EXT_ATOMICS", {{"y", "n", "try"}, {"perhaps", "2"}}},
    {"DEVX", {{"y", "n", "try"}, {"perhaps", "2"}}},
    {"PROFILE", {{"auto", "none"}, {}}},
    {"ASYNC_EVENTS", {{"y", "n"}, {"perhaps", ""}}},
    {"REG_RETRY_CNT", {{"0", "1000", "inf"}, {"few", ""}}},
    {"SUBNET_PREFIX",
     {{"", "fe80:0:0:0"}, {"here", "fe80", "fe80:0:0", "fe80:0:0:0:0"}}},
    {"UMR_SLOTS", {{"1", "4096"}, {"0", "4097", "-1"}}},
    {"UMR_LAYOUTS", {{"1", "65536"}, {"0", "65537", "-1"}}},
    {"UMR_MAX_ENTRIES", {{"4", "65528"}, {"3", "65529", "-1"}}},

    /* of views */
    {"TYPES", {{"y", "n", "try"}, {"perhaps", "2"}}},
    {"TYPES_MIN_LENGTH", {{"16k", "1g", "inf", "auto"}, {"0", "16383", "few"}}},
    {"TYPES_MIN_BLOCK", {{"1", "inf", "auto"}, {"0", "few"}}},
    {"TYPES_MIN_SPARSE_BLOCK", {{"1", "inf"}, {"0", "few", "auto"}}},
    {"TYPES_MAX_SPAN", {{"0", "1g", "inf"}, {"few", "", "auto"}}},
    {"TYPES_MAX", {{"1", "4096"}, {"0", "4097", "-1"}}},
    {"TYPES_REPORT", {{"y", "n"}, {"perhaps", ""}}},

    /* sending */
    {"MMIO_MODE",
     {{"bf_post", "bf_post_mt", "db", "auto"}, {"", "bf", "db_post"}}},
    {"SEG_SIZE",
     {{"512", "4m"}, {"0", "511", "4194305", "inf", "auto"}, few_buffers}},
    {"NUM_DCI",
     {{"1", "1024"}, {"0", "1025", "-1", "inf"}, {{"TX_QUEUE_LEN", "4"}}}},
    {"TX_POLICY",
     {{"dcs", "dcs_quota", "rand", "hw_dcs"},
      {"", "none", "dcs_", "dcs_hybrid"}}},
    {"NUM_DCI_STREAMS",
     {{"1", "256"},
      {"0", "3", "32769", "512", "-1"},
      {{"TX_POLICY", "hw_dcs"}}}},
    {"RAND_SEED", {{"0", "4294967294"}, {"", "x"}}},
    {"QUOTA", {{"1", "32768"}, {"0", "32769", "-1"}}},
    {"TX_QUEUE_LEN", {{"4", "8192"}, {"3", "8193", "-1"}}},
    {"TX_MIN_INLINE", {{"0", "512"}, {"513", "inf"}}},
    {"DM_SIZE", {{"0", "64k"}, {"65537", "inf", "auto"}}},
    {"DM_COUNT", {{"0", "1024"}, {"1025", "-1"}}},
    {"TX_MAX_POLL", {{"1", "65536"}, {"0", "65537"}}},
    {"TX_CQ_MODERATION", {{"1", "32768"}, {"0", "32769", "-1"}}},
    {"MAX_RD_ATOMIC",
     {{"1", "16", "auto"}, {"0", "129", "inf", "17" /* of the device */}}},
    {"TIMEOUT", {{"1us", "8796s"}, {"0", "-1s", "8900s", "nan"}}},
    {"RETRY_COUNT", {{"0", "7", "8" /* as 7 */}, {"-1"}}},
    {"RNR_RETRY_COUNT", {{"0", "7", "8"}, {"-1"}}},

    /* receiving */
    {"RX_QUEUE_LEN",
     {{"4", "16384"}, {"3", "16385", "inf"}, {{"SEG_SIZE", "512"}}}},
    {"RX_INLINE", {{"0", "64"}, {"65", "inf"}}},
    {"DCT_FULL_HANDSHAKE", {{"y", "n", "try"}, {"perhaps", "auto", "2"}}},
    {"RX_MAX_POLL", {{"1", "65536"}, {"0", "65537"}}},
    {"RNR_TIMEOUT", {{"1us", "655.36ms"}, {"0", "-1ms", "657ms"}}},

    /* flow control */
    {"FC_ENABLE", {{"y", "n"}, {"perhaps", ""}}},
    {"FC_WINDOW",
     {{"1", "16384", "auto"},
      {"0", "16385", "inf"},
      {{"RX_QUEUE_LEN", "16384"}, {"SEG_SIZE", "512"}}}},
    {"FC_INITIAL",
     {{"0", "16384", "auto"},
      {"16385", "inf"},
      {{"RX_QUEUE_LEN", "16384"},
       {"SEG_SIZE", "512"},
       {"FC_WINDOW", "16384"}}}},
    {"FC_THRESH", {{"0", "0.9"}, {"-0.1", "0.91", "nan"}}},
    {"FC_RESEND_TIMEOUT", {{"1us", "3600s"}, {"0", "-1s", "3700s"}}},

    /* tags */
    {"TM_ENABLE", {{"y", "n", "try"}, {"perhaps", "2"}}},
    {"TM_COMMON_KEY", {{"y", "n"}, {"perhaps", "2"}}},
    {"TM_LIST_SIZE",
     {{"1", "8192", "auto"}, {"0", "8193", "inf"}, {{"TM_ENABLE", "try"}}}},
    {"TM_SEG_SIZE",
     {{"512", "4m", "auto"},
      {"0", "511", "4194305", "inf"},
      {{"TM_ENABLE", "y"}, {"RX_QUEUE_LEN", "4"}}}},
    {"TM_MIN_RECV",
     {{"64", "4m", "auto"},
      {"0", "63", "4194305", "inf"},
      {{"TM_ENABLE", "y"}}}},

    /* strided data */
    {"STRIDED_MAX_PLAIN", {{"1", "64"}, {"0", "65", "inf"}}},
    {"STRIDED_COPY", {{"0", "4m", "auto"}, {"4194305", "inf"}}},
    {"STRIDED_COPY_PIECE", {{"0", "4m", "auto"}, {"4194305", "inf"}}},

    /* the path; the port is InfiniBand, with one GID and LMC 0 */
    {"SL", {{"0", "15", "auto"}, {"16", "-1", "inf"}}},
    {"REVERSE_SL", {{"0", "15", "auto"}, {"16", "-1", "inf"}}},
    {"AR_ENABLE",
     {{"n", "try", "auto"}, {"perhaps", "2", "y" /* the device has none */}}},
    {"REPORT", {{"y", "n"}, {"perhaps", ""}}},
    {"DDP_ENABLE", {{"n", "try"}, {"perhaps", "auto", "y"}}},
    {"TRAFFIC_CLASS", {{"0", "255", "auto"}, {"256", "inf"}}},
    {"GID_INDEX", {{"0", "auto"}, {"1", "255", "256", "inf"}}},
    {"PKEY",
     {{"0x7fff", "auto"},
      {"", "0", "0x8000", "0xfffe", "0xffff", "0x10000", "key", "0x7fffx",
       "0x1234" /* the port is not in it */}}},
    {"PATH_MTU", {{"256", "4096", "default"}, {"128", "8192", "0"}}},
    {"IS_GLOBAL", {{"y", "n"}, {"perhaps", ""}}},
    {"FLID_ROUTE", {{"y", "n"}, {"perhaps", ""}}},
    {"HOP_LIMIT", {{"0", "255"}, {"256", "-1"}}},
    {"NUM_PATHS", {{"1", "128", "auto"}, {"0", "129", "inf"}}},
    {"LID_PATH_BITS",
     {{"0", "0,1", "3-0", "0-127"}, {"", "1", "1-127", "few", "auto"}}},
    {"ROCE_PATH_FACTOR", {{"0", "16383"}, {"16384", "-1", "auto"}}},
    {"ROCE_LOCAL_SUBNET", {{"y", "n"}, {"perhaps", ""}}},
    {"ROCE_REACHABILITY_MODE",
     {{"route", "local_subnet", "all"}, {"", "none", "auto"}}},
    {"ROCE_SUBNETS", {{"all", "10.1.0.0/16", "^fd00::/8"}, {}}},
    {"ROCE_SUBNET_PREFIX_LEN",
     {{"0", "128", "auto", "inf"}, {"129"}, {{"ROCE_LOCAL_SUBNET", "y"}}}},
};

void PrintTo(const option &option, std::ostream *os)
{
    *os << option.good.size() << " good and " << option.bad.size()
        << " bad values";
}

/* Sets variables while it exists; names without "UCX_" are dcx options. */
class environment {
public:
    explicit environment(const settings &vars)
    {
        for (const auto &var : vars) {
            set(var.first, var.second);
        }
    }

    ~environment()
    {
        for (const auto &before : m_before) {
            if (before.second.first) {
                setenv(before.first.c_str(), before.second.second.c_str(), 1);
            } else {
                unsetenv(before.first.c_str());
            }
        }
    }

    environment(const environment &) = delete;

private:
    void set(const std::string &option, const char *value)
    {
        const std::string name =
            ((option.find("UCX_") == 0) ? "" : "UCX_DCX_") + option;
        const char *before = getenv(name.c_str());

        m_before.insert({name, {before != NULL, before ? before : ""}});
        setenv(name.c_str(), value, 1);
    }

    std::map<std::string, std::pair<bool, std::string>> m_before;
};

/* Opens the memory domain of views, which has options of its own. Returns false
 * if dcx is built without views; throws if it cannot be opened. */
bool open_views()
{
    uct_component_h *components;
    bool is_there = false;
    uct_md_config_t *config;
    uct_md_h md = NULL;
    unsigned num;

    UCT_CALL(uct_query_components(&components, &num));
    for (unsigned i = 0; i < num; i++) {
        uct_component_attr_t attr = {};

        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        UCT_CALL(uct_component_query(components[i], &attr));
        if (strcmp(attr.name, "dcx_view")) {
            continue;
        }
        is_there = true;
        if (uct_md_config_read(components[i], NULL, NULL, &config) == UCS_OK) {
            uct_md_open(components[i], attr.name, config, &md);
            uct_config_release(config);
        }
    }
    uct_release_component_list(components);
    HCA_CHECK_CALL(!is_there || (md != NULL));
    if (is_there) {
        uct_md_close(md);
    }
    return is_there;
}

/* Opens an interface, and views, with these variables. Returns the log. */
std::string open_with(const settings &vars, bool *opened)
{
    environment env(vars);
    ucx_log_reader log;

    try {
        dcx_loop();
        open_views();
        *opened = true;
    } catch (const std::runtime_error &) {
        *opened = false;
    }
    return log.take();
}

void expect_opens(const settings &vars)
{
    bool opened;

    EXPECT_EQ("", open_with(vars, &opened));
    EXPECT_TRUE(opened);
}

/* Expects an error whose first line contains each of `names`. */
void expect_refused(const settings &vars, const std::vector<std::string> &names)
{
    bool opened;
    std::string text = open_with(vars, &opened);
    std::string line = text.substr(0, text.find('\n'));

    EXPECT_FALSE(opened);
    for (const auto &name : names) {
        EXPECT_NE(std::string::npos, line.find(name)) << "'" << text << "'";
    }
}

/* --- each option ---------------------------------------------------------- */

class dcx_option
    : public testing::TestWithParam<std::pair<const std::string, option>> {};

TEST_P(dcx_option, range)
{
    const std::string &name = GetParam().first;
    const option &option    = GetParam().second;

    dcx_loop();
    if (!name.compare(0, 5, "TYPES") && !open_views()) {
        GTEST_SKIP() << "dcx is built without views";
    }
    for (const char *value : option.good) {
        SCOPED_TRACE(name + "=" + value);
        settings vars = option.with;

        vars.push_back({name.c_str(), value});
        expect_opens(vars);
    }
    for (const char *value : option.bad) {
        SCOPED_TRACE(name + "=" + value);
        settings vars = option.with;

        vars.push_back({name.c_str(), value});
        expect_refused(vars, {name});
    }
}

INSTANTIATE_TEST_SUITE_P(
    each, dcx_option, testing::ValuesIn(options),
    [](const testing::TestParamInfo<dcx_option::ParamType> &test) {
        return test.param.first;
    });

/* --- options together ----------------------------------------------------- */

/* A bad option of views does not affect the device. */
TEST(dcx_config, bad_option_of_views)
{
    environment env(settings{{"TYPES_MAX", "0"}});
    ucx_log_reader log;

    dcx_loop();
    EXPECT_EQ("", log.take());
}

/* UCP splits messages at the maximum length, and MPICH can only unpack
 * fragments that have whole elements, of up to 8 bytes. */
TEST(dcx_config, fragments_are_multiples_of_8)
{
    for (size_t size : {512, 513, 519, 521, 2048, 8192, 8249, 8250, 524288}) {
        std::string text = std::to_string(size);

        for (const char *option : {"SEG_SIZE", "TM_SEG_SIZE"}) {
            environment env({{option, text.c_str()},
                             {"TX_MIN_INLINE", "64"},
                             {"TM_ENABLE", (option[0] == 'T') ? "y" : "n"}});
            dcx_loop loop;
            const auto &am = loop.attr.cap.am;
            size_t longest = (option[0] == 'T') ? std::min(size, 8250ul) : size;

            EXPECT_EQ((longest - 2) / 8 * 8, am.max_bcopy) << text;
            EXPECT_EQ(am.max_bcopy, am.max_zcopy) << text;
        }
    }
}

TEST(dcx_config, inline_beyond_segment)
{
    expect_opens({{"SEG_SIZE", "522"}, {"TX_MIN_INLINE", "512"}});
    expect_refused({{"SEG_SIZE", "521"}, {"TX_MIN_INLINE", "512"}},
                   {"UCX_DCX_TX_MIN_INLINE=512", "UCX_DCX_SEG_SIZE=521"});
}

/* Tag matching halves the number of buffers, but not the values that the
 * options may have. */
TEST(dcx_config, credits_beyond_buffers_of_tags)
{
    expect_opens({{"TM_ENABLE", "y"},
                  {"RX_QUEUE_LEN", "64"},
                  {"FC_WINDOW", "64"},
                  {"FC_INITIAL", "64"}});
    expect_refused(
        {{"TM_ENABLE", "y"}, {"RX_QUEUE_LEN", "64"}, {"FC_WINDOW", "65"}},
        {"UCX_DCX_FC_WINDOW (65)", "UCX_DCX_RX_QUEUE_LEN (64)"});
}

TEST(dcx_config, inline_beyond_segment_of_tags)
{
    expect_opens({{"TM_SEG_SIZE", "522"}, {"TX_MIN_INLINE", "512"}});
    expect_refused({{"TM_SEG_SIZE", "521"}, {"TX_MIN_INLINE", "512"}},
                   {"UCX_DCX_TX_MIN_INLINE=512", "UCX_DCX_TM_SEG_SIZE=521"});
}

/* Inline data makes WQEs longer: fewer of them fit into the device's longest
 * queue. */
TEST(dcx_config, queue_beyond_device)
{
    expect_refused({{"TX_QUEUE_LEN", "8192"}, {"TX_MIN_INLINE", "512"}},
                   {"UCX_DCX_TX_QUEUE_LEN=8192"});
}

/* Only policies with streams compare their number with the device's limit. */
TEST(dcx_config, streams_beyond_device)
{
    expect_opens({{"TX_POLICY", "hw_dcs"}, {"NUM_DCI_STREAMS", "256"}});
    expect_refused({{"TX_POLICY", "hw_dcs"}, {"NUM_DCI_STREAMS", "512"}},
                   {"UCX_DCX_NUM_DCI_STREAMS=512", "256"});
    expect_opens({{"TX_POLICY", "rand"}, {"NUM_DCI_STREAMS", "512"}});
    expect_refused({{"TX_POLICY", "rand"}, {"NUM_DCI_STREAMS", "12"}},
                   {"UCX_DCX_NUM_DCI_STREAMS=12", "power of two"});
}

/* Verbs cannot request full handshakes. */
TEST(dcx_config, handshake_needs_devx)
{
    expect_opens({{"DEVX", "n"}, {"DCT_FULL_HANDSHAKE", "try"}});
    expect_opens({{"TM_ENABLE", "y"}, {"DCT_FULL_HANDSHAKE", "y"}});
    expect_refused({{"DEVX", "n"}, {"UCX_DC_MLX5_DCT_FULL_HANDSHAKE", "y"}},
                   {"UCX_DC_MLX5_DCT_FULL_HANDSHAKE=y", "DEVX"});
}

/* Queues are created when they are needed: an interface opens although no
 * device has as many. */
TEST(dcx_config, queues_beyond_any_device)
{
    expect_opens({{"NUM_DCI", "1024"}, {"TX_QUEUE_LEN", "8192"}});
}

/* --- variables of the site ------------------------------------------------ */

/* The error for a value out of range shows that the variable was used, and
 * names it. */
TEST(dcx_site, taken)
{
    const settings vars = {
        {"UCX_IB_SL", "16"},
        {"UCX_RC_SL", "16"},
        {"UCX_DC_SL", "16"},
        {"UCX_DC_MLX5_SL", "16"},
        {"UCX_IB_TRAFFIC_CLASS", "256"},
        {"UCX_IB_GID_INDEX", "1"},
        {"UCX_IB_PKEY", "0x8000"},
        {"UCX_RC_PKEY", "0x1234"},
        {"UCX_IB_HOP_LIMIT", "256"},
        {"UCX_IB_NUM_PATHS", "0"},
        {"UCX_IB_ROCE_SUBNET_PREFIX_LEN", "129"},
        {"UCX_RC_TIMEOUT", "0"},
        {"UCX_DC_RETRY_COUNT", "-1"},
        {"UCX_RC_RNR_TIMEOUT", "1s"},
        {"UCX_DC_MLX5_RNR_RETRY_COUNT", "-1"},
        {"UCX_IB_SUBNET_PREFIX", "here"},
    };

    for (const auto &var : vars) {
        SCOPED_TRACE(var.first);
        expect_refused({var}, {std::string(var.first) + "="});
    }
}

/* UCX's parser refuses these values; its message has the name of the option
 * without the prefix. */
TEST(dcx_site, not_parsed)
{
    const settings vars = {
        {"UCX_IB_SL", "low"},
        {"UCX_RC_PATH_MTU", "128"},
        {"UCX_IB_IS_GLOBAL", "perhaps"},
        {"UCX_IB_ROCE_LOCAL_SUBNET", "2"},
        {"UCX_IB_FORK_INIT", "2"},
        {"UCX_IB_ASYNC_EVENTS", "2"},
    };

    for (const auto &var : vars) {
        std::string name = var.first;

        expect_refused({var}, {name.substr(name.find('_', 4) + 1)});
    }
    expect_refused({{"UCX_IB_MLX5_DEVX", "2"}}, {"DEVX"});
}

TEST(dcx_site, precedence)
{
    expect_refused({{"UCX_DCX_SL", "16"}, {"UCX_IB_SL", "1"}},
                   {"UCX_DCX_SL=16"});
    expect_refused({{"UCX_DC_MLX5_SL", "16"}, {"UCX_DC_SL", "17"}},
                   {"UCX_DC_MLX5_SL=16"});
    expect_refused({{"UCX_DC_SL", "16"}, {"UCX_RC_SL", "17"}},
                   {"UCX_DC_SL=16"});
    expect_refused({{"UCX_RC_SL", "16"}, {"UCX_IB_SL", "17"}},
                   {"UCX_RC_SL=16"});
    expect_opens(
        {{"UCX_DCX_SL", "1"}, {"UCX_DC_MLX5_SL", "16"}, {"UCX_IB_SL", "17"}});
    expect_opens({{"UCX_DCX_GID_INDEX", "0"}, {"UCX_IB_GID_INDEX", "1"}});
}

/* Variables that UCX's dc_mlx5 does not read, or that mean something else in
 * dcx */
TEST(dcx_site, not_taken)
{
    expect_opens({{"UCX_RC_MLX5_SL", "16"},
                  {"UCX_UD_SL", "16"},
                  {"UCX_IB_TIMEOUT", "0"},
                  {"UCX_DC_MLX5_GID_INDEX", "1"},
                  {"UCX_IB_SEG_SIZE", "1"},
                  {"UCX_IB_RX_QUEUE_LEN", "0"},
                  {"UCX_DC_MLX5_NUM_DCI", "0"},
                  {"UCX_DC_QUOTA", "0"}});
}

/* Values that UCX accepts, so that sites may have set them */
TEST(dcx_site, as_ucx_takes_them)
{
    expect_opens({{"UCX_IB_SL", "auto"},
                  {"UCX_IB_PKEY", "auto"},
                  {"UCX_IB_ROCE_SUBNET_PREFIX_LEN", "24"},
                  {"UCX_IB_TRAFFIC_CLASS", "auto"},
                  {"UCX_IB_SUBNET_PREFIX", "fe80:0:0:0"}});
}

/* --- operations beyond the limits ----------------------------------------- */

size_t pack_nothing(void *, void *)
{
    return 0;
}

void unpack_nothing(void *, const void *, size_t) {}

class dcx_limits : public testing::Test {
protected:
    dcx_limits() : m_data(1 << 20)
    {
        m_iov.buffer = m_dcx.mem.data();
        m_iov.memh   = m_dcx.memh;
        m_iov.count  = 1;
        m_remote     = (uintptr_t)m_dcx.mem.data();
        m_rkey       = dcx_peek_rkey(m_dcx.memh);
    }

    ~dcx_limits()
    {
        /* nothing was posted, and the interface still works */
        EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx.iface, 0, NULL));
        EXPECT_EQ(UCS_OK, uct_ep_am_short(m_dcx.ep, 5, 0, NULL, 0));
        m_dcx.flush();
        EXPECT_EQ("", m_hca_log.take());
    }

    void expect_refused(const std::string &what, ucs_status_t status)
    {
        std::string line = m_log.take();

        EXPECT_EQ(UCS_ERR_INVALID_PARAM, status) << what;
        EXPECT_NE(std::string::npos, line.find(what)) << "'" << line << "'";
    }

    std::vector<uct_iov_t> iovs(size_t count, size_t length)
    {
        m_iov.length = length;
        return std::vector<uct_iov_t>(count, m_iov);
    }

    hca_log_reader m_hca_log;
    ucx_log_reader m_log;
    dcx_loop m_dcx;
    std::vector<uint8_t> m_data;
    uct_iov_t m_iov = {};
    uint64_t m_remote;
    uct_rkey_t m_rkey;
};

TEST_F(dcx_limits, am)
{
    const auto &cap = m_dcx.attr.cap.am;
    uct_ep_h ep     = m_dcx.ep;
    uct_iov_t iov   = {};

    expect_refused("am_short length", uct_ep_am_short(ep, 5, 0, m_data.data(),
                                                      cap.max_short - 8 + 1));
    expect_refused("am_short length",
                   uct_ep_am_short(ep, 5, 0, m_data.data(), UINT_MAX));
    expect_refused("active message id",
                   uct_ep_am_short(ep, UCT_AM_ID_MAX, 0, NULL, 0));
    expect_refused("active message id",
                   (ucs_status_t)uct_ep_am_bcopy(ep, UCT_AM_ID_MAX,
                                                 pack_nothing, NULL, 0));

    iov.buffer = m_data.data();
    iov.length = cap.max_short + 1;
    iov.count  = 1;
    expect_refused("am_short_iov length", uct_ep_am_short_iov(ep, 5, &iov, 1));

    auto many = iovs(1025, 8);
    expect_refused("am_zcopy", uct_ep_am_zcopy(ep, 5, NULL, 0, many.data(),
                                               many.size(), 0, NULL));
    expect_refused("am_zcopy header length",
                   uct_ep_am_zcopy(ep, 5, m_data.data(), cap.max_hdr + 1,
                                   many.data(), 1, 0, NULL));
    auto big = iovs(1, cap.max_zcopy);
    expect_refused("am_zcopy length", uct_ep_am_zcopy(ep, 5, m_data.data(), 1,
                                                      big.data(), 1, 0, NULL));
}

TEST_F(dcx_limits, put_and_get)
{
    const auto &put = m_dcx.attr.cap.put;
    const auto &get = m_dcx.attr.cap.get;
    uct_ep_h ep     = m_dcx.ep;

    expect_refused("put_short length",
                   uct_ep_put_short(ep, m_data.data(), put.max_short + 1,
                                    m_remote, m_rkey));
    expect_refused("get_bcopy length",
                   uct_ep_get_bcopy(ep, unpack_nothing, NULL, get.max_bcopy + 1,
                                    m_remote, m_rkey, NULL));

    /* more than max_iov entries of few bytes are copied, but at most 1024 */
    auto many = iovs(1025, 8);
    expect_refused("put_zcopy", uct_ep_put_zcopy(ep, many.data(), many.size(),
                                                 m_remote, m_rkey, NULL));
    expect_refused("get_zcopy", uct_ep_get_zcopy(ep, many.data(), many.size(),
                                                 m_remote, m_rkey, NULL));

    auto big = iovs(1, put.max_zcopy + 1);
    expect_refused("put_zcopy length",
                   uct_ep_put_zcopy(ep, big.data(), 1, m_remote, m_rkey, NULL));
    big = iovs(1, get.max_zcopy + 1);
    expect_refused("get_zcopy length",
                   uct_ep_get_zcopy(ep, big.data(), 1, m_remote, m_rkey, NULL));
}

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"small",
                           {{"UCX_DCX_NUM_DCI", "1"},
                            {"UCX_DCX_TX_QUEUE_LEN", "8"},
                            {"UCX_DCX_RX_QUEUE_LEN", "64"}}}});
}
