/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Identity of the devices (hca_dev.c): variables, numbers and the way back
 * from them; and the sysfs tree that shows it (hca_sysfs.c), in a folder of
 * the test. A fabric here is the head of the segment alone.
 */
#include <gtest/gtest.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

/* The headers are C: to C++ their atomics are plain members of equal layout. */
#define _STDATOMIC_H
#define __CLANG_STDATOMIC_H
#define _Atomic(_type) _type
extern "C" {
#include "softhca/fabric/hca_dev.h"
#include "softhca/preload/hca_sysfs.h"
#include "softhca/nic/hca_wire.h"
}

class hca_dev : public testing::Test {
protected:
    void SetUp() override
    {
        m_config   = hca_config;
        hca_fabric = (struct hca_fabric*)calloc(1, sizeof(*hca_fabric));
        ASSERT_NE(nullptr, hca_fabric);
        unset();
    }

    void TearDown() override
    {
        unset();
        free(hca_fabric);
        hca_fabric = nullptr;
        hca_config = m_config;
    }

    static void unset()
    {
        unsetenv("SOFTHCA_DEVICES");
        unsetenv("SOFTHCA_NODE");
        unsetenv("SOFTHCA_LINK");
        unsetenv("SOFTHCA_LMC");
        unsetenv("SOFTHCA_LAG");
        unsetenv("SOFTHCA_DOWN");
        unsetenv("SOFTHCA_OTHER");
    }

    static void set_links(enum hca_link link)
    {
        for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
            hca_fabric->dev_link[dev] = link;
        }
    }

    /* The error line of a wrong value, which has to name the variable. */
    static void expect_refused(const char *name, const char *value)
    {
        struct hca_config before = hca_config;
        std::string line;

        setenv(name, value, 1);
        testing::internal::CaptureStderr();
        EXPECT_EQ(-EINVAL, hca_config_init()) << name << "='" << value << "'";
        line = testing::internal::GetCapturedStderr();
        unsetenv(name);

        EXPECT_NE(std::string::npos,
                  line.find(std::string(name) + "=" + value + ": use "))
                << line;
        EXPECT_EQ(1, std::count(line.begin(), line.end(), '\n')) << line;
        EXPECT_EQ(before.num_devs, hca_config.num_devs);
        EXPECT_EQ(before.node, hca_config.node);
        EXPECT_EQ(before.link, hca_config.link);
        EXPECT_EQ(before.lmc, hca_config.lmc);
        EXPECT_EQ(before.lag, hca_config.lag);
    }

    static std::string gid_bytes(unsigned dev, unsigned index)
    {
        uint8_t gid[16];

        hca_dev_gid(dev, index, gid);
        return std::string((const char*)gid, sizeof(gid));
    }

    struct hca_config m_config;
};

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
    for (const char *value : {"", "0", "17", "-1", "+1", " 1", "1 ", "1x",
                              "0x1", "one", "4294967297",
                              "99999999999999999999"}) {
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
    setenv("SOFTHCA_LINK", "roce", 1);
    expect_refused("SOFTHCA_LMC", "1");
}

/* A port that is down keeps its names, but nothing passes it. */
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
                EXPECT_EQ((dev != 1) && (from != 1),
                          hca_path_leads(&path, from, dev))
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
    EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr().find(
            "SOFTHCA_LINK=roce, SOFTHCA_LMC=0: mlx5_0 of node 1 is ib with "
            "LMC 0"));

    hca_config.link = HCA_LINK_IB;
    hca_config.lmc  = 3;
    testing::internal::CaptureStderr();
    EXPECT_EQ(-EINVAL, hca_dev_register());
    EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr().find(
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
        macs.insert(std::string((const char*)mac, sizeof(mac)));
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

        EXPECT_EQ((int)dev, hca_dev_by_lid(hca_dev_lid(dev)));
        EXPECT_GT(0xc000, hca_dev_lid(dev)); /* multicast from there on */
        EXPECT_EQ(HCA_GID_IB, hca_dev_gid(dev, 0, gid));
        EXPECT_EQ((int)dev, hca_dev_by_gid(gid));
        EXPECT_EQ(0, memcmp(gid + 8, &guid, sizeof(guid)));
        gids.insert(gid_bytes(dev, 0));
        EXPECT_EQ(HCA_GID_NONE, hca_dev_gid(dev, 1, gid));
        EXPECT_EQ(std::string(16, '\0'), gid_bytes(dev, 1));
    }
    EXPECT_EQ(HCA_MAX_DEVS, gids.size());
    EXPECT_EQ(-1, hca_dev_by_lid(0));
    EXPECT_EQ(-1, hca_dev_by_lid(HCA_MAX_DEVS + 1));
    EXPECT_EQ(-1, hca_dev_by_lid(0xffff));
}

