/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The inner loops of a copy: whole blocks of a size, in rows or in a list.
 */
#ifndef SHAPE_RUN_H
#define SHAPE_RUN_H

#include "shape.h"


/* Whole blocks of 'bytes': row.count of them, rows.count times. If there is a
 * list, a row is what it says, and 0 bytes are as many as it says. */
typedef struct shape_run {
    char                *at;
    size_t              bytes;
    shape_dim_t         row;
    shape_dim_t         rows;
    const shape_place_t *list;
} shape_run_t;


/* To 'packed' and from there. Returns its end. */
char *shape_run_gather(const shape_run_t *run, char *packed);
char *shape_run_scatter(const shape_run_t *run, char *packed);

#endif
