/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The capabilities that dcx derives from a device's answer to QUERY_HCA_CAP,
 * its sysfs files and a profile. There is a device, but most tests answer the
 * command. Then the cleanup of thread domains that are in use.
 */
#include "hca_fixture.h"
#include "common/prm_cmd.h"
#include "ucx_log.h"

#include <endian.h>
#include <fstream>
#include <functional>
#include <ucs/config/types.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/status.h>

extern "C" {
#include "uct/dcx/dev/dcx_device.h"
#include "uct/dcx/dev/dcx_td.h"
}

namespace {

/* Answers QUERY_HCA_CAP: fills page `page`, or returns false to refuse the
 * command. If it is not set, the software device answers. */
std::function<bool(unsigned page, struct prm_query_hca_cap_out *out)> answer;

/* Answer to QUERY_LAG: true if the device's ports are bonded */
bool is_bond;

/* num_queries: calls of ibv_query_device_ex(). query_result: the error that it
 * returns; 0 calls the real function. */
unsigned num_queries;
int query_result;
decltype(verbs_context::query_device_ex) real_query;

int query_device_ex(struct ibv_context *ctx,
                    const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t size)
{
    num_queries++;
    errno = query_result;
    return (query_result != 0) ? query_result :
                                 real_query(ctx, input, attr, size);
}

/* Counts the queries of an open device. */
void count_queries(struct ibv_context *ctx)
{
    struct verbs_context *verbs = verbs_get_ctx(ctx);

    if (verbs->query_device_ex != query_device_ex) {
        real_query             = verbs->query_device_ex;
        verbs->query_device_ex = query_device_ex;
    }
}

} /* namespace */

extern "C" int __real_mlx5dv_devx_general_cmd(struct ibv_context *,
                                              const void *, size_t, void *,
                                              size_t);

extern "C" int __wrap_mlx5dv_devx_general_cmd(struct ibv_context *ctx,
                                              const void *in, size_t inlen,
                                              void *out, size_t outlen)
{
    const auto *cmd = (const struct prm_query_hca_cap_in *)in;
    unsigned op_mod = be16toh(cmd->op_mod);

    count_queries(ctx);
    if (be16toh(cmd->opcode) == PRM_CMD_QUERY_LAG) {
        auto *lag = (struct prm_query_lag_out *)out;

        EXPECT_EQ(sizeof(*lag), outlen);
        lag->state = htobe32(is_bond);
        return 0;
    }
    EXPECT_EQ(PRM_CMD_QUERY_HCA_CAP, be16toh(cmd->opcode));
    EXPECT_EQ(sizeof(*cmd), inlen);
    EXPECT_EQ(sizeof(struct prm_query_hca_cap_out), outlen);
    EXPECT_EQ(PRM_CAP_CURRENT, op_mod & 1);
    if (answer == nullptr) {
        return __real_mlx5dv_devx_general_cmd(ctx, in, inlen, out, outlen);
    }
    if (!answer(op_mod >> 1, (struct prm_query_hca_cap_out *)out)) {
        errno = EREMOTEIO;
        return EREMOTEIO;
    }
    return 0;
}

namespace {

void set_bit(struct prm_query_hca_cap_out *out, unsigned bit)
{
    out->cap.bytes[bit / 8] |= 0x80 >> (bit % 8);
}

bool set_atomics(struct prm_query_hca_cap_out *out, unsigned operations,
                 unsigned sizes, bool host_order)
{
    out->cap.atomic.operations        = htobe16(operations);
    out->cap.atomic.size_qp           = htobe16(sizes | 16);
    out->cap.atomic.size_dc           = htobe16(sizes);
    out->cap.atomic.req_8b_endianness = host_order ? 0x40 : 0;
    return true;
}

const unsigned std_ops = PRM_ATOMIC_CMP_SWAP | PRM_ATOMIC_FETCH_ADD;
const unsigned all_ops = std_ops | PRM_ATOMIC_MASKED_CMP_SWAP |
                         PRM_ATOMIC_MASKED_FETCH_ADD;

class dcx_device : public testing::Test {
protected:
    ~dcx_device() { answer = nullptr; }

