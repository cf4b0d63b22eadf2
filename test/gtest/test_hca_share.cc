/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Registered memory that peers map (hca_share.h), by an owner and a peer. What
 * may go wrong with it, and the test for each:
 *
 * 1. bytes of memory that was touched before are lost: touched_memory_stays
 * 2. system calls fail on memory beside a region: read_beside_a_region
 * 3. a forked child sees later stores: forked_child_has_a_copy
 * 4. discarded memory keeps its bytes: discarded_memory_is_zero
 * 5. memory that is extended grows over other regions: extended_memory_is_new
 * 6. advice about memory is lost: advice_stays
 * 7. a process runs out of mappings: many_regions_take_few_mappings
 * 8. pages that a queue has taken are written elsewhere: queue_in_a_region
 * 9. a late copy reaches memory that is another's by now: late_copy
 */
#include "deny_copies.h"
#include "test_hca_fabric.h"
#include "../times.h"

extern "C" {
#include "softhca/base/hca_maps.h"
#include "softhca/base/hca_fd.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/fabric/hca_share.h"
#include "softhca/fabric/hca_share_map.h"
#include "softhca/fabric/hca_umem.h"
}

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <thread>

namespace {

constexpr size_t PAGE = 4096;

/* One end of a socket, by which owner and peer exchange numbers */
class wire {
public:
    explicit wire(int fd) : m_fd(fd) {}

    void say(uint64_t value = 0) const
    {
        EXPECT_EQ((ssize_t)sizeof(value), write(m_fd, &value, sizeof(value)));
    }

    uint64_t hear() const
    {
        uint64_t value = 0;

        EXPECT_EQ((ssize_t)sizeof(value), read(m_fd, &value, sizeof(value)));
        return value;
    }

    /* Returns true if there is something to hear within @ms. */
    bool hears(int ms) const
    {
        struct pollfd pollfd = {m_fd, POLLIN, 0};

        return poll(&pollfd, 1, ms) == 1;
    }

    void meet() const
    {
        say();
        hear();
    }

private:
    int m_fd;
};

char *map_pages(size_t pages)
{
    void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EXPECT_NE(MAP_FAILED, mem);
    return (char *)mem;
}

uint64_t share(const void *mem, size_t length, bool writes = true)
{
    return hca_share_begin((uintptr_t)mem, length, writes);
}

/* Maps pages and shares them untouched. */
char *map_shared(size_t pages, uint64_t *id = nullptr)
{
    char *mem       = map_pages(pages);
    uint64_t handle = share(mem, pages * PAGE);

    EXPECT_NE(0u, handle);
    if (id != nullptr) {
        *id = handle;
    }
    return mem;
}

bool is_zero(const char *mem, size_t length)
{
    return std::string(mem, length) == std::string(length, '\0');
}

/* Memory of the owner, as the peer accesses it. near() returns the place where
 * the peer has mapped it, or NULL. */
class far_memory {
public:
    explicit far_memory(const wire &w) :
        m_owner{(unsigned)w.hear(), (pid_t)w.hear()}, addr(w.hear())
    {
    }

    char *near(size_t offset, size_t length, bool writes = true) const
    {
        return (char *)hca_mem_near(m_owner, (void *)(addr + offset), length,
                                    writes);
    }

    int put(size_t offset, const std::string &data) const
    {
        struct iovec local  = {(void *)data.data(), data.size()};
        struct iovec remote = {(void *)(addr + offset), data.size()};

        return hca_mem_write(m_owner, &local, 1, &remote, 1);
    }

    std::string get(size_t offset, size_t length) const
    {
        std::string data(length, '?');
        struct iovec local  = {&data[0], length};
        struct iovec remote = {(void *)(addr + offset), length};

        EXPECT_EQ(0, hca_mem_read(m_owner, &local, 1, &remote, 1));
        return data;
    }

    struct hca_owner m_owner;
    uintptr_t addr;
};

void tell(const wire &w, const void *mem)
{
    w.say(hca_self);
    w.say(getpid());
    w.say((uintptr_t)mem);
}

class hca_share_test : public hca_fabric_test {
protected:
    using body = std::function<void(const wire &)>;

    /* Runs an owner and a peer, both attached, in processes of their own. */
    static void with_peer(const body &owner, const body &peer)
    {
        run([&] {
            int fds[2];

            ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
            pid_t pid = spawn([&] {
                close(fds[1]);
                attach();
                owner(wire(fds[0]));
                hca_fabric_detach();
            });
            close(fds[0]);
            attach();
            ASSERT_EQ(0, hca_trap_install());
            peer(wire(fds[1]));
            close(fds[1]);
            expect_end(pid);
            hca_fabric_detach();
        });
    }

    /* For tests that need no peer. */
    static void alone(const std::function<void()> &owner)
    {
        run([&] {
            attach();
            owner();
            hca_fabric_detach();
        });
    }

    static void expect_end(pid_t pid, int expected = 0)
    {
        int status = -1;

        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_EQ(expected, status);
    }
};

/* --- access --------------------------------------------------------------- */

TEST_F(hca_share_test, peer_maps_memory_that_was_untouched)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(8);

            strcpy(mem + 100, "owner");
            tell(w, mem);
            w.hear();
            EXPECT_STREQ("peer", mem + 5000);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);
            char *near = far.near(0, 8 * PAGE);

            ASSERT_NE(nullptr, near);
            EXPECT_STREQ("owner", near + 100);
            EXPECT_EQ("owner", far.get(100, 5));
            EXPECT_EQ(0, far.put(5000, std::string("peer", 5)));
            EXPECT_STREQ("peer", near + 5000);
            EXPECT_EQ(nullptr, far.near(0, 8 * PAGE + 1));
            w.say();
            w.meet();
        });
}

/* The address is a guess: of an untouched page, at the end of the memory, of
 * none. */