/* Ports with and without LMC in one subnet: no LID is of two. */
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
            EXPECT_EQ((int)dev, hca_dev_by_lid(lid));
        }
    }
    EXPECT_EQ(count, lids.size());
    for (unsigned lid = 1; lid < 0x10000; lid++) {
        EXPECT_EQ(lids.count(lid) != 0, hca_dev_by_lid(lid) >= 0) << lid;
    }
}

TEST_F(hca_dev, roce_numbers_and_back)
{
    static const enum hca_gid_type types[HCA_GID_TABLE_LEN] = {
        HCA_GID_ROCE_V1, HCA_GID_ROCE_V2, HCA_GID_ROCE_V1, HCA_GID_ROCE_V2
    };
    std::set<std::string> gids;
    uint8_t gid[16];

    set_links(HCA_LINK_ROCE);
    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        EXPECT_EQ(0, hca_dev_lid(dev));
        EXPECT_EQ(-1, hca_dev_by_lid(dev + 1));
        for (unsigned i = 0; i < HCA_GID_TABLE_LEN; i++) {
            EXPECT_EQ(types[i], hca_dev_gid(dev, i, gid));
            EXPECT_EQ((int)dev, hca_dev_by_gid(gid));
            gids.insert(gid_bytes(dev, i));
        }
        EXPECT_EQ(HCA_GID_NONE, hca_dev_gid(dev, HCA_GID_TABLE_LEN, gid));
    }
    EXPECT_EQ(2 * HCA_MAX_DEVS, gids.size()); /* v1 and v2 share theirs */
}

TEST_F(hca_dev, unknown_gid)
{
    uint8_t gid[16];

    set_links(HCA_LINK_IB);
    hca_dev_gid(7, 0, gid);
    for (unsigned i = 0; i < 15; i++) {
        gid[i] ^= 0x40;
        EXPECT_EQ(-1, hca_dev_by_gid(gid)) << "byte " << i;
        gid[i] ^= 0x40;
    }

    /* what device 7 would have on the other link layer */
    hca_fabric->dev_link[7] = HCA_LINK_ROCE;
    EXPECT_EQ(-1, hca_dev_by_gid(gid));
    hca_dev_gid(7, 2, gid);
    hca_fabric->dev_link[7] = HCA_LINK_IB;
    EXPECT_EQ(-1, hca_dev_by_gid(gid));

    /* nobody has it */
    hca_dev_gid(7, 0, gid);
    hca_fabric->dev_link[7] = HCA_LINK_NONE;
    EXPECT_EQ(-1, hca_dev_by_gid(gid));
    EXPECT_EQ(-1, hca_dev_by_lid(8));

    memset(gid, 0, sizeof(gid));
    EXPECT_EQ(-1, hca_dev_by_gid(gid));
    memset(gid, 0xff, sizeof(gid));
    EXPECT_EQ(-1, hca_dev_by_gid(gid));
}

class hca_sysfs : public hca_dev {
protected:
    void SetUp() override
    {
        char dir[] = "/tmp/hca_sysfs.XXXXXX";

        hca_dev::SetUp();
        ASSERT_NE(nullptr, mkdtemp(dir));
        m_dir = dir;
    }

    void TearDown() override
    {
        EXPECT_EQ(0, system(("rm -rf " + m_dir).c_str()));
        hca_dev::TearDown();
    }

    void create(unsigned num_devs, unsigned node, enum hca_link link)
    {
        hca_config.num_devs = num_devs;
        hca_config.node     = node;
        hca_config.link     = link;
        ASSERT_EQ(0, hca_dev_register());
        ASSERT_EQ(0, hca_sysfs_create(m_dir.c_str()));
    }

    std::string path(const std::string &name) const
    {
        return m_dir + "/sysfs/class/" + name;
    }

    /* The one line of a file; "-" if there is none. */
    std::string read(const std::string &name) const
    {
        std::ifstream file(path(name));
        std::string line, rest;

        if (!std::getline(file, line)) {
            return "-";
        }
        EXPECT_FALSE(std::getline(file, rest)) << name;
        return line;
    }

    std::string m_dir;
};

TEST_F(hca_sysfs, infiniband)
{
    create(2, 1, HCA_LINK_IB);
    const std::string port = "infiniband/mlx5_1/ports/1/";

    EXPECT_EQ("6", read("infiniband_verbs/abi_version"));
    EXPECT_EQ("0264:6378:0000:0011", read("infiniband/mlx5_1/node_guid"));
    EXPECT_EQ("1: CA", read("infiniband/mlx5_1/node_type"));
    EXPECT_EQ("0x15b3", read("infiniband/mlx5_1/device/vendor"));
    EXPECT_EQ("InfiniBand", read(port + "link_layer"));
    EXPECT_EQ("0x12", read(port + "lid"));
    EXPECT_EQ("4: ACTIVE", read(port + "state"));
    EXPECT_EQ("0xffff", read(port + "pkeys/0"));
    EXPECT_EQ("fe80:0000:0000:0000:0264:6378:0000:0011",
              read(port + "gids/0"));
    EXPECT_EQ("0000:0000:0000:0000:0000:0000:0000:0000",
              read(port + "gids/1"));
    EXPECT_EQ("IB/RoCE v1", read(port + "gid_attrs/types/0"));
    EXPECT_EQ("-", read(port + "gid_attrs/types/1"));
    EXPECT_EQ("-", read(port + "gid_attrs/ndevs/0"));
}

