/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * copy BYTES: copies as many bytes from one mapping to another by memcpy(), and
 * prints the microseconds: the median of some thousand copies. Both are shared
 * memory, as that of two processes on the software device.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { COPIES = 2001 };

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static char *map(size_t bytes)
{
    int fd    = memfd_create("copy", MFD_CLOEXEC);
    void *mem = MAP_FAILED;

    if ((fd >= 0) && (ftruncate(fd, bytes) == 0)) {
        mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (mem == MAP_FAILED) {
        perror("copy");
        exit(1);
    }
    return memset(mem, 1, bytes);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    size_t bytes = (argc == 2) ? strtoul(argv[1], NULL, 0) : 0;
    static double us[COPIES];
    char *from, *to;

    if (bytes == 0) {
        fprintf(stderr, "usage: copy BYTES\n");
        return 2;
    }
    from = map(bytes);
    to   = map(bytes);
    for (int i = 0; i < COPIES; i++) {
        double start = now_us();

        memcpy(to, from, bytes);
        __asm__ volatile("" : : "r"(to) : "memory");
        us[i] = now_us() - start;
    }
    qsort(us, COPIES, sizeof(us[0]), compare);
    printf("%.3f\n", us[COPIES / 2]);
    return 0;
}
