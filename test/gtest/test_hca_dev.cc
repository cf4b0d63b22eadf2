/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Identity of the devices (hca_dev.c): variables, names and numbers, and the
 * way back from these to a device
 */
#include "test_hca_dev.h"

#include <errno.h>
#include <string.h>

#include <set>
#include <vector>

TEST_F(hca_dev, config_default)
{
    EXPECT_EQ(0, hca_config_init());
    EXPECT_EQ(1u, hca_config.num_devs);
    EXPECT_EQ(0u, hca_config.node);
    EXPECT_EQ(HCA_LINK_IB, hca_config.link);
    EXPECT_EQ(0u, hca_config.lmc);
    EXPECT_FALSE(hca_config.lag);
}

TEST_F(hca_dev, config_values)
{
    setenv("SOFTHCA_DEVICES", "16", 1);
    setenv("SOFTHCA_NODE", "15", 1);
    setenv("SOFTHCA_LINK", "roce", 1);
    EXPECT_EQ(0, hca_config_init());
    EXPECT_EQ(16u, hca_config.num_devs);
    EXPECT_EQ(15u, hca_config.node);
    EXPECT_EQ(HCA_LINK_ROCE, hca_config.link);
    EXPECT_EQ(HCA_MAX_DEVS - 1, hca_dev_local(15));

    setenv("SOFTHCA_LAG", "y", 1);
    EXPECT_EQ(0, hca_config_init());
    EXPECT_TRUE(hca_config.lag);

    setenv("SOFTHCA_LAG", "n", 1);
    setenv("SOFTHCA_LINK", "ib", 1);
    setenv("SOFTHCA_LMC", "7", 1);
    EXPECT_EQ(0, hca_config_init());
    EXPECT_EQ(7u, hca_config.lmc);
    EXPECT_FALSE(hca_config.lag);
}

TEST_F(hca_dev, config_refused)
{
    for (const char *value :
         {"", "0", "17", "-1", "+1", " 1", "1 ", "1x", "0x1", "one",
          "4294967297", "99999999999999999999"}) {
        expect_refused("SOFTHCA_DEVICES", value);
    }
    for (const char *value : {"", "16", "-0", "a"}) {
        expect_refused("SOFTHCA_NODE", value);
    }
    for (const char *value : {"", "IB", "no", "ethernet", "ib "}) {
        expect_refused("SOFTHCA_LINK", value);
    }
    for (const char *value : {"", "8", "-1"}) {
        expect_refused("SOFTHCA_LMC", value);
    }
    for (const char *value : {"", "Y", "1", "y" /* on InfiniBand */}) {
        expect_refused("SOFTHCA_LAG", value);
    }
    for (const char *name : {"SOFTHCA_DOWN", "SOFTHCA_OTHER"}) {
        for (const char *value : {"", "16", "-1", "all"}) {
            expect_refused(name, value);
        }
    }
    for (const char *value : {"", "DC", "dc;sm", "dc, sm", "srq"}) {
        expect_refused("SOFTHCA_LACKS", value);
    }
    for (const char *value :
         {"", "max_qp", "max_qp=", "max_qp=0", "max_qp=-1", "max_qp=1x",
          "max_cqe=2147483648", "max_cqe=512", "max_qp_wr=511", "max_sge=1",
          "max_num_tags=64", "max_qp=1,max_cqe"}) {
        expect_refused("SOFTHCA_LIMITS", value);
    }
    expect_refused("SOFTHCA_HAS", "tm,srq");
    for (const char *value : {"", "cx4", "cx5,vf", "CX5"}) {
        expect_refused("SOFTHCA_MODEL", value);
    }
    for (const char *value : {"", "ib0,", "ib0,ib0", "mlx5_0", "ib/0", "ib 0",
                              "a234567890123456789012345678901b"}) {
        expect_refused("SOFTHCA_NAMES", value);
    }
    for (const char *value : {"", "Y", "1"}) {
        expect_refused("SOFTHCA_MEMLOCK", value);
        expect_refused("SOFTHCA_SHARE", value);
    }
    setenv("SOFTHCA_LINK", "roce", 1);
    expect_refused("SOFTHCA_LMC", "1");
}

