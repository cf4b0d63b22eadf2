/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Uses up the file descriptors of this process for the time of a test. */
#ifndef DCX_TEST_NO_DESCRIPTORS_H
#define DCX_TEST_NO_DESCRIPTORS_H

#include <gtest/gtest.h>

#include <cerrno>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

/* Leaves this process only `left` free descriptors, of a limit of 128; the
 * destructor frees the others and restores the limit. */
class no_descriptors {
public:
    explicit no_descriptors(unsigned left)
    {
        struct rlimit limit;

        getrlimit(RLIMIT_NOFILE, &m_limit);
        limit          = m_limit;
        limit.rlim_cur = 128;
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int fd; (fd = dup(STDIN_FILENO)) >= 0;) {
            m_fds.push_back(fd);
        }
        EXPECT_EQ(EMFILE, errno);
        for (; left > 0; left--) {
            close(m_fds.back());
            m_fds.pop_back();
        }
    }

    ~no_descriptors()
    {
        for (int fd : m_fds) {
            close(fd);
        }
        setrlimit(RLIMIT_NOFILE, &m_limit);
    }

private:
    std::vector<int> m_fds;
    struct rlimit m_limit;
};

#endif
