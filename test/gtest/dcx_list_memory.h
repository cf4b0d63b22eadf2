/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of more than 1 GiB, which is the longest WQE. All of it is the same
 * 2 MiB, except for the pages around the end of the first GiB.
 */
#ifndef DCX_TEST_DCX_LIST_MEMORY_H
#define DCX_TEST_DCX_LIST_MEMORY_H

#include "dcx_loop.h"

#include <sys/mman.h>
#include <unistd.h>

class dcx_list_memory {
public:
    enum : size_t {
        WINDOW = 2ul << 20,
        EDGE   = 1ul << 30,
        NEAR   = 1ul << 16,
        SIZE   = EDGE + WINDOW
    };

    dcx_list_memory()
    {
        int fd = memfd_create("list", 0);

        HCA_CHECK_CALL((fd >= 0) && (ftruncate(fd, WINDOW) == 0));
        m_start = (uint8_t *)map(NULL, SIZE, -1);
        for (size_t at = 0; at < SIZE; at += WINDOW) {
            map(m_start + at, WINDOW, fd);
        }
        map(edge() - NEAR, 2 * NEAR, -1);
        close(fd);
    }

    ~dcx_list_memory() { munmap(m_start, SIZE); }

    dcx_list_memory(const dcx_list_memory &) = delete;

    uint8_t *start() const { return m_start; }

    uint8_t *edge() const { return m_start + EDGE; }

    /* Writes other bytes to each place around the edge. */
    void fill()
    {
        for (size_t i = 0; i < NEAR; i++) {
            edge()[i]      = i * 7;
            edge()[-1 - i] = i * 13;
        }
    }

    /* Returns the bytes around the edge. */
    std::vector<uint8_t> bytes() const
    {
        return std::vector<uint8_t>(edge() - NEAR, edge() + NEAR);
    }

private:
    static void *map(void *at, size_t length, int fd)
    {
        void *mem = mmap(at, length, PROT_READ | PROT_WRITE,
                         (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) |
                             (at != NULL ? MAP_FIXED : 0),
                         fd, 0);

        HCA_CHECK_CALL(mem != MAP_FAILED);
        return mem;
    }

    uint8_t *m_start;
};

#endif