/* A later variable overrides details of an earlier one. */
TEST_F(hca_dev, models)
{
    EXPECT_EQ(0, hca_config_init());
    EXPECT_FALSE(hca_lacks(HCA_LACK_TM));
    EXPECT_FALSE(hca_lacks(HCA_LACK_REPEAT_NEST));

    setenv("SOFTHCA_MODEL", "cx6dx", 1);
    EXPECT_EQ(0, hca_config_init());
    EXPECT_EQ(HCA_LINK_ROCE, hca_config.link);
    EXPECT_EQ(0u, hca_config.log_errored);
    EXPECT_TRUE(hca_lacks(HCA_LACK_TM));
    EXPECT_TRUE(hca_lacks(HCA_LACK_FREE_CLOCK));
    EXPECT_EQ(20u, hca_limit(HCA_LIMIT_INLINE_KLM, 52));

    setenv("SOFTHCA_HAS", "tm_roce,free_clock", 1);
    setenv("SOFTHCA_LACKS", "strides", 1);
    setenv("SOFTHCA_LIMITS", "max_inline_klm=8", 1);
    EXPECT_EQ(0, hca_config_init());
    EXPECT_FALSE(hca_lacks(HCA_LACK_TM));
    EXPECT_FALSE(hca_lacks(HCA_LACK_FREE_CLOCK));
    EXPECT_TRUE(hca_lacks(HCA_LACK_STRIDES));
    EXPECT_EQ(8u, hca_limit(HCA_LIMIT_INLINE_KLM, 52));

    setenv("SOFTHCA_LINK", "ib", 1);
    EXPECT_EQ(0, hca_config_init());
    EXPECT_EQ(HCA_LINK_IB, hca_config.link);
}

TEST_F(hca_dev, names)
{
    char name[HCA_DEV_NAME_LEN];
    unsigned n = 0;

    setenv("SOFTHCA_NAMES", "ibp1s0,rocep2s0f1", 1);
    setenv("SOFTHCA_OTHER", "3", 1);
    EXPECT_EQ(0, hca_config_init());
    for (const char *expected : {"ibp1s0", "rocep2s0f1", "mlx5_2", "mlx4_3"}) {
        hca_dev_name(n++, name);
        EXPECT_STREQ(expected, name);
    }
}

/* A port that is down keeps its names, but transfers nothing. */
TEST_F(hca_dev, port_down)
{
    for (const char *link : {"ib", "roce"}) {
        struct hca_path path = {};

        set_links(HCA_LINK_NONE);
        setenv("SOFTHCA_DEVICES", "3", 1);
        setenv("SOFTHCA_LINK", link, 1);
        setenv("SOFTHCA_DOWN", "1", 1);
        EXPECT_EQ(0, hca_config_init());
        EXPECT_EQ(0, hca_dev_register());
        for (unsigned dev = 0; dev < 3; dev++) {
            EXPECT_EQ(dev == 1, hca_dev_is_down(dev));
            EXPECT_EQ(!strcmp(link, "roce"), hca_dev_is_roce(dev));
            EXPECT_EQ(0u, hca_dev_lmc(dev));

            path.dlid = hca_dev_lid(dev);
            hca_dev_mac(dev, path.dmac);
            hca_dev_gid(dev, 0, path.dgid);
            for (unsigned from = 0; from < 3; from++) {
                struct hca_way way = {};

                EXPECT_EQ((dev != 1) && (from != 1),
                          hca_path_leads(&path, from, dev, &way))
                    << link << " " << from << " to " << dev;
            }
        }

        hca_config.down = 0;
        testing::internal::CaptureStderr();
        EXPECT_EQ(-EINVAL, hca_dev_register());
        EXPECT_NE(std::string::npos,
                  testing::internal::GetCapturedStderr().find("up, in the"));
    }
}

/* A way that was found for device 2 is not reused for another path or
 * device. */
