/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The checks of messages of derived types, which mpi_rules.c runs. They are
 * rules of MPI that hold for zero-copy and for packed messages. An area is
 * memory and a data type that selects bytes of it; each byte has a known value.
 */
#ifndef DCX_TEST_MPI_RULES_H
#define DCX_TEST_MPI_RULES_H

#include "test/mpi/check.h"

#include <stddef.h>
#include <stdint.h>

/* Each table ends with a row of NULLs. */
extern const struct check rules_p2p_checks[];
extern const struct check rules_shapes_checks[];
extern const struct check rules_memory_checks[];
extern const struct check rules_coll_checks[];
extern const struct check rules_threads_checks[];

enum { TAG = 21 };

struct area {
    MPI_Datatype type;
    int count;
    size_t size;   /* bytes of the message */
    uint32_t *map; /* offset in memory of each byte */
    unsigned char
        *memory; /* gaps between the bytes, and MARGIN around them, are
                  * filled with GAP */
    size_t length;
    void *buffer; /* argument for MPI */
};

/* 'count' elements; the area owns the type and commits it */
void area_init(struct area *area, MPI_Datatype type, int count);
void area_cleanup(struct area *area);

/* Sets the bytes of the message to the pattern of a seed, all others to GAP. */
void area_fill(struct area *area, unsigned seed);
void area_clear(struct area *area);

/* Checks that the area has the first 'size' bytes that area_fill() wrote to
 * another area, which is as long or longer, and GAP elsewhere. Prints the first
 * difference and returns 1 if not. */
int area_check(const char *what, const struct area *area,
               const struct area *source, unsigned seed, size_t size);

/* Types of about 'bytes' bytes, at least one element, in elements of 8 bytes;
 * there are NUM_LAYOUTS types. */
enum { NUM_LAYOUTS = 10 };
MPI_Datatype make_layout(int layout, size_t bytes);
void area_init_layout(struct area *area, int layout, size_t bytes);

/* An area of as many bytes, contiguous */
void area_init_bytes(struct area *area, size_t bytes);

/* Makes the area use other memory of the same size; copies nothing. */
void area_place(struct area *area, void *memory);

/* A clone has the same type, and memory of its own. */
void area_clone(const struct area *area, struct area *clone);
void area_cleanup_clone(struct area *clone);

/* Checks that part 'i' of 'num' equal parts of the message has the pattern of a
 * seed. */
int area_check_part(const char *what, const struct area *area, int i, int num,
                    unsigned seed);

/* Checks that only bytes of the message were written, with any value. */
int area_check_gaps(const char *what, struct area *area);

/* Sends 'out' to the next rank, and receives the previous rank's as 'in', which
 * is cleared first; all ranks have the same 'out'. Returns the number of
 * errors. */
int exchange(const char *what, struct area *out, struct area *in, unsigned seed,
             MPI_Comm comm);

/* The same, with a receive that is posted after the message has arrived */
int exchange_late(const char *what, struct area *out, struct area *in,
                  unsigned seed, MPI_Comm comm);

#endif