    uct_dcx_device_t open(ucs_ternary_auto_value_t devx = UCS_TRY,
                          ucs_ternary_auto_value_t ext  = UCS_TRY)
    {
        struct ibv_device **list = ibv_get_device_list(NULL);
        uct_dcx_device_t dev;

        EXPECT_EQ(UCS_OK, uct_dcx_device_open(&dev, list[0], devx, ext,
                                              profile.c_str()));
        uct_dcx_device_close(&dev);
        ibv_free_device_list(list);
        return dev;
    }

    std::string profile = "none";

    void expect_atomics(const uct_dcx_device_t &dev, int std, int ext,
                        bool be64)
    {
        EXPECT_EQ(std, dev.atomic.std);
        EXPECT_EQ(ext, dev.atomic.ext);
        EXPECT_EQ(be64, dev.atomic.be64);
    }

    void answer_atomics(unsigned operations, unsigned sizes, bool host_order)
    {
        answer = [=](unsigned page, struct prm_query_hca_cap_out *out) {
            if (page == PRM_CAP_GENERAL) {
                set_bit(out, PRM_HCA_CAP_ATOMIC);
            }
            return (page != PRM_CAP_ATOMIC) ||
                   set_atomics(out, operations, sizes, host_order);
        };
    }

    void answer_bits(std::vector<unsigned> bits)
    {
        answer = [=](unsigned page, struct prm_query_hca_cap_out *out) {
            if (page == PRM_CAP_GENERAL) {
                for (unsigned bit : bits) {
                    set_bit(out, bit);
                }
            }
            return true;
        };
    }
};

TEST_F(dcx_device, atomics)
{
    answer_atomics(all_ops, 4 | 8, true);
    expect_atomics(open(), 8, 4 | 8, false);

    answer_atomics(all_ops, 4 | 8, false);
    expect_atomics(open(), 8, 4 | 8, true);

    answer_atomics(all_ops, 8, true);
    expect_atomics(open(), 8, 8, false);

    answer_atomics(std_ops, 8, true);
    expect_atomics(open(), 8, 0, false);

    answer_atomics(PRM_ATOMIC_FETCH_ADD, 8, true);
    expect_atomics(open(), 0, 0, false);

    answer_atomics(0, 0, false);
    expect_atomics(open(), 0, 0, true);
}

TEST_F(dcx_device, extended_atomics_are_not_wanted)
{
    answer_atomics(all_ops, 4 | 8, true);
    expect_atomics(open(UCS_TRY, UCS_NO), 8, 0, false);
}

/* Atomics are derived from verbs and UCX_DCX_EXT_ATOMICS if the device does not
 * answer. */
TEST_F(dcx_device, no_answer)
{
    answer = [](unsigned, struct prm_query_hca_cap_out *) { return false; };

    uct_dcx_device_t dev = open();

    expect_atomics(dev, 8, 4 | 8, false);
    EXPECT_TRUE(dev.has_devx);
    EXPECT_TRUE(dev.has_dc);
    EXPECT_TRUE(dev.compact_av);
    EXPECT_FALSE(dev.indirect_keys);
    expect_atomics(open(UCS_TRY, UCS_NO), 8, 0, false);
}

TEST_F(dcx_device, does_not_ask_without_devx)
{
    answer = [](unsigned, struct prm_query_hca_cap_out *) {
        ADD_FAILURE() << "a command, although UCX_DCX_DEVX=n";
        return true;
    };
    expect_atomics(open(UCS_NO), 8, 4 | 8, false);
    expect_atomics(open(UCS_NO, UCS_NO), 8, 0, false);
}

TEST_F(dcx_device, indirect_keys)
{
    answer_bits({});
    EXPECT_FALSE(open().indirect_keys);
    answer_bits({PRM_HCA_CAP_FIXED_BUFFER_SIZE});
    EXPECT_TRUE(open().indirect_keys);
    EXPECT_TRUE(open().indirect_atomics);
    answer_bits({PRM_HCA_CAP_FIXED_BUFFER_SIZE,
                 PRM_HCA_CAP_UMR_MODIFY_ATOMIC_DISABLED});
    EXPECT_TRUE(open().indirect_keys);
    EXPECT_FALSE(open().indirect_atomics);
}

/* max_indirection in bits 0x100 to 0x107, umr_fence in 0x20a and 0x20b */
TEST_F(dcx_device, layouts)
{
    const unsigned depth_1 = 0x107, depth_16 = 0x103;
    const unsigned fence_2 = 0x20a, fence_1 = 0x20b;

    answer_bits({});
    EXPECT_FALSE(open().umr.has_keys) << "keys without a depth";
    answer_bits({depth_1});
    EXPECT_TRUE(open().umr.has_keys);
    EXPECT_EQ(1u, open().umr.max_depth);
    EXPECT_EQ(PRM_UMR_FENCE_STRONG, open().umr.fence);
    answer_bits({depth_16, fence_1});
    EXPECT_EQ(4u, open().umr.max_depth);
    EXPECT_EQ(PRM_UMR_FENCE_SMALL, open().umr.fence);
    answer_bits({depth_16, fence_2});
    EXPECT_EQ(PRM_UMR_FENCE_NONE, open().umr.fence);
    answer_bits({depth_1, PRM_HCA_CAP_REPEATED_BLOCK_DISABLED});
    EXPECT_FALSE(open().umr.has_keys);
    answer_bits({depth_1, PRM_HCA_CAP_UMR_INDIRECT_MKEY_DISABLED});
    EXPECT_FALSE(open().umr.has_keys);
}

/* lag_dct is in the bits 0x276 and 0x277. */
TEST_F(dcx_device, bond)
{
    answer_bits({});
    uct_dcx_device_t dev = open();
    EXPECT_EQ(nullptr, uct_dcx_device_dc_fault(&dev));
    is_bond = true;
    dev     = open();
    EXPECT_FALSE(dev.has_dc);
    EXPECT_STREQ("its ports are bonded, and its firmware does not support DC "
                 "on a bond",
                 uct_dcx_device_dc_fault(&dev));
    for (unsigned bit : {0x276, 0x277}) {
        answer_bits({bit});
        EXPECT_TRUE(open().has_dc);
    }
    is_bond = false;
}

/* Memory is registered for remote atomics only if the device has them. */
TEST_F(dcx_device, rights)
{
    answer_atomics(all_ops, 8, true);
    EXPECT_TRUE(open().mem_access & IBV_ACCESS_REMOTE_ATOMIC);
    answer_atomics(0, 0, false);
    EXPECT_FALSE(open().mem_access & IBV_ACCESS_REMOTE_ATOMIC);
    answer = [](unsigned page, struct prm_query_hca_cap_out *out) {
        return (page != PRM_CAP_ATOMIC) ||
               set_atomics(out, all_ops, 4 | 8, true);
    };
    EXPECT_FALSE(open().mem_access & IBV_ACCESS_REMOTE_ATOMIC);
    expect_atomics(open(), 0, 0, false);
}

TEST_F(dcx_device, compact_address_vector)
{
    answer_bits({});
    EXPECT_FALSE(open().compact_av);
    answer_bits({PRM_HCA_CAP_COMPACT_ADDRESS_VECTOR});
    EXPECT_TRUE(open().compact_av);
}

/* The device's NUMA node has every other processor: the longest possible
 * list */
TEST_F(dcx_device, local_cpus)
{
    char dir[]               = "/tmp/dcx_device.XXXXXX";
    struct ibv_device **list = ibv_get_device_list(NULL);
    uct_dcx_device_t dev;
    std::string cpus = "0";

    for (unsigned cpu = 2; cpu < UCS_CPU_SETSIZE; cpu += 2) {
        cpus += "," + std::to_string(cpu);
    }
    ASSERT_NE(nullptr, mkdtemp(dir));
    std::filesystem::create_directory(std::string(dir) + "/device");
    std::ofstream(std::string(dir) + "/device/local_cpulist") << cpus << "\n";
    const std::string path = list[0]->ibdev_path; /* kept by libibverbs */
    strcpy(list[0]->ibdev_path, dir);
    EXPECT_EQ(UCS_OK,
              uct_dcx_device_open(&dev, list[0], UCS_TRY, UCS_TRY, "none"));
    for (unsigned cpu = 0; cpu < UCS_CPU_SETSIZE; cpu++) {
        EXPECT_EQ(cpu % 2 == 0, !!ucs_cpu_is_set(cpu, &dev.local_cpus)) << cpu;
    }
    uct_dcx_device_close(&dev);
    strcpy(list[0]->ibdev_path, path.c_str());
    ibv_free_device_list(list);
    std::filesystem::remove_all(dir);
}

/* The bits are those of mlx5_ifc.h; log_tag_matching_list_sz is in 0x5f3 to
 * 0x5f7. */
TEST_F(dcx_device, tag_matching)
{
    const unsigned xrqs = 0x5ff, log_tags_4 = 0x5f5, log_tags_1 = 0x5f7;

    answer_bits({PRM_HCA_CAP_TAG_MATCHING, xrqs, log_tags_4, log_tags_1});
    uct_dcx_device_t dev = open();
    EXPECT_EQ(31u, dev.tm.max_tags) << "not 2^5, less one that is reserved";
    EXPECT_EQ(0, dev.tm.rndv_dc);
    EXPECT_EQ(64u, dev.tm.max_hdr);
    EXPECT_STREQ("it does not support rendezvous over DC",
                 uct_dcx_device_tm_fault(&dev));

    answer_bits({PRM_HCA_CAP_TAG_MATCHING, PRM_HCA_CAP_RNDV_OFFLOAD_DC, xrqs,
                 log_tags_1});
    dev = open();
    EXPECT_EQ(1u, dev.tm.max_tags);
    EXPECT_EQ(1, dev.tm.rndv_dc);
    EXPECT_EQ(nullptr, uct_dcx_device_tm_fault(&dev));

    for (unsigned lacks : {PRM_HCA_CAP_TAG_MATCHING + 0u, xrqs, log_tags_1}) {
        std::vector<unsigned> bits;

        for (unsigned bit : {PRM_HCA_CAP_TAG_MATCHING + 0u, xrqs, log_tags_1}) {
            if (bit != lacks) {
                bits.push_back(bit);
            }
        }
        answer_bits(bits);
        dev = open();
        EXPECT_EQ(0u, dev.tm.max_tags);
        EXPECT_STREQ("it has no tag matching", uct_dcx_device_tm_fault(&dev));
    }

    answer = [](unsigned, struct prm_query_hca_cap_out *) { return false; };
    dev    = open();
    EXPECT_STREQ("it does not answer QUERY_HCA_CAP",
                 uct_dcx_device_tm_fault(&dev));
    dev = open(UCS_NO);
    EXPECT_STREQ("it was opened without DEVX", uct_dcx_device_tm_fault(&dev));
}

/* Features that a profile enables, or disables because a probe has failed */
TEST_F(dcx_device, features_of_a_profile)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    uct_dcx_device_t dev     = open();
    uct_dcx_profile_id_t id;
    char dir[] = "/tmp/dcx_device.XXXXXX";