TEST_F(hca_dev, way_is_of_one_path)
{
    for (const char *link : {"ib", "roce"}) {
        struct hca_path right = {}, wrong;
        struct hca_way way    = {};

        set_links(HCA_LINK_NONE);
        setenv("SOFTHCA_DEVICES", "3", 1);
        setenv("SOFTHCA_LINK", link, 1);
        EXPECT_EQ(0, hca_config_init());
        EXPECT_EQ(0, hca_dev_register());
        right.grh  = true;
        right.dlid = hca_dev_lid(2);
        hca_dev_mac(2, right.dmac);
        hca_dev_gid(2, 0, right.dgid);

        auto leads = [&](const struct hca_path &path, unsigned to) {
            bool does = hca_path_leads(&path, 0, to, &way);

            EXPECT_TRUE(hca_path_leads(&right, 0, 2, &way)) << link;
            return does;
        };
        EXPECT_TRUE(leads(right, 2));
        EXPECT_FALSE(leads(right, 1)) << link;
        if (hca_dev_is_roce(2)) {
            wrong = right;
            wrong.dmac[5] ^= 1;
            EXPECT_FALSE(leads(wrong, 2));
        } else {
            wrong      = right;
            wrong.dlid = hca_dev_lid(1);
            EXPECT_FALSE(leads(wrong, 2));
        }
        wrong = right;
        hca_dev_gid(1, 0, wrong.dgid);
        EXPECT_FALSE(leads(wrong, 2)) << link;
        wrong            = right;
        wrong.sgid_index = HCA_GID_TABLE_LEN;
        EXPECT_FALSE(leads(wrong, 2)) << link;
        wrong     = right;
        wrong.grh = false;
        wrong.dgid[0] ^= 1;
        EXPECT_EQ(!hca_dev_is_roce(2), leads(wrong, 2));

        wrong     = right;
        wrong.grh = hca_dev_is_roce(2);
        EXPECT_TRUE(hca_path_leads(&wrong, 0, 2, &way)) << link;
        wrong.grh = true;
        hca_dev_gid(1, 0, wrong.dgid);
        EXPECT_FALSE(leads(wrong, 2)) << link;

        hca_fabric->port_down[2] = 1;
        EXPECT_FALSE(hca_path_leads(&right, 0, 2, &way)) << link;
        hca_fabric->port_down[2] = 0;
        EXPECT_TRUE(leads(right, 2)) << link;
    }
}

TEST_F(hca_dev, register_link)
{
    hca_config.num_devs = 2;
    hca_config.node     = 1;
    hca_config.link     = HCA_LINK_IB;
    EXPECT_EQ(0, hca_dev_register());
    EXPECT_EQ(0, hca_dev_register());
    EXPECT_EQ(HCA_LINK_NONE, hca_fabric->dev_link[15]);
    EXPECT_EQ(HCA_LINK_IB, hca_fabric->dev_link[16]);
    EXPECT_EQ(HCA_LINK_IB, hca_fabric->dev_link[17]);
    EXPECT_EQ(HCA_LINK_NONE, hca_fabric->dev_link[18]);

    hca_config.link = HCA_LINK_ROCE;
    testing::internal::CaptureStderr();
    EXPECT_EQ(-EINVAL, hca_dev_register());
    EXPECT_NE(
        std::string::npos,
        testing::internal::GetCapturedStderr().find(
            "SOFTHCA_LINK=roce, SOFTHCA_LMC=0: mlx5_0 of node 1 is ib with "
            "LMC 0"));

    hca_config.link = HCA_LINK_IB;
    hca_config.lmc  = 3;
    testing::internal::CaptureStderr();
    EXPECT_EQ(-EINVAL, hca_dev_register());
    EXPECT_NE(std::string::npos,
              testing::internal::GetCapturedStderr().find(
                  "SOFTHCA_LMC=3: mlx5_0 of node 1 is ib with LMC 0"));

    hca_config.node = 2;
    EXPECT_EQ(0, hca_dev_register());
}

TEST_F(hca_dev, identities_differ)
{
    std::set<uint64_t> guids;
    std::set<std::string> macs;

    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        uint8_t mac[6];

        hca_dev_mac(dev, mac);
        EXPECT_EQ(2, mac[0] & 3); /* unicast, locally administered */
        macs.insert(std::string((const char *)mac, sizeof(mac)));
        EXPECT_NE(0u, hca_dev_guid(dev));
        guids.insert(hca_dev_guid(dev));
    }
    EXPECT_EQ(HCA_MAX_DEVS, guids.size());
    EXPECT_EQ(HCA_MAX_DEVS, macs.size());
}

