/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Files that replace dma-bufs, on machines without /dev/udmabuf: the device
 * only needs to synchronize and map them. Included by one source of a program,
 * as it replaces a function of libc.
 */
#ifndef DCX_TEST_DMABUF_FILE_H
#define DCX_TEST_DMABUF_FILE_H

#include <cerrno>
#include <cstdarg>
#include <linux/dma-buf.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Marks a file as a dma-buf for the device while this exists. The mark is the
 * sticky bit of the file's mode, so all descriptors of the file have it. */
class dmabuf_file {
public:
    explicit dmabuf_file(int fd) : m_fd(fd) { mark(fd); }

    ~dmabuf_file() { fchmod(m_fd, MODE); }

    dmabuf_file(const dmabuf_file &) = delete;

    /* Marks a file for as long as it exists. */
    static void mark(int fd) { fchmod(fd, MODE | S_ISVTX); }

    static bool is(int fd)
    {
        struct stat stat;
        int error = errno;
        bool is   = (fd >= 0) && (fstat(fd, &stat) == 0) &&
                  S_ISREG(stat.st_mode) && ((stat.st_mode & S_ISVTX) != 0);

        errno = error;
        return is;
    }

private:
    enum { MODE = 0600 };

    const int m_fd;
};

/* Replaces libc's function, which the device calls. */
extern "C" long syscall(long number, ...) noexcept
{
    long a[6], ret;
    va_list ap;

    va_start(ap, number);
    for (long &arg : a) {
        arg = va_arg(ap, long);
    }
    va_end(ap);
    if ((number == SYS_ioctl) && (a[1] == (long)DMA_BUF_IOCTL_SYNC) &&
        dmabuf_file::is(a[0])) {
        return 0;
    }

    register long r10 asm("r10") = a[3];
    register long r8 asm("r8")   = a[4];
    register long r9 asm("r9")   = a[5];
    asm volatile("syscall"
                 : "=a"(ret)
                 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10),
                   "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    if ((ret < 0) && (ret > -4096)) {
        errno = -ret;
        return -1;
    }
    return ret;
}

#endif
