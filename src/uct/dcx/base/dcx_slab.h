/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory for many objects of one size, without a byte beside them: malloc()
 * and UCX's pools take eight more for each, and round up. An interface has one
 * for each kind of endpoint. What is given back is for the next object; chunks
 * are freed when the slab is. Owned by the thread that progresses the
 * interface.
 */
#ifndef UCT_DCX_SLAB_H
#define UCT_DCX_SLAB_H

#include <stddef.h>


typedef struct uct_dcx_slab {
    void   *free;    /* objects given back; each begins with the next one */
    char   *next;    /* object of the newest chunk that was never taken */
    char   *end;     /* where no whole one follows */
    void   *chunks;  /* each begins with the next one */
    size_t size;     /* of an object */
    size_t num_used;
} uct_dcx_slab_t;


/* 'size' is a multiple of 16, which objects are aligned to; 1 KiB at most. */
void uct_dcx_slab_init(uct_dcx_slab_t *slab, size_t size);

/* Returns how many objects have not been given back. Their memory is gone. */
size_t uct_dcx_slab_cleanup(uct_dcx_slab_t *slab);

/* NULL: memory is short. */
void *uct_dcx_slab_get(uct_dcx_slab_t *slab);

void uct_dcx_slab_put(uct_dcx_slab_t *slab, void *obj);

#endif