    EXPECT_STREQ("", dev.profile.path);
    EXPECT_FALSE(dev.umr.has_nests);
    EXPECT_FALSE(dev.tm.has_keys);
    EXPECT_EQ(20u, dev.umr.max_inline);
    EXPECT_TRUE(dev.umr.has_keys);
    EXPECT_TRUE(dev.indirect_keys);
    EXPECT_LT(0u, dev.tm.max_tags);

    ASSERT_NE(nullptr, mkdtemp(dir));
    profile = std::string(dir) + "/profile";
    uct_dcx_profile_identify(&id, list[0], &dev.attr);
    ibv_free_device_list(list);
    EXPECT_STREQ("SOFTHCA_00", id.psid);
    uct_dcx_profile_write(profile.c_str(), &id,
                          "nests pass\ninline52 pass\ntm_keys pass\n");
    dev = open();
    EXPECT_EQ(profile, dev.profile.path);
    EXPECT_TRUE(dev.umr.has_nests);
    EXPECT_TRUE(dev.tm.has_keys);
    EXPECT_EQ(52u, dev.umr.max_inline);
    EXPECT_EQ(4u, dev.umr.max_depth);

    uct_dcx_profile_write(profile.c_str(), &id, "depth fail\nlevels 3\n");
    dev = open();
    EXPECT_TRUE(dev.umr.has_keys);
    EXPECT_EQ(3u, dev.umr.max_depth);
    uct_dcx_profile_write(profile.c_str(), &id, "depth pass\nlevels 5\n");
    EXPECT_EQ(4u, open().umr.max_depth);

