/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The checks of messages of derived types, which mpi_rules.c runs: the rules of MPI
 * that hold whether a side sends and receives them by views, or packs. An area is
 * memory with a data type on it, of which every byte is known.
 */
#ifndef DCX_TEST_MPI_RULES_H
#define DCX_TEST_MPI_RULES_H

#include "test/mpi/check.h"

#include <stddef.h>
#include <stdint.h>

/* Each ends with a row of NULLs */
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
    uint32_t *map; /* where in memory each of them is */
    unsigned char
            *memory; /* what lies between is GAP, as is MARGIN around it */
    size_t length;
    void *buffer; /* what MPI is given */
};

/* 'count' elements; the type is the area's then, and committed here */
void area_init(struct area *area, MPI_Datatype type, int count);
void area_cleanup(struct area *area);

/* Puts the bytes that belong to a seed into the area, GAP into all others */
void area_fill(struct area *area, unsigned seed);
void area_clear(struct area *area);

/* Whether the area has what area_fill() of another one with as many bytes, or
 * more, wrote: the first 'size' bytes, and nothing but GAP elsewhere. Returns 1,
 * and says where, if not. */
int area_check(const char *what, const struct area *area,
               const struct area *source, unsigned seed, size_t size);

/* Types of about 'bytes' bytes in elements of 8, of which there are NUM_LAYOUTS;
 * at least one */
enum { NUM_LAYOUTS = 10 };
MPI_Datatype make_layout(int layout, size_t bytes);
void area_init_layout(struct area *area, int layout, size_t bytes);

/* The same number of bytes, contiguous */
void area_init_bytes(struct area *area, size_t bytes);

/* The same with other memory of as many bytes */
void area_place(struct area *area, void *memory);
void area_clone(const struct area *area, struct area *clone);
void area_cleanup_clone(struct area *clone);

/* Whether part 'i' of 'num' equal ones of the message has what a seed has there */
int area_check_part(const char *what, const struct area *area, int i, int num,
                    unsigned seed);

/* Whether nothing but the message's bytes was written, whatever is there */
int area_check_gaps(const char *what, struct area *area);

/* Sends 'out' to the next rank, and receives what the one before has sent as 'in',
 * which is cleared first; all have the same 'out'. Returns the number of errors. */
int exchange(const char *what, struct area *out, struct area *in, unsigned seed,
             MPI_Comm comm);

/* ... with a receive that is posted when the message is there already */
int exchange_late(const char *what, struct area *out, struct area *in,
                  unsigned seed, MPI_Comm comm);

#endif