TEST_F(hca_share_test, prefetch_of_any_address)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(8);

            strcpy(mem, "owner");
            tell(w, mem);
            w.meet();
            EXPECT_STREQ("owner", mem);
            EXPECT_TRUE(is_zero(mem + PAGE, 7 * PAGE));
        },
        [](const wire &w) {
            far_memory far(w);
            const uintptr_t guesses[] = {0,
                                         64,
                                         1ull << 63,
                                         UINTPTR_MAX,
                                         far.addr,
                                         far.addr + 3 * PAGE,
                                         far.addr + 8 * PAGE - 1,
                                         far.addr + 8 * PAGE};

            for (uintptr_t addr : guesses) {
                hca_mem_prefetch(far.m_owner, (void *)addr, 1);
                hca_mem_prefetch(far.m_owner, (void *)addr, 8 * PAGE);
                hca_mem_prefetch(far.m_owner, (void *)addr, SIZE_MAX);
            }
            EXPECT_EQ("owner", far.get(0, 5));
            w.meet();
        });
}

/* The first and the last page are only in part of the region. */
TEST_F(hca_share_test, piece_is_near_only_in_part)
{
    constexpr size_t SIZE = 40 * PAGE, FROM = 100, TO = SIZE - 200;

    with_peer(
        [](const wire &w) {
            char *mem = map_pages(40);

            ASSERT_NE(0u, share(mem + FROM, TO - FROM));
            memset(mem, 'o', SIZE);
            tell(w, mem);
            w.hear();
            EXPECT_EQ(std::string(FROM, 'o') + std::string(TO - FROM, 'p') +
                          std::string(SIZE - TO, 'o'),
                      std::string(mem, SIZE));
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_EQ(nullptr, far.near(FROM, TO - FROM));
            EXPECT_NE(nullptr, far.near(PAGE, SIZE - 2 * PAGE));
            EXPECT_EQ(std::string(TO - FROM, 'o'), far.get(FROM, TO - FROM));
            EXPECT_EQ(0, far.put(FROM, std::string(TO - FROM, 'p')));
            w.say();
            w.meet();
        });
}

TEST_F(hca_share_test, many_pieces_near_and_far)
{
    constexpr size_t SIZE = 64 * PAGE;

    with_peer(
        [](const wire &w) {
            char *mem = map_pages(64);

            memset(mem, 'a', PAGE);
            memset(mem + SIZE / 2, 'a', PAGE);
            ASSERT_NE(0u, share(mem + PAGE, SIZE / 2 - PAGE));
            memset(mem, 'a', SIZE);
            tell(w, mem);
            w.hear();
            for (size_t i = 0; i < SIZE; i++) {
                ASSERT_EQ((i % 1000 < 300) ? 'b' : 'a', mem[i]) << i;
            }
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);
            std::vector<struct iovec> remote;
            std::string data;

            for (size_t i = 0; i < SIZE; i += 1000) {
                size_t n = std::min((size_t)300, SIZE - i);

                remote.push_back({(void *)(far.addr + i), n});
                data.append(n, 'b');
            }
            struct iovec local = {&data[0], data.size()};
            EXPECT_EQ(0, hca_mem_write(far.m_owner, &local, 1, remote.data(),
                                       remote.size()));
            w.say();
            w.meet();
        });
}

TEST_F(hca_share_test, is_read_only_where_the_region_is)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_pages(4);
            uint64_t id;

            ASSERT_NE(0u, share(mem, 4 * PAGE, false));
            tell(w, mem);
            w.hear();
            id = share(mem, 4 * PAGE, true);
            EXPECT_NE(0u, id);
            w.say();
            w.hear();
            EXPECT_STREQ("w", mem);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);
            char *near = far.near(0, 64, false);

            ASSERT_NE(nullptr, near);
            EXPECT_EQ(nullptr, far.near(0, 64, true));
            EXPECT_EQ(-EFAULT, hca_trap_guard_memcpy(near, "x", 1));
            w.say();
            w.hear();
            EXPECT_NE(nullptr, far.near(0, 64, true));
            EXPECT_EQ(0, far.put(0, std::string("w", 2)));
            w.say();
            w.meet();
        });
}

/* A region that the program has no right to write to is refused. Peers get no
 * right from the attempt. */
TEST_F(hca_share_test, is_read_only_where_the_program_is)
{
    with_peer(
        [](const wire &w) {
            int fd = memfd_create("test", 0);
            void *mem;

            EXPECT_EQ(0, ftruncate(fd, 8 * PAGE));
            mem = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
            EXPECT_EQ(0u, share(mem, 8 * PAGE, true));
            EXPECT_NE(0u, share(mem, 8 * PAGE, false));
            EXPECT_EQ(0u, share(mem, 8 * PAGE, true));
            tell(w, mem);
            w.meet();
            close(fd);
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_NE(nullptr, far.near(0, 64, false));
            EXPECT_EQ(nullptr, far.near(0, 64, true));
            w.meet();
        });
}

TEST_F(hca_share_test, is_not_published_without_a_region)
{
    with_peer(
        [](const wire &w) {
            uint64_t id, again;
            char *mem = map_shared(8, &id);

            again = share(mem + PAGE, 4 * PAGE);
            EXPECT_EQ(id, again) << "the same run";
            tell(w, mem);
            w.hear();
            hca_share_end(id);
            w.say();
            w.hear();
            hca_share_end(again);
            w.say();
            w.hear();
            EXPECT_STREQ("far", mem);
            EXPECT_NE(0u, share(mem, 8 * PAGE)) << "touched, but shared before";
            w.say();
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_NE(nullptr, far.near(0, 8 * PAGE));
            w.say();
            w.hear();
            EXPECT_NE(nullptr, far.near(0, 8 * PAGE)) << "one region is left";
            w.say();
            w.hear();
            EXPECT_EQ(nullptr, far.near(0, 1));
            EXPECT_EQ(0, far.put(0, std::string("far", 4)));
            w.say();
            w.hear();
            EXPECT_NE(nullptr, far.near(0, 8 * PAGE));
            EXPECT_EQ("far", far.get(0, 3));
            w.meet();
        });
}