    uct_dcx_profile_write(profile.c_str(), &id,
                          "tm_keys pass\ntm_rndv fail\n"
                          "list4 fail\nksm_boundary fail\n");
    dev = open();
    EXPECT_FALSE(dev.umr.has_nests);
    EXPECT_FALSE(dev.umr.has_keys);
    EXPECT_FALSE(dev.indirect_keys);
    EXPECT_FALSE(dev.tm.has_keys);
    EXPECT_EQ(0u, dev.tm.max_tags);
    std::filesystem::remove_all(dir);
}

/* The software device's own answer, and features that match its behaviour */
TEST_F(dcx_device, its_own_answer)
{
    uct_dcx_device_t dev = open(UCS_YES);

    EXPECT_TRUE(dev.has_devx);
    EXPECT_TRUE(dev.compact_av);
    EXPECT_TRUE(dev.indirect_keys);
    EXPECT_EQ(1023u, dev.tm.max_tags);
    EXPECT_TRUE(dev.tm.rndv_dc);
    expect_atomics(dev, 8, 4 | 8, false);
}

/* The kernel is asked once, by all features together. */
TEST_F(dcx_device, kernel_is_asked_once)
{
    num_queries          = 0;
    uct_dcx_device_t dev = open();
    EXPECT_EQ(1u, num_queries);
    EXPECT_EQ(1023u, dev.tm.max_tags);
    EXPECT_LT(0u, dev.tm.max_hdr);
    EXPECT_EQ(nullptr, dev.odp_fault);
}

