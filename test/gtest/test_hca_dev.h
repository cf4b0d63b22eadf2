/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Fixture of tests of devices and of their files: a zeroed struct hca_fabric
 * without rings or processes, and none of softhca's variables set
 */
#ifndef DCX_TEST_HCA_DEV_H
#define DCX_TEST_HCA_DEV_H

#include <gtest/gtest.h>

#include <errno.h>
#include <stdlib.h>

#include <algorithm>
#include <string>

/* The headers are C: C++ sees their atomics as plain members of the same
 * layout. The guards of <stdatomic.h> keep it out. */
#define _STDATOMIC_H
#define __CLANG_STDATOMIC_H
#define _Atomic(_type) _type
extern "C" {
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_path.h"
#include "softhca/preload/hca_sysfs.h"
}

class hca_dev : public testing::Test {
protected:
    void SetUp() override
    {
        m_config   = hca_config;
        m_caps     = hca_caps;
        hca_fabric = (struct hca_fabric *)calloc(1, sizeof(*hca_fabric));
        ASSERT_NE(nullptr, hca_fabric);
        unset();
    }

    void TearDown() override
    {
        unset();
        free(hca_fabric);
        hca_fabric = nullptr;
        hca_config = m_config;
        hca_caps   = m_caps;
    }

    static void unset()
    {
        for (const char *name :
             {"DEVICES", "NODE", "LINK", "LMC", "LAG", "DOWN", "OTHER", "NAMES",
              "MODEL", "LACKS", "HAS", "LIMITS", "PKEYS", "DCI_STREAMS",
              "DCI_ERRORED", "MEMLOCK"}) {
            unsetenv((std::string("SOFTHCA_") + name).c_str());
        }
    }

    static void set_links(enum hca_link link)
    {
        for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
            hca_fabric->dev_link[dev] = link;
        }
    }

    /* Expects one line of log, which names the variable and its value, and an
     * unchanged configuration. */
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
        return std::string((const char *)gid, sizeof(gid));
    }

    struct hca_config m_config;
    decltype(hca_caps) m_caps;
};

#endif