/* While the owner changes its table (odd seq), a peer cannot look up runs. */
TEST_F(hca_share_test, peer_waits_for_a_run_if_it_may_not_copy)
{
    with_peer(
        [](const wire &w) {
            struct hca_share *share = &hca_fabric->shares[hca_self];
            char *mem               = map_shared(8);
            char *touched           = map_pages(8);

            memset(touched, 't', 8 * PAGE);
            tell(w, mem);
            tell(w, touched);
            w.hear();
            share->seq++;
            w.say();
            time_quiet(QUIET_LOCK);
            EXPECT_EQ(0, mem[0]);
            share->seq++;
            w.hear();
            EXPECT_STREQ("late", mem);
            EXPECT_EQ('t', touched[0]);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w), touched(w);

            deny_copies(EPERM);
            w.meet();
            EXPECT_EQ(0, far.put(0, std::string("late", 5)));
            testing::internal::CaptureStderr();
            EXPECT_EQ(-EFAULT, touched.put(0, "x"));
            EXPECT_EQ(-EFAULT, touched.put(0, "x"));
            std::string text = testing::internal::GetCapturedStderr();
            EXPECT_EQ(1, std::count(text.begin(), text.end(), '\n')) << text;
            EXPECT_NE(std::string::npos, text.find("is not shared: seccomp "))
                << text;
            w.say();
            w.meet();
        });
}

TEST_F(hca_share_test, variable_switches_it_off)
{
    setenv("SOFTHCA_SHARE", "n", 1);
    alone([] { EXPECT_EQ(0u, share(map_pages(8), 8 * PAGE)); });
    unsetenv("SOFTHCA_SHARE");
}

/* --- the list at the head of this file ------------------------------------ */

/* 1 */
TEST_F(hca_share_test, touched_memory_stays)
{
    alone([] {
        for (size_t page = 1; page < 7; page++) {
            char *mem = map_pages(8);

            mem[page * PAGE + 7] = 'x';
            EXPECT_EQ(0u, share(mem, 8 * PAGE));
            EXPECT_EQ('x', mem[page * PAGE + 7]);
        }
        EXPECT_EQ(0u, share(map_pages(3), 3 * PAGE)) << "too short";
    });
}

/* A registration cache adds pages in which an allocator, or a neighbour, has
 * data: they stay private, and the rest is shared, as often as it is
 * registered. */
TEST_F(hca_share_test, page_at_either_end_is_touched)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_pages(8);
            uint64_t first, second;

            mem[7]            = 'f';
            mem[7 * PAGE + 7] = 'l';
            first             = share(mem, 8 * PAGE);
            second            = share(mem, 8 * PAGE);
            EXPECT_NE(0u, first);
            EXPECT_EQ(first, second);
            tell(w, mem);
            w.meet();
            EXPECT_EQ('f', mem[7]);
            EXPECT_EQ('l', mem[7 * PAGE + 7]);
            hca_share_end(first);
            w.meet();
            w.meet();
            hca_share_end(second);
            EXPECT_NE(0u, share(mem, 8 * PAGE));
            w.meet();
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            for (unsigned i = 0; i < 3; i++) {
                EXPECT_NE(nullptr, far.near(PAGE, 6 * PAGE));
                EXPECT_EQ(nullptr, far.near(0, 1));
                EXPECT_EQ(nullptr, far.near(7 * PAGE, 1));
                EXPECT_EQ('f', far.get(0, 8 * PAGE)[7]);
                w.meet();
                if (i < 2) {
                    w.meet(); /* the owner has changed its regions */
                }
            }
        });
}

/* Another thread stores at different times while the pages are checked and
 * replaced. */
TEST_F(hca_share_test, store_meanwhile_is_kept)
{
    alone([] {
        for (unsigned i = 1; i < 400; i++) {
            char *mem = map_pages(16);
            std::atomic<bool> goes{false};
            std::thread thread([&] {
                goes = true;
                std::atomic<unsigned> n{i * 1000};

                while (n-- > 0) {
                }
                for (size_t page = 0; page < 16; page++) {
                    mem[page * PAGE] = 1;
                }
            });

            while (!goes) {
            }
            hca_share_end(share(mem, 16 * PAGE));
            thread.join();
            for (size_t page = 0; page < 16; page++) {
                ASSERT_EQ(1, mem[page * PAGE]) << page;
            }
            munmap(mem, 16 * PAGE);
        }
    });
}

/* 2 */
TEST_F(hca_share_test, read_beside_a_region)
{
    alone([] {
        std::atomic<char *> current{map_pages(8)};
        std::atomic<bool> ends{false};
        int zero = open("/dev/zero", O_RDONLY);
        std::thread thread([&] {
            while (!ends) {
                char *mem = current;

                ASSERT_EQ(100, read(zero, mem, 100));
                ASSERT_EQ(100, read(zero, mem + 8 * PAGE - 100, 100));
            }
        });

        for (unsigned i = 0; (i < 500) && !HasFailure(); i++) {
            char *mem = map_pages(8);

            current = mem;
            sched_yield();
            EXPECT_NE(0u, share(mem + 100, 8 * PAGE - 200));
        }
        ends = true;
        thread.join();
        close(zero);
    });
}