TEST_F(dcx_device, kernel_refuses)
{
    ucx_log_reader log;

    query_result         = ENOMEM;
    uct_dcx_device_t dev = open();
    query_result         = 0;
    EXPECT_EQ("mlx5_0: ibv_query_device_ex() failed: Cannot allocate memory; "
              "continuing without tag matching and on-demand paging\n",
              log.take());
    EXPECT_TRUE(dev.has_dc);
    EXPECT_EQ(0u, dev.tm.max_tags);
    EXPECT_STREQ("ibv_query_device_ex() failed", dev.odp_fault);
}

/* Checks the logged reason: libmlx5 returns EBUSY for a domain that is in use,
 * but does not set errno. */
void expect_busy(uct_dcx_td_t *td, const std::string &name)
{
    ucx_log_reader log;

    errno = 0;
    uct_dcx_td_cleanup(td);
    EXPECT_EQ("mlx5_0: failed to free the " + name +
                  ": Device or resource busy\n",
              log.take());
}

TEST_F(dcx_device, domains_in_use)
{
    struct ibv_device **list                   = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr qp_attr            = {};
    struct ibv_parent_domain_init_attr pd_attr = {};
    uct_dcx_device_t dev;
    uct_dcx_td_t td;
    struct ibv_qp *qp;
    struct ibv_pd *pd;

    ASSERT_EQ(UCS_OK, uct_dcx_device_open(&dev, list[0], UCS_TRY, UCS_TRY,
                                          profile.c_str()));
    uct_dcx_td_init(&td, &dev);
    ASSERT_NE(nullptr, td.td);
    qp_attr.qp_type = IBV_QPT_RC;
    qp_attr.cap     = {1, 1, 1, 1, 0};
    qp_attr.send_cq = ibv_create_cq(dev.ctx, 1, NULL, NULL, 0);
    qp_attr.recv_cq = qp_attr.send_cq;
    qp              = ibv_create_qp(td.pd, &qp_attr);
    ASSERT_NE(nullptr, qp);
    expect_busy(&td, "parent domain");
    EXPECT_EQ(0, ibv_destroy_qp(qp));
    EXPECT_EQ(0, ibv_destroy_cq(qp_attr.send_cq));

    pd_attr.pd = dev.pd;
    pd_attr.td = td.td;
    pd         = ibv_alloc_parent_domain(dev.ctx, &pd_attr);
    ASSERT_NE(nullptr, pd);
    expect_busy(&td, "thread domain");
    EXPECT_EQ(0, ibv_dealloc_pd(pd));
    EXPECT_EQ(0, ibv_dealloc_td(td.td));
    uct_dcx_device_close(&dev);
    ibv_free_device_list(list);
}

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv, {{"soft", {}}});
}
