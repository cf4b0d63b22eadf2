/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The log file that SOFTHCA_LOG_FILE names. Part of the program of
 * test_hca_dev.cc.
 */
extern "C" {
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
}

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <unistd.h>

namespace {

class hca_log_test : public testing::Test {
protected:
    void SetUp() override
    {
        char dir[] = "/tmp/hca_log.XXXXXX";

        ASSERT_NE(nullptr, mkdtemp(dir));
        m_dir = dir;
    }

    void TearDown() override { std::filesystem::remove_all(m_dir); }

    std::string path(const char *name) const { return m_dir + "/" + name; }

    void init(const char *level) const
    {
        setenv("SOFTHCA_LOG", level, 1);
        setenv("SOFTHCA_LOG_FILE", path("log").c_str(), 1);
        hca_log_init();
    }

    std::string text(const char *name) const
    {
        std::ifstream in(path(name));

        return std::string(std::istreambuf_iterator<char>(in), {});
    }

    std::string m_dir;
};

TEST_F(hca_log_test, wrong_level_is_logged_to_the_file)
{
    EXPECT_EXIT(
        {
            init("loud");
            exit(text("log").find("SOFTHCA_LOG=loud") == std::string::npos);
        },
        testing::ExitedWithCode(0), "");
}

/* The program may replace the descriptor of the file by one of its own. */
TEST_F(hca_log_test, replaced_descriptor_gets_no_lines)
{
    EXPECT_EXIT(
        {
            unsigned fd = 0;

            init("warn");
            hca_warn("first");
            if (!hca_fd_next(0, 1000, &fd) ||
                (freopen(path("own").c_str(), "w", stdin) == NULL) ||
                (dup2(STDIN_FILENO, fd) < 0)) {
                exit(2);
            }
            hca_fd_unmark(fd); /* as preload_fd.c does */
            hca_warn("second");
            exit((text("log").find("first") == std::string::npos) ||
                 (text("own") != ""));
        },
        testing::ExitedWithCode(0), "warn +second");
}

} /* namespace */