/* 3 */
TEST_F(hca_share_test, forked_child_has_a_copy)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(64), *moved = map_shared(4);
            uint64_t retired;
            char *old = map_shared(4, &retired);
            int go[2];
            pid_t pid;

            hca_share_end(retired);
            strcpy(moved, "before");
            moved = (char *)mremap(moved, 4 * PAGE, 4 * PAGE,
                                   MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(4));
            strcpy(mem + 9 * PAGE, "before");
            strcpy(old, "before");
            tell(w, mem);
            ASSERT_EQ(0, pipe(go));
            pid = fork();
            if (pid == 0) {
                char byte;

                EXPECT_EQ(1, read(go[0], &byte, 1));
                EXPECT_STREQ("before", mem + 9 * PAGE);
                EXPECT_STREQ("before", old);
                EXPECT_STREQ("before", moved);
                EXPECT_TRUE(is_zero(mem, PAGE));
                strcpy(mem + PAGE, "child");
                strcpy(mem + 9 * PAGE, "child");
                _exit(HasFailure());
            }
            strcpy(mem + 9 * PAGE, "after");
            strcpy(old, "after");
            strcpy(moved, "after");
            w.say();
            w.hear();
            EXPECT_EQ(1, write(go[1], "", 1));
            expect_end(pid);
            EXPECT_STREQ("after", mem + 9 * PAGE);
            EXPECT_STREQ("peer", mem);
            EXPECT_TRUE(is_zero(mem + PAGE, PAGE));
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            w.hear();
            ASSERT_NE(nullptr, far.near(0, 64 * PAGE));
            EXPECT_EQ(0, far.put(0, std::string("peer", 5)));
            w.say();
            w.meet();
        });
}

/* 4 */
TEST_F(hca_share_test, discarded_memory_is_zero)
{
    alone([] {
        char *mem = map_shared(16);

        memset(mem, 'x', 16 * PAGE);
        EXPECT_FALSE(hca_share_discards(mem, PAGE, MADV_NORMAL));
        EXPECT_FALSE(hca_share_discards(map_pages(1), PAGE, MADV_DONTNEED));
        ASSERT_TRUE(hca_share_discards(mem + PAGE, 4 * PAGE, MADV_FREE));
        ASSERT_TRUE(hca_share_discards(mem + PAGE, 4 * PAGE, MADV_DONTNEED));
        EXPECT_EQ(0, madvise(mem + PAGE, 4 * PAGE, MADV_DONTNEED));
        hca_share_discard(mem + PAGE, 4 * PAGE);
        EXPECT_EQ('x', mem[PAGE - 1]);
        EXPECT_TRUE(is_zero(mem + PAGE, 4 * PAGE));
        EXPECT_EQ('x', mem[5 * PAGE]);

        /* a page that is discarded in part is all zero */
        hca_share_discard(mem + 8 * PAGE, PAGE + 1);
        EXPECT_TRUE(is_zero(mem + 8 * PAGE, 2 * PAGE));
        EXPECT_EQ('x', mem[10 * PAGE]);
    });
}

