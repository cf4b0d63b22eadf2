/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory for many objects of one size, without overhead: malloc() and UCX's
 * pools add eight bytes to each, and round up. An interface has one for each
 * kind of endpoint. A released object is used for the next one; chunks are
 * freed with the slab. Owned by the thread that progresses the interface.
 */
#ifndef UCT_DCX_SLAB_H
#define UCT_DCX_SLAB_H

#include <stddef.h>


typedef struct uct_dcx_slab {
    void *free;   /* released objects; each begins with the next one */
    char *next;   /* first unused object of the newest chunk */
    char *end;    /* no whole object begins here or later */
    void *chunks; /* each begins with the next one */
    size_t size;  /* of an object */
    size_t num_used;
} uct_dcx_slab_t;


/* Initialises a slab; @size is a multiple of 16, the alignment, and at most 1
 * KiB. An object in use begins with an even word, as a pointer is. */
void uct_dcx_slab_init(uct_dcx_slab_t *slab, size_t size);

/* Frees all memory. Returns the number of objects that were still in use. */
size_t uct_dcx_slab_cleanup(uct_dcx_slab_t *slab);

/* Returns an object with undefined content, or NULL if memory is short. */
void *uct_dcx_slab_get(uct_dcx_slab_t *slab);

void uct_dcx_slab_put(uct_dcx_slab_t *slab, void *obj);

/* Calls @visit for each object in use. It may release any object, and get new
 * ones, which may be visited or not. */
void uct_dcx_slab_visit(uct_dcx_slab_t *slab, void (*visit)(void *obj));

#endif
