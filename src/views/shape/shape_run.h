/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The inner loops of a copy: whole blocks, in rows or in a list.
 */
#ifndef SHAPE_RUN_H
#define SHAPE_RUN_H

#include "shape.h"


/* Whole blocks of @bytes: row.count blocks in a row, rows.count rows. With
 * @list, the blocks of a row are at its offsets. If @bytes is 0, their lengths
 * are those of the list, which then has an entry more. */
typedef struct shape_run {
    char *at; /* address of the first row; with @list, base of its offsets */
    size_t bytes;
    shape_dim_t row;
    shape_dim_t rows;
    const shape_place_t *list;
} shape_run_t;


/* Copy the blocks to @packed (gather) or from there (scatter). Return the end
 * of the packed bytes. */
char *shape_run_gather(const shape_run_t *run, char *packed);
char *shape_run_scatter(const shape_run_t *run, char *packed);

#endif