/* 5 */
TEST_F(hca_share_test, extended_memory_is_new)
{
    alone([] {
        char *a = map_shared(4), *b = map_shared(4), *c = map_shared(4);

        memset(a, 'a', 4 * PAGE);
        memset(b, 'b', 4 * PAGE);
        memset(c, 'c', 4 * PAGE);
        a = (char *)mremap(a, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
        ASSERT_NE(MAP_FAILED, (void *)a);
        EXPECT_EQ(std::string(4 * PAGE, 'a'), std::string(a, 4 * PAGE));
        EXPECT_TRUE(is_zero(a + 4 * PAGE, 60 * PAGE));
        memset(a, 'A', 64 * PAGE);
        EXPECT_EQ(std::string(4 * PAGE, 'b'), std::string(b, 4 * PAGE));
        EXPECT_EQ(std::string(4 * PAGE, 'c'), std::string(c, 4 * PAGE));
    });
}

/* 6 */
TEST_F(hca_share_test, advice_stays)
{
    alone([] {
        char *mem = map_pages(8), *locked = map_pages(8);
        pid_t pid;

        ASSERT_EQ(0, madvise(mem, 8 * PAGE, MADV_DONTFORK));
        ASSERT_NE(0u, share(mem, 8 * PAGE));
        pid = fork();
        if (pid == 0) {
            unsigned char pages[8];

            EXPECT_EQ(-1, mincore(mem, 8 * PAGE, pages)) << "it has the pages";
            _exit(HasFailure());
        }
        expect_end(pid);
        if (mlock2(locked, 8 * PAGE, MLOCK_ONFAULT) == 0) {
            EXPECT_EQ(0u, share(locked, 8 * PAGE));
        }
    });
}

/* The NUMA policy of the memory stays, too. */
TEST_F(hca_share_test, policy_stays)
{
    const unsigned long node = 1;
    char *probe              = map_pages(1);

    if (syscall(SYS_mbind, probe, PAGE, MPOL_BIND, &node, 64ul, 0ul) != 0) {
        GTEST_SKIP() << "mbind(): " << strerror(errno);
    }
    alone([&] {
        char *mem               = map_pages(8);
        unsigned long nodes[16] = {};
        int mode                = MPOL_DEFAULT;

        ASSERT_EQ(
            0, syscall(SYS_mbind, mem, 8 * PAGE, MPOL_BIND, &node, 64ul, 0ul));
        ASSERT_NE(0u, share(mem, 8 * PAGE));
        EXPECT_EQ(0, syscall(SYS_get_mempolicy, &mode, nodes, 1024ul,
                             mem + PAGE, (unsigned long)MPOL_F_ADDR));
        EXPECT_EQ(MPOL_BIND, mode);
        EXPECT_EQ(node, nodes[0]);
    });
}

static unsigned num_mappings(const char *name)
{
    struct count {
        const char *name;
        unsigned count;
    } count = {name, 0};

    hca_maps_walk(
        [](const struct hca_vma *vma, void *arg) {
            struct count *c = (struct count *)arg;

            c->count += strstr(vma->line, c->name) != NULL;
        },
        &count);
    return count.count;
}

/* 7 */
TEST_F(hca_share_test, many_regions_take_few_mappings)
{
    alone([] {
        const unsigned regions = 5000;
        char *mem              = map_pages(regions * 6);
        unsigned num           = 0;

        for (unsigned i = 0; i < regions; i++) {
            num += share(mem + i * 6 * PAGE, 5 * PAGE) != 0;
        }
        EXPECT_EQ(HCA_SHARE_RUNS, num);
        EXPECT_EQ(HCA_SHARE_RUNS, num_mappings("softhca-share"));
    });
}

/* Retired windows that are unmapped make room for others, and their memory is
 * free again. */
TEST_F(hca_share_test, unmapped_windows_are_forgotten)
{
    alone([] {
        for (unsigned i = 0; i < 2500; i++) {
            uint64_t id;
            char *mem = map_shared(5, &id);

            ASSERT_NE(0u, id) << i;
            mem[0] = 1;
            hca_share_end(id);
            munmap(mem, 5 * PAGE);
        }
        for (unsigned i = 0; i < 64; i++) {
            uint64_t id;
            char *mem = map_shared(2048, &id);
            struct stat st;

            memset(mem, 1, 2048 * PAGE);
            hca_share_end(id);
            munmap(mem, 2048 * PAGE);
            for (int fd = 3; fd < 64; fd++) {
                char path[64], name[64] = "";

                snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                if ((readlink(path, name, sizeof(name) - 1) > 0) &&
                    (strstr(name, "softhca-share") != NULL) &&
                    (fstat(fd, &st) == 0)) {
                    ASSERT_LT(st.st_blocks * 512, 100ll << 20);
                }
            }
        }
    });
}

/* The process has no free descriptor to read its mappings with. */
TEST_F(hca_share_test, windows_without_descriptors)
{
    alone([] {
        constexpr size_t PAGES = 20480; /* more than is kept unmapped */
        uint64_t id;
        char *mem = map_shared(PAGES, &id);
        struct rlimit before, none;

        mem[0]    = 'f';
        mem[PAGE] = 'x';
        getrlimit(RLIMIT_NOFILE, &before);
        none          = before;
        none.rlim_cur = 0;
        setrlimit(RLIMIT_NOFILE, &none);
        hca_share_end(id);
        EXPECT_TRUE(hca_share_discards(mem + PAGE, PAGE, MADV_DONTNEED));
        hca_share_discard(mem + PAGE, PAGE);
        setrlimit(RLIMIT_NOFILE, &before);
        EXPECT_EQ('f', mem[0]);
        EXPECT_EQ(0, mem[PAGE]);
    });
}

/* The program's file at the number of the device's is neither emptied nor
 * mapped. */
TEST_F(hca_share_test, descriptor_that_the_program_has_replaced)
{
    alone([] {
        uint64_t id;
        char *mem = map_shared(8, &id), text[4] = "";
        int file = memfd_create("own", 0), last;

        mem[0] = 'm';
        ASSERT_EQ(3, write(file, "own", 3));
        for (last = 3; last < 64; last++) {
            char path[64], name[64] = "";

            snprintf(path, sizeof(path), "/proc/self/fd/%d", last);
            if ((readlink(path, name, sizeof(name) - 1) > 0) &&
                (strstr(name, "softhca-share") != NULL)) {
                break;
            }
        }
        ASSERT_LT(last, 64);
        ASSERT_EQ(last, dup2(file, last));
        hca_fd_unmark(last); /* as preload_fd.c does */

        hca_share_discard(mem, 8 * PAGE);
        hca_share_end(id);
        munmap(mem, 8 * PAGE);
        EXPECT_EQ(0u, share(map_pages(8), 8 * PAGE));
        EXPECT_EQ(3, pread(last, text, 3, 0));
        EXPECT_STREQ("own", text);
    });
}

/* 8 */
TEST_F(hca_share_test, queue_in_a_region)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(8);
            struct hca_umem umem;

            strcpy(mem, "owner");
            tell(w, mem);
            w.hear();
            ASSERT_EQ(0, hca_umem_share(&umem, (uintptr_t)mem + 100, 64, true));
            EXPECT_STREQ("owner", mem);
            w.say();
            w.hear();
            EXPECT_STREQ("peer", mem);
            EXPECT_EQ(0, hca_share_begin((uintptr_t)mem, 8 * PAGE, true));
            hca_umem_unshare(&umem);
            EXPECT_STREQ("peer", mem);
            w.say();
            w.hear();
            EXPECT_STREQ("again", mem);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_NE(nullptr, far.near(0, 64));
            w.say();
            w.hear();
            EXPECT_EQ(0, far.put(0, std::string("peer", 5)));
            w.say();
            w.hear();
            EXPECT_EQ(0, far.put(0, std::string("again", 6)));
            w.say();
            w.meet();
        });
}

/* A queue takes pages in the middle of an atomic: its result is not lost. */
TEST_F(hca_share_test, queue_waits_for_an_atomic)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(8);
            struct hca_umem umem;

            tell(w, mem);
            w.hear();
            ASSERT_EQ(0, hca_umem_share(&umem, (uintptr_t)mem, 64, true));
            w.say();
            w.hear();
            EXPECT_STREQ("atomic", mem);
            hca_umem_unshare(&umem);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);
            char *near = far.near(0, 64);

            ASSERT_NE(nullptr, near);
            hca_mutex_lock(&hca_fabric->atomic_locks[7]);
            w.say();
            ASSERT_TRUE(
                hca_eventually([&] { return far.near(0, 64) == nullptr; }));
            EXPECT_FALSE(w.hears(100)) << "pages were taken";
            strcpy(near, "atomic");
            hca_mutex_unlock(&hca_fabric->atomic_locks[7]);
            w.hear();
            w.say();
            w.meet();
        });
}

/* A peer is stopped in the middle of an atomic: a queue that takes pages, and
 * fork(), wait for it only for a limited time. */
