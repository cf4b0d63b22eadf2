/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The free memory of a cgroup, v1 and v2, which limits what dcx_selftest pins:
 * from files made by the test */
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

extern "C" {
#include "tools/selftest_memory.h"
}

namespace {

namespace fs = std::filesystem;

class selftest_memory : public testing::Test {
protected:
    selftest_memory()
    {
        char dir[] = "/tmp/selftest_memory.XXXXXX";

        m_dir = mkdtemp(dir);
    }

    ~selftest_memory() { fs::remove_all(m_dir); }

    void file(const char *name, const std::string &text)
    {
        fs::create_directories((m_dir / name).parent_path());
        std::ofstream(m_dir / name) << text << "\n";
    }

    size_t free_by(const std::string &list)
    {
        file("list", list);
        return selftest_memory_cgroup((m_dir / "list").c_str(), m_dir.c_str());
    }

    fs::path m_dir;
};

TEST_F(selftest_memory, unlimited)
{
    EXPECT_EQ(SIZE_MAX, selftest_memory_cgroup("/no/such/file", "/no/root"));
    EXPECT_EQ(SIZE_MAX, free_by("0::/job"));
    file("job/memory.max", "max");
    file("job/memory.current", "4096");
    EXPECT_EQ(SIZE_MAX, free_by("nonsense\n0::/job"));
    EXPECT_LT(0u, selftest_memory_free());
}

TEST_F(selftest_memory, v2)
{
    file("memory.max", "1000");
    EXPECT_EQ(1000u, free_by("0::/")); /* in a container */
    file("job/memory.max", "800");
    file("job/memory.current", "500");
    EXPECT_EQ(300u, free_by("0::/job/step"));
    file("job/memory.stat", "anon 100\ninactive_file 150\nslab 7");
    EXPECT_EQ(450u, free_by("0::/job/step"));
    file("job/step/memory.max", "90");
    file("job/step/memory.current", "95");
    EXPECT_EQ(0u, free_by("0::/job/step"));
}

TEST_F(selftest_memory, v1)
{
    file("memory/memory.limit_in_bytes", "700");
    file("memory/job/memory.limit_in_bytes", "9223372036854771712");
    file("memory/job/memory.usage_in_bytes", "5");
    EXPECT_EQ(700u, free_by("5:cpu,cpuacct:/\n4:memory:/job\n0::/"));
    file("memory/memory.usage_in_bytes", "400");
    file("memory/memory.stat", "inactive_file 1\ntotal_inactive_file 50");
    EXPECT_EQ(350u, free_by("4:memory:/job"));
    EXPECT_EQ(SIZE_MAX, free_by("5:cpu,cpuacct:/job"));
}

} /* namespace */
