/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Indirect keys (dcx_mkey.c): their numbers, and the commands that create them;
 * on a simulated device that reuses the index that was freed last, as devices
 * may do
 */
#include "common/prm_cmd.h"

#include <cerrno>
#include <endian.h>
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <map>
#include <memory>
#include <ucs/config/types.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/spinlock.h>
#include <vector>

extern "C" {
#include "uct/dcx/mem/dcx_mkey.h"
}

struct mlx5dv_devx_obj {
    uint32_t number;
    uint32_t rights;
};

namespace {

struct made_up_device {
    uint32_t next_index = 0x1000;
    std::vector<uint32_t> free_indices;
    std::map<uint32_t, mlx5dv_devx_obj *> keys; /* by number */
    std::vector<uint8_t> mailbox;               /* of the last command */
    unsigned created     = 0;
    bool refuses_create  = false;
    bool refuses_destroy = false;
};

made_up_device *device;

const uint32_t access_rights = PRM_MKC_ATOMIC | PRM_MKC_REMOTE_WRITE |
                               PRM_MKC_REMOTE_READ;

} /* namespace */

/* Replacements for functions of libmlx5 */
extern "C" {

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *,
                                               const void *in, size_t inlen,
                                               void *out, size_t outlen)
{
    const auto *cmd = (const struct prm_create_mkey_in *)in;
    auto *reply     = (struct prm_create_mkey_out *)out;
    auto *obj       = new mlx5dv_devx_obj;
    uint32_t index;

    EXPECT_EQ(sizeof(*reply), outlen);
    if (device->refuses_create) {
        reply->syndrome = htobe32(0x77);
        errno           = EREMOTEIO;
        delete obj;
        return NULL;
    }
    if (device->free_indices.empty()) {
        index = device->next_index++;
    } else {
        index = device->free_indices.back();
        device->free_indices.pop_back();
    }
    device->created++;
    device->mailbox.assign((const uint8_t *)in, (const uint8_t *)in + inlen);
    reply->mkey_index = htobe32(index);
    obj->rights       = be32toh(cmd->mkc.rights);
    obj->number       = (index << 8) |
                  (be32toh(cmd->mkc.qpn_mkey_7_0) & PRM_MKC_VARIANT);
    EXPECT_TRUE(device->keys.emplace(obj->number, obj).second);
    return obj;
}

int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
    if (device->refuses_destroy) {
        errno = EIO;
        return EIO;
    }
    device->keys.erase(obj->number);
    device->free_indices.push_back(obj->number >> 8);
    delete obj;
    return 0;
}

} /* extern "C" */

namespace {

class dcx_mkey : public testing::Test {
protected:
    dcx_mkey() : m_mkeys(new uct_dcx_mkeys_t())
    {
        device                 = &m_device;
        m_ctx.device           = &m_ibdev;
        m_dev.ctx              = &m_ctx;
        m_dev.pdn              = 0x123456;
        m_dev.indirect_atomics = 1;
        m_mr.addr              = (void *)0x10000;
        m_mr.length            = 8192;
        m_mr.lkey              = 0x4711;
        strcpy(m_ibdev.name, "mlx5_9");
        EXPECT_EQ(UCS_OK, uct_dcx_mkeys_init(m_mkeys.get(), &m_dev));
    }

    ~dcx_mkey()
    {
        uct_dcx_mkeys_cleanup(m_mkeys.get());
        EXPECT_EQ(0u, m_device.keys.size()) << "keys were left";
    }

    uct_dcx_mkey_t *create()
    {
        uct_dcx_mkey_t *mkey = NULL;

        EXPECT_EQ(UCS_OK,
                  uct_dcx_mkey_create(m_mkeys.get(), &m_mr, m_access, &mkey));
        return mkey;
    }

    void destroy(uct_dcx_mkey_t *mkey)
    {
        EXPECT_EQ(UCS_OK, uct_dcx_mkey_destroy(m_mkeys.get(), mkey));
    }

    /* Returns the number of keys with access. */
    unsigned num_open() const
    {
        unsigned count = 0;

        for (const auto &key : m_device.keys) {
            count += (key.second->rights & access_rights) != 0;
        }
        return count;
    }

    const struct prm_create_mkey_in *mailbox() const
    {
        return (const struct prm_create_mkey_in *)m_device.mailbox.data();
    }