TEST_F(hca_sysfs, roce)
{
    create(1, 2, HCA_LINK_ROCE);
    const std::string port = "infiniband/mlx5_0/ports/1/";

    EXPECT_EQ("Ethernet", read(port + "link_layer"));
    EXPECT_EQ("0x0", read(port + "lid"));
    EXPECT_EQ("fe80:0000:0000:0000:0064:63ff:fe78:0020",
              read(port + "gids/1"));
    EXPECT_EQ("0000:0000:0000:0000:0000:ffff:c612:0201",
              read(port + "gids/3"));
    EXPECT_EQ("IB/RoCE v1", read(port + "gid_attrs/types/0"));
    EXPECT_EQ("RoCE v2", read(port + "gid_attrs/types/1"));
    EXPECT_EQ("lo", read(port + "gid_attrs/ndevs/3"));
}

/* UCX strips two components from where the class entry leads to and expects a
 * PCI device; Open MPI takes the last one of the driver link. */
TEST_F(hca_sysfs, links)
{
    char real[PATH_MAX], driver[PATH_MAX] = {};
    std::string pci;

    create(1, 0, HCA_LINK_IB);
    ASSERT_NE(nullptr, realpath(path("infiniband/mlx5_0").c_str(), real));
    pci = std::string(real).substr(0, std::string(real).rfind("/infiniband/"));
    EXPECT_EQ("dc00:00:00.0", pci.substr(pci.rfind('/') + 1));
    EXPECT_EQ(0, access((pci + "/device").c_str(), R_OK));

    ASSERT_LT(0, readlink(path("infiniband/mlx5_0/device/driver").c_str(),
                          driver, sizeof(driver) - 1));
    EXPECT_STREQ("mlx5_core", strrchr(driver, '/') + 1);

    /* the way that libibverbs takes with netlink */
    EXPECT_EQ("mlx5_0",
              read("infiniband/mlx5_0/device/infiniband_verbs/uverbs0/ibdev"));
    ASSERT_NE(nullptr, realpath(path("infiniband_verbs/uverbs0/device").c_str(),
                                real));
    EXPECT_EQ(pci, real);
}

TEST_F(hca_sysfs, nodes_are_the_character_device_of_dev)
{
    struct stat st;
    char dev[32];

    create(3, 0, HCA_LINK_IB);
    for (unsigned minor = 0; minor < 3; minor++) {
        std::string name = "uverbs" + std::to_string(minor);

        ASSERT_EQ(0, stat((m_dir + "/dev/infiniband/" + name).c_str(), &st));
        EXPECT_TRUE(S_ISCHR(st.st_mode));
        snprintf(dev, sizeof(dev), "%u:%u", (unsigned)(st.st_rdev >> 8),
                 (unsigned)(st.st_rdev & 0xff));
        EXPECT_EQ(dev, read("infiniband_verbs/" + name + "/dev"));
        EXPECT_EQ("mlx5_" + std::to_string(hca_sysfs_dev(minor)),
                  read("infiniband_verbs/" + name + "/ibdev"));
    }
    EXPECT_EQ(-1, hca_sysfs_dev(3));
}

TEST_F(hca_sysfs, readdir_lists_devices_in_order)
{
    std::vector<std::string> found, expected;
    struct dirent *entry;

    create(16, 0, HCA_LINK_IB);
    DIR *dir = opendir(path("infiniband_verbs").c_str());
    ASSERT_NE(nullptr, dir);
    while ((entry = readdir(dir)) != nullptr) {
        if (!strncmp(entry->d_name, "uverbs", 6)) {
            found.push_back(read(std::string("infiniband_verbs/") +
                                 entry->d_name + "/ibdev"));
            expected.push_back("mlx5_" + std::to_string(expected.size()));
        }
    }
    closedir(dir);
    EXPECT_EQ(16u, found.size());
    EXPECT_EQ(expected, found);
}

TEST_F(hca_sysfs, error_names_the_path)
{
    std::string line;

    testing::internal::CaptureStderr();
    EXPECT_EQ(-ENOENT, hca_sysfs_create((m_dir + "/none").c_str()));
    line = testing::internal::GetCapturedStderr();
    EXPECT_NE(std::string::npos, line.find(m_dir + "/none")) << line;
    EXPECT_NE(std::string::npos, line.find("SOFTHCA_DIR")) << line;
}