TEST_F(hca_dev, ib_numbers_and_back)
{
    std::set<std::string> gids;
    uint8_t gid[16];

    set_links(HCA_LINK_IB);
    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        uint64_t guid = hca_dev_guid(dev);

        EXPECT_GT(0xc000, hca_dev_lid(dev)); /* multicast starts there */
        EXPECT_EQ(HCA_GID_IB, hca_dev_gid(dev, 0, gid));
        EXPECT_EQ((int)dev, hca_dev_by_gid(gid));
        EXPECT_EQ(0, memcmp(gid + 8, &guid, sizeof(guid)));
        gids.insert(gid_bytes(dev, 0));
        EXPECT_EQ(HCA_GID_NONE, hca_dev_gid(dev, 1, gid));
        EXPECT_EQ(std::string(16, '\0'), gid_bytes(dev, 1));
    }
    EXPECT_EQ(HCA_MAX_DEVS, gids.size());
}

/* Ports with and without LMC in one subnet: each LID is of one port. */
TEST_F(hca_dev, lmc)
{
    std::set<unsigned> lids;
    unsigned count = 0;

    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        unsigned lmc = dev % 8;

        hca_fabric->dev_link[dev] = HCA_LINK_IB | (lmc << HCA_LINK_LMC_SHIFT);
        EXPECT_FALSE(hca_dev_is_roce(dev));
        EXPECT_EQ(lmc, hca_dev_lmc(dev));
        EXPECT_EQ(0, hca_dev_lid(dev) & ((1 << lmc) - 1));
        for (unsigned path = 0; path < 1u << lmc; path++) {
            unsigned lid = hca_dev_lid(dev) + path;

            lids.insert(lid);
            count++;
            EXPECT_GT(0xc000u, lid);
        }
    }
    EXPECT_EQ(count, lids.size());
}

TEST_F(hca_dev, roce_numbers_and_back)
{
    static const enum hca_gid_type types[HCA_GID_TABLE_LEN] = {
        HCA_GID_ROCE_V1,
        HCA_GID_ROCE_V2,
        HCA_GID_ROCE_V1,
        HCA_GID_ROCE_V2,
    };
    std::set<std::string> gids;
    uint8_t gid[16];

    set_links(HCA_LINK_ROCE);
    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        EXPECT_EQ(0, hca_dev_lid(dev));
        for (unsigned i = 0; i < HCA_GID_TABLE_LEN; i++) {
            EXPECT_EQ(types[i], hca_dev_gid(dev, i, gid));
            EXPECT_EQ((int)dev, hca_dev_by_gid(gid));
            gids.insert(gid_bytes(dev, i));
        }
        EXPECT_EQ(HCA_GID_NONE, hca_dev_gid(dev, HCA_GID_TABLE_LEN, gid));
    }
    EXPECT_EQ(2 * HCA_MAX_DEVS, gids.size()); /* v1 and v2 share one */
}

TEST_F(hca_dev, unknown_gid)
{
    uint8_t gid[16];

    set_links(HCA_LINK_IB);
    hca_dev_gid(7, 0, gid);
    for (unsigned i = 0; i < 15; i++) { /* the last one numbers the device */
        gid[i] ^= 0x40;
        EXPECT_EQ(-1, hca_dev_by_gid(gid)) << "byte " << i;
        gid[i] ^= 0x40;
    }

    /* a GID of device 7 as of the other link layer */
    hca_fabric->dev_link[7] = HCA_LINK_ROCE;
    EXPECT_EQ(-1, hca_dev_by_gid(gid));
    hca_dev_gid(7, 2, gid);
    hca_fabric->dev_link[7] = HCA_LINK_IB;
    EXPECT_EQ(-1, hca_dev_by_gid(gid));

    /* of no device */
    hca_dev_gid(7, 0, gid);
    hca_fabric->dev_link[7] = HCA_LINK_NONE;
    EXPECT_EQ(-1, hca_dev_by_gid(gid));

    memset(gid, 0, sizeof(gid));
    EXPECT_EQ(-1, hca_dev_by_gid(gid));
    memset(gid, 0xff, sizeof(gid));
    EXPECT_EQ(-1, hca_dev_by_gid(gid));
}