    std::unique_ptr<uct_dcx_mkeys_t> m_mkeys;
    made_up_device m_device;
    struct ibv_device m_ibdev = {};
    struct ibv_context m_ctx  = {};
    uct_dcx_device_t m_dev    = {};
    struct ibv_mr m_mr        = {};
    uint32_t m_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
};

TEST_F(dcx_mkey, numbers_stay_away)
{
    std::map<uint32_t, unsigned> last_use;

    for (unsigned i = 1; i <= 5 * UCT_DCX_STALE_NUMBERS; i++) {
        uct_dcx_mkey_t *mkey = create();
        unsigned &last       = last_use[mkey->rkey];

        if (last != 0) {
            ASSERT_GT(i - last, (unsigned)UCT_DCX_STALE_NUMBERS);
        }
        last = i;
        ASSERT_EQ(1u, num_open());
        destroy(mkey);
        ASSERT_EQ(0u, num_open());
        ASSERT_LE(m_device.keys.size(), (size_t)UCT_DCX_MKEY_HELD);
    }
    /* few indices, few commands: 2 more for each 256 */
    EXPECT_LE(m_device.next_index - 0x1000u, UCT_DCX_MKEY_HELD + 2u);
    EXPECT_LE(m_device.created, 5 * UCT_DCX_STALE_NUMBERS * 258 / 256);
}

TEST_F(dcx_mkey, many_at_a_time)
{
    std::vector<uct_dcx_mkey_t *> live;
    std::map<uint32_t, unsigned> last_use;

    for (unsigned i = 1; i <= 3 * UCT_DCX_STALE_NUMBERS; i++) {
        live.push_back(create());
        unsigned &last = last_use[live.back()->rkey];

        if (last != 0) {
            ASSERT_GT(i - last, (unsigned)UCT_DCX_STALE_NUMBERS);
        }
        last = i;
        if (live.size() == 40) {
            for (auto *mkey : live) {
                destroy(mkey);
            }
            live.clear();
        }
    }
    for (auto *mkey : live) {
        destroy(mkey);
    }
    EXPECT_EQ(0u, num_open());
}

TEST_F(dcx_mkey, mailbox)
{
    m_mr.addr   = (void *)0x12340;
    m_mr.length = 0x2000;

    uct_dcx_mkey_t *mkey = create();

    EXPECT_EQ(sizeof(struct prm_create_mkey_in) + sizeof(struct prm_klm),
              m_device.mailbox.size());
    EXPECT_EQ(PRM_CMD_CREATE_MKEY, be16toh(mailbox()->opcode));
    EXPECT_EQ(PRM_MKC_ACCESS_MODE_KSM,
              be32toh(mailbox()->mkc.rights) & PRM_MKC_ACCESS_MODE);
    EXPECT_EQ(access_rights, be32toh(mailbox()->mkc.rights) & access_rights);
    EXPECT_EQ(0x123456u, be32toh(mailbox()->mkc.flags_pd));
    EXPECT_EQ(0u, be64toh(mailbox()->mkc.start_addr));
    EXPECT_EQ(0x15000u, be64toh(mailbox()->mkc.len));
    EXPECT_EQ(31u, be32toh(mailbox()->mkc.log_entity_size));
    EXPECT_EQ(1u, be32toh(mailbox()->mkc.translations_octword_size));
    EXPECT_EQ(0u, be32toh(mailbox()->klm[0].byte_count));
    EXPECT_EQ(0x4711u, be32toh(mailbox()->klm[0].mkey));
    EXPECT_EQ(0u, be64toh(mailbox()->klm[0].address));
    destroy(mkey);
}

/* The key has no right that the region or the device lacks. */
TEST_F(dcx_mkey, rights)
{
    const struct {
        uint32_t access;
        bool atomics;
        uint32_t rights;
    } rows[] = {
        {IBV_ACCESS_REMOTE_READ, true, PRM_MKC_REMOTE_READ},
        {m_access, true, access_rights},
        {m_access, false, access_rights & ~PRM_MKC_ATOMIC},
    };

    for (const auto &row : rows) {
        m_access               = row.access;
        m_dev.indirect_atomics = row.atomics;

        uct_dcx_mkey_t *mkey = create();

        EXPECT_EQ(row.rights, be32toh(mailbox()->mkc.rights) & access_rights);
        destroy(mkey);
    }
}

TEST_F(dcx_mkey, entries)
{
    const size_t entry = 1ul << 31;
    const struct {
        uint64_t addr, length;
        unsigned entries;
    } rows[] = {
        {entry, entry, 1},       {0x10000, entry - 0x10000, 1},
        {0x10000, entry, 2},     {0x10800, entry - 0x10800, 1},
        {entry - 1, 2, 2},       {3 * entry - 4096, 8192, 2},
        {0x10000, 5 * entry, 6}, {0, 5 * entry, 5},
    };

    for (const auto &row : rows) {
        m_mr.addr   = (void *)row.addr;
        m_mr.length = row.length;

        uct_dcx_mkey_t *mkey = create();
        uint64_t start       = row.addr & ~(entry - 1);

        EXPECT_EQ(row.entries,
                  be32toh(mailbox()->translations_octword_actual_size))
            << std::hex << row.addr << " " << row.length;
        EXPECT_EQ(sizeof(struct prm_create_mkey_in) +
                      row.entries * sizeof(struct prm_klm),
                  m_device.mailbox.size());
        for (unsigned i = 0; i < row.entries; i++) {
            EXPECT_EQ(start + i * entry, be64toh(mailbox()->klm[i].address));
        }
        destroy(mkey);
    }
}

TEST_F(dcx_mkey, refusals)
{
    uct_dcx_mkey_t *mkey = create(), *none = NULL;
    mlx5dv_devx_obj *obj = mkey->obj;

    m_device.refuses_create = true;
    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_dcx_mkey_create(m_mkeys.get(), &m_mr, m_access, &none));
    EXPECT_EQ(NULL, none);

    m_device.refuses_destroy = true;
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_dcx_mkey_destroy(m_mkeys.get(), mkey));

    /* the device still has the key: destroy it here */
    m_device.refuses_destroy = false;
    EXPECT_EQ(0, mlx5dv_devx_obj_destroy(obj));
}

} /* namespace */