TEST_F(hca_share_test, fork_beside_a_stopped_atomic)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(8);
            pid_t peer;
            int status;

            tell(w, mem);
            peer = w.hear();
            ASSERT_LT(0, peer) << "its group, or all processes";
            kill(peer, SIGSTOP);
            std::thread thread([mem] {
                struct hca_umem umem;

                ASSERT_EQ(0, hca_umem_share(&umem, (uintptr_t)mem, 64, true));
                hca_umem_unshare(&umem);
            });
            time_quiet(QUIET_LOCK);
            pid_t pid = fork();
            if (pid == 0) {
                _exit(0);
            }
            EXPECT_EQ(pid, waitpid(pid, &status, 0));
            thread.join();
            kill(peer, SIGCONT);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            ASSERT_NE(nullptr, far.near(0, 64));
            hca_mutex_lock(&hca_fabric->atomic_locks[7]);
            w.say(getpid());
            w.hear();
            hca_mutex_unlock(&hca_fabric->atomic_locks[7]);
            w.say();
        });
}

/* A child that is forked while pages are exchanged can write to them. */
TEST_F(hca_share_test, fork_while_a_queue_takes_pages)
{
    alone([] {
        constexpr size_t PAGES = 64;
        std::atomic<bool> ends{false};
        char *mem = map_pages(PAGES);

        memset(mem, 'm', PAGES * PAGE);
        std::thread thread([&] {
            while (!ends) {
                struct hca_umem umem;

                ASSERT_EQ(0, hca_umem_share(&umem, (uintptr_t)mem, PAGES * PAGE,
                                            true));
                hca_umem_unshare(&umem);
            }
        });
        for (unsigned i = 0; (i < 40) && !HasFailure(); i++) {
            pid_t pid = fork();

            if (pid == 0) {
                memset(mem, 'c', PAGES * PAGE);
                _exit(HasFailure());
            }
            expect_end(pid);
        }
        ends = true;
        thread.join();
        EXPECT_EQ(std::string(PAGES * PAGE, 'm'),
                  std::string(mem, PAGES * PAGE));
    });
}

/* 9 */
TEST_F(hca_share_test, late_copy)
{
    with_peer(
        [](const wire &w) {
            std::vector<char *> others;
            uint64_t id;
            char *mem = map_shared(4, &id);

            tell(w, mem);
            w.hear();
            hca_share_end(id);
            munmap(mem, 4 * PAGE);
            for (unsigned i = 0; i < HCA_SHARE_RUNS; i++) {
                others.push_back(map_shared(4));
            }
            w.say();
            w.hear();
            for (char *other : others) {
                ASSERT_EQ(0, other[0]);
            }
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);
            char *near = far.near(0, 4 * PAGE);

            ASSERT_NE(nullptr, near);
            w.say();
            w.hear();
            memset(near, 'x', 4 * PAGE);
            w.say();
            w.meet();
        });
}

/* --- changes of mappings -------------------------------------------------- */

/* The program maps other memory at the address before it ends the region. */
TEST_F(hca_share_test, other_memory_at_the_address)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(8);

            tell(w, mem);
            w.hear();
            ASSERT_EQ((void *)mem,
                      mmap(mem, 8 * PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
            strcpy(mem + PAGE, "other");
            share(mem + PAGE, 64);
            w.say();
            w.hear();
            EXPECT_STREQ("peer", mem + PAGE);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_NE(nullptr, far.near(PAGE, 64));
            w.say();
            w.hear();
            EXPECT_EQ("other", far.get(PAGE, 5));
            EXPECT_EQ(0, far.put(PAGE, std::string("peer", 5)));
            w.say();
            w.meet();
        });
}

/* Other memory came to the address, and an on-demand region leads to it while
 * the region of the first memory is left. */
TEST_F(hca_share_test, on_demand_region_finds_other_memory)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(8);
            uint64_t first, second;

            tell(w, mem);
            w.hear();
            ASSERT_EQ((void *)mem,
                      mmap(mem, 8 * PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
            first  = hca_share_begin_odp();
            second = hca_share_begin_odp();
            hca_share_end(first);
            w.say();
            w.hear();
            EXPECT_STREQ("peer", mem + PAGE);
            hca_share_end(second);
            w.meet();
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_NE(nullptr, far.near(PAGE, 64));
            w.say();
            w.hear();
            EXPECT_EQ(0, far.put(PAGE, std::string("peer", 5)));
            w.say();
            w.meet();
            EXPECT_NE(nullptr, far.near(PAGE, 64)) << "of the first region";
            w.meet();
        });
}

