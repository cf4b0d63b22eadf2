/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The cells of halo.c and what a step makes of them: no network in here.
 */
#ifndef HALO_BOX_H
#define HALO_BOX_H

#include <stddef.h>

/* What a rank has of the whole box. z runs fastest. */
struct box {
    int    first[3];  /* its first cell in the whole box */
    int    n[3];      /* its cells */
    int    size[3];   /* ... with ghost cells: n + 2 */
    double *cells[2]; /* before and after a step, in turns */
};

/* Cells of a box of that size */
size_t box_count(const int *size);

/* Fills size and cells of a box whose first and n are known; no ghost cells.
 * The cells are the caller's to free. */
void box_init(struct box *box, const int *whole);

/* One step: cells[from] to the other ones. */
void box_step(struct box *box, int from);

/* All steps on the whole box, without ghost cells. 'cells' has room for it
 * twice; returns that half in which the result is. */
double *box_run_alone(const int *whole, int steps, double *cells);

/* Greatest difference of cells[which] to those of the whole box */
double box_difference(const struct box *box, int which, const int *whole,
                      const double *cells);

#endif
