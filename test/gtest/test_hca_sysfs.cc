/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The sysfs tree that shows the devices (hca_sysfs.c), in a folder of the test
 */
#include "test_hca_dev.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <vector>

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

    /* Returns the only line of a file, "-" if there is none. */
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
    EXPECT_EQ("fe80:0000:0000:0000:0264:6378:0000:0011", read(port + "gids/0"));
    EXPECT_EQ("0000:0000:0000:0000:0000:0000:0000:0000", read(port + "gids/1"));
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
    EXPECT_EQ("fe80:0000:0000:0000:0064:63ff:fe78:0020", read(port + "gids/1"));
    EXPECT_EQ("0000:0000:0000:0000:0000:ffff:c612:0201", read(port + "gids/3"));
    EXPECT_EQ("IB/RoCE v1", read(port + "gid_attrs/types/0"));
    EXPECT_EQ("RoCE v2", read(port + "gid_attrs/types/1"));
    EXPECT_EQ("lo", read(port + "gid_attrs/ndevs/3"));
}

/* UCX strips two components from the target of the class entry and expects a
 * PCI device; Open MPI uses the last component of the driver link. */
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

    /* libibverbs uses this path with netlink */
    EXPECT_EQ("mlx5_0",
              read("infiniband/mlx5_0/device/infiniband_verbs/uverbs0/ibdev"));
    ASSERT_NE(nullptr,
              realpath(path("infiniband_verbs/uverbs0/device").c_str(), real));
    EXPECT_EQ(pci, real);
}

/* A node is a link to /dev/zero. The preloaded stat() returns the number in
 * sysfs instead (verbs_two in test_verbs_objects.cc). */
TEST_F(hca_sysfs, nodes_are_character_devices)
{
    struct stat st;

    create(3, 0, HCA_LINK_IB);
    for (unsigned minor = 0; minor < 3; minor++) {
        std::string name = "uverbs" + std::to_string(minor);

        ASSERT_EQ(0, stat((m_dir + "/dev/infiniband/" + name).c_str(), &st));
        EXPECT_TRUE(S_ISCHR(st.st_mode));
        EXPECT_EQ("231:" + std::to_string(192 + minor),
                  read("infiniband_verbs/" + name + "/dev"));
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