/* A window is registered again in part, after the rest was unmapped. */
TEST_F(hca_share_test, rest_of_a_window)
{
    with_peer(
        [](const wire &w) {
            uint64_t id;
            char *mem = map_shared(16, &id);

            memset(mem, 'w', 16 * PAGE);
            hca_share_end(id);
            ASSERT_EQ((void *)mem,
                      mmap(mem, 8 * PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
            memset(mem, 'p', 8 * PAGE);
            EXPECT_NE(0u, share(mem + 8 * PAGE, 8 * PAGE));
            tell(w, mem);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_EQ(nullptr, far.near(0, 64));
            EXPECT_NE(nullptr, far.near(8 * PAGE, 8 * PAGE));
            EXPECT_EQ(std::string(8 * PAGE, 'p') + std::string(8 * PAGE, 'w'),
                      far.get(0, 16 * PAGE));
            w.meet();
        });
}

/* --- files of the program ------------------------------------------------- */

/* Maps 16 pages of a new file, at its fourth page. */
static char *map_file(int fd)
{
    void *mem;

    EXPECT_EQ(0, ftruncate(fd, 20 * PAGE));
    mem = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
               4 * PAGE);
    EXPECT_NE(MAP_FAILED, mem);
    return (char *)mem;
}

static void use_near(const wire &w)
{
    far_memory far(w);

    EXPECT_NE(nullptr, far.near(0, 16 * PAGE));
    EXPECT_EQ("owner", far.get(10 * PAGE, 5));
    EXPECT_EQ(0, far.put(11 * PAGE, std::string("peer", 5)));
    w.say();
    w.meet();
}

static void offer(const wire &w, char *mem)
{
    strcpy(mem + 10 * PAGE, "owner");
    EXPECT_NE(0u, share(mem + 4 * PAGE, 8 * PAGE));
    tell(w, mem);
    w.hear();
    EXPECT_STREQ("peer", mem + 11 * PAGE);
    w.meet();
}

TEST_F(hca_share_test, file_of_a_descriptor)
{
    with_peer(
        [](const wire &w) {
            int fd = memfd_create("test", 0);

            offer(w, map_file(fd));
            close(fd);
        },
        use_near);
}

TEST_F(hca_share_test, file_of_a_path)
{
    with_peer(
        [](const wire &w) {
            char path[] = "/dev/shm/dcx-test-XXXXXX";
            int fd      = mkstemp(path);
            char *mem   = map_file(fd);

            close(fd);
            offer(w, mem);
            unlink(path);
        },
        use_near);
}

/* A region keeps no lock of the program, and ends none. */
TEST_F(hca_share_test, file_with_locks)
{
    alone([] {
        char path[] = "/dev/shm/dcx-test-XXXXXX";
        int fd = mkstemp(path), other = open(path, O_RDWR);
        struct flock lock = {};
        char *mem         = map_file(fd);
        uint64_t id;
        pid_t pid;

        lock.l_type = F_WRLCK;
        lock.l_len  = 1;
        EXPECT_EQ(0, fcntl(other, F_SETLK, &lock));
        EXPECT_EQ(0, flock(fd, LOCK_EX));
        id = share(mem, 16 * PAGE);
        EXPECT_NE(0u, id);
        close(fd);
        munmap(mem, 16 * PAGE);
        EXPECT_EQ(0, fcntl(other, F_SETLK, &lock)) << "which close() ended";
        EXPECT_EQ(0, flock(other, LOCK_EX | LOCK_NB));
        hca_share_end(id);
        pid = fork();
        if (pid == 0) {
            EXPECT_EQ(0, fcntl(other, F_GETLK, &lock));
            EXPECT_EQ(F_WRLCK, lock.l_type);
            _exit(HasFailure());
        }
        expect_end(pid);
        close(other);
        unlink(path);
    });
}

/* Is not shared: a peer that closes the file would lose its own record locks
 * there. */
TEST_F(hca_share_test, file_of_a_disk)
{
    char path[] = "dcx-test-XXXXXX";
    int fd      = mkstemp(path);
    struct statfs fs;

    unlink(path);
    ASSERT_EQ(0, fstatfs(fd, &fs));
    if (fs.f_type == TMPFS_MAGIC) {
        close(fd);
        GTEST_SKIP() << "the current folder is in memory";
    }
    alone([fd] { EXPECT_EQ(0u, share(map_file(fd), 16 * PAGE)); });
    close(fd);
}

TEST_F(hca_share_test, segment_of_system_v)
{
    with_peer(
        [](const wire &w) {
            int id    = shmget(IPC_PRIVATE, 16 * PAGE, 0600);
            char *mem = (char *)shmat(id, NULL, 0);

            shmctl(id, IPC_RMID, NULL);
            offer(w, mem);
        },
        use_near);
}

/* The peer has another segment of this id. */
TEST_F(hca_share_test, segment_of_another_namespace)
{
    int status = 0;
    pid_t pid  = fork();

    if (pid == 0) {
        _exit(unshare(CLONE_NEWIPC) != 0);
    }
    waitpid(pid, &status, 0);
    if (status != 0) {
        GTEST_SKIP() << "this user may not make a namespace";
    }
    with_peer(
        [](const wire &w) {
            ASSERT_EQ(0, unshare(CLONE_NEWIPC));
            int id    = shmget(IPC_PRIVATE, 16 * PAGE, 0600);
            char *mem = (char *)shmat(id, NULL, 0);

            offer(w, mem);
            shmctl(id, IPC_RMID, NULL);
        },
        [](const wire &w) {
            ASSERT_EQ(0, unshare(CLONE_NEWIPC));
            int id = shmget(IPC_PRIVATE, 16 * PAGE, 0600);
            far_memory far(w);

            EXPECT_EQ(nullptr, far.near(0, 16 * PAGE));
            EXPECT_EQ("owner", far.get(10 * PAGE, 5));
            EXPECT_EQ(0, far.put(11 * PAGE, std::string("peer", 5)));
            w.say();
            w.meet();
            shmctl(id, IPC_RMID, NULL);
        });
}

/* Its file is deleted, and has no descriptor: data is copied. */
TEST_F(hca_share_test, anonymous_shared_memory)
{
    with_peer(
        [](const wire &w) {
            char *mem = (char *)mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

            strcpy(mem + 10 * PAGE, "owner");
            share(mem, 16 * PAGE);
            tell(w, mem);
            w.hear();
            EXPECT_STREQ("peer", mem + 11 * PAGE);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_EQ("owner", far.get(10 * PAGE, 5));
            EXPECT_EQ(0, far.put(11 * PAGE, std::string("peer", 5)));
            w.say();
            w.meet();
        });
}

TEST_F(hca_share_test, truncated_file)
{
    with_peer(
        [](const wire &w) {
            int fd    = memfd_create("test", 0);
            char *mem = map_file(fd);

            EXPECT_NE(0u, share(mem, 16 * PAGE));
            tell(w, mem);
            w.hear();
            EXPECT_EQ(0, ftruncate(fd, 5 * PAGE));
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_NE(nullptr, far.near(0, 16 * PAGE));
            w.meet();
            EXPECT_EQ(0, far.put(0, std::string(PAGE, 'x')));
            EXPECT_EQ(-EFAULT, far.put(PAGE, std::string(PAGE, 'x')));
            w.say();
        });
}

/* --- the end of a process ------------------------------------------------- */

TEST_F(hca_share_test, killed_owner)
{
    run([] {
        int fds[2];

        ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
        pid_t pid = spawn([&] {
            attach();
            tell(wire(fds[0]), map_shared(8));
            pause();
        });
        attach();
        ASSERT_EQ(0, hca_trap_install());
        far_memory far{wire(fds[1])};
        char *near = far.near(0, 8 * PAGE);

        ASSERT_NE(nullptr, near);
        EXPECT_TRUE(hca_proc_alive(far.m_owner.proc));
        kill(pid, SIGKILL);
        expect_end(pid, SIGKILL);
        ASSERT_TRUE(
            hca_eventually([&] { return num_mappings("softhca-share") == 0; }));
        EXPECT_EQ(nullptr, far.near(0, 8));
        EXPECT_EQ(-ESRCH, far.put(0, "x"));
        hca_fabric_detach();
    });
}

/* One owner after the other, in the same slot and at the same address; each
 * detaches before it ends. */
TEST_F(hca_share_test, next_process_of_the_slot)
{
    run([] {
        struct hca_owner before = {};

        attach();
        ASSERT_EQ(0, hca_trap_install());
        for (unsigned i = 0; i < 20; i++) {
            int fds[2];

            ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
            pid_t pid = spawn([&] {
                char *mem = (char *)0x600000000000;

                attach();
                ASSERT_EQ(
                    (void *)mem,
                    mmap(mem, 8 * PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                         0));
                EXPECT_NE(0u, share(mem, 8 * PAGE));
                mem[0] = i;
                tell(wire(fds[0]), mem);
                wire(fds[0]).hear();
                hca_fabric_detach();
            });
            far_memory far{wire(fds[1])};

            ASSERT_NE(nullptr, far.near(0, 8));
            EXPECT_EQ((char)i, *far.near(0, 8));
            EXPECT_EQ(nullptr, hca_mem_near(before, (void *)far.addr, 8, true));
            before = far.m_owner;
            wire(fds[1]).say();
            expect_end(pid);
            EXPECT_EQ(nullptr, far.near(0, 8));
            hca_share_map_collect();
            EXPECT_EQ(0u, num_mappings("softhca-share"));
            close(fds[0]);
            close(fds[1]);
        }
        hca_fabric_detach();
    });
}

/* The peer's mapping does not keep the memory of a file that is gone. */
TEST_F(hca_share_test, peer_unmaps_a_file)
{
    with_peer(
        [](const wire &w) {
            int fd    = memfd_create("test", 0);
            char *mem = map_file(fd);
            uint64_t id;

            id = share(mem, 16 * PAGE);
            tell(w, mem);
            w.hear();
            hca_share_end(id);
            w.meet();
            close(fd);
        },
        [](const wire &w) {
            far_memory far(w);

            ASSERT_NE(nullptr, far.near(0, 64));
            EXPECT_EQ(1u, num_mappings("memfd:test"));
            w.say();
            EXPECT_TRUE(
                hca_eventually([] { return num_mappings("memfd:test") == 0; }));
            w.meet();
        });
}

/* A peer that locks all that it maps does not fill the pages of others. */
TEST_F(hca_share_test, peer_locks_its_memory)
{
    with_peer(
        [](const wire &w) {
            char *mem = map_shared(64);
            unsigned char pages[64];

            mem[5 * PAGE] = 'x';
            tell(w, mem);
            w.hear();
            EXPECT_EQ(0, mincore(mem, 64 * PAGE, pages));
            for (unsigned i = 0; i < 64; i++) {
                ASSERT_EQ(i == 5, pages[i] & 1) << i;
            }
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            EXPECT_EQ(0, mlockall(MCL_FUTURE));
            EXPECT_EQ("x", far.get(5 * PAGE, 1));
            EXPECT_NE(nullptr, far.near(0, 64));
            munlockall();
            w.say();
            w.meet();
        });
}

/* The peer unmaps runs that are no longer published, while it accesses others
 * without a call of the control path. */
TEST_F(hca_share_test, peer_unmaps_what_is_gone)
{
    with_peer(
        [](const wire &w) {
            for (unsigned i = 0; i < 300; i++) {
                uint64_t id;
                char *mem = map_shared(4, &id);

                tell(w, mem);
                w.hear();
                hca_share_end(id);
                munmap(mem, 4 * PAGE);
            }
            w.meet();
        },
        [](const wire &w) {
            for (unsigned i = 0; i < 300; i++) {
                far_memory far(w);

                ASSERT_NE(nullptr, far.near(0, 8));
                w.say();
            }
            EXPECT_TRUE(hca_eventually(
                [] { return num_mappings("softhca-share") < 200; }));
            w.meet();
        });
}

/* Processes are killed in the middle of their copies, every other one stopped
 * before. The owner can still end and begin its region. */
TEST_F(hca_share_test, killed_peer)
{
    with_peer(
        [](const wire &w) {
            uint64_t id;
            char *mem = map_shared(4096, &id);

            tell(w, mem);
            w.hear();
            hca_share_end(id);
            id = share(mem, 4096 * PAGE);
            EXPECT_NE(0u, id);
            hca_share_end(id);
            w.meet();
        },
        [](const wire &w) {
            far_memory far(w);

            for (unsigned i = 0; i < 20; i++) {
                pid_t pid = spawn([&] {
                    attach();
                    hca_trap_install();
                    for (;;) {
                        far.put(0, std::string(4096 * PAGE, 'k'));
                    }
                });

                poll(NULL, 0, 10);
                kill(pid, (i % 2) ? SIGKILL : SIGSTOP);
                kill(pid, SIGKILL);
                expect_end(pid, SIGKILL);
            }
            w.say();
            w.meet();
        });
}

} // namespace
