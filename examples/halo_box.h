/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The cells of halo.c and the computation of a step. The whole box is periodic:
 * a step makes each cell the mean of its six neighbours. 'whole' is the number
 * of its cells in x, y and z. */
#ifndef HALO_BOX_H
#define HALO_BOX_H

#include <stddef.h>

/* A rank's part of the whole box. z runs fastest. */
struct box {
    int first[3];     /* first cell in the whole box */
    int n[3];         /* number of cells */
    int size[3];      /* number with ghost cells: n + 2 */
    double *cells[2]; /* before and after a step, alternating */
};

/* Returns the number of cells of a box of this size. */
size_t box_count(const int *size);

/* Sets size and allocates the cells of a box whose first and n are set; fills
 * cells[0] but for the ghost cells. The caller frees the cells. */
void box_init(struct box *box, const int *whole);

/* Computes one step, from cells[from] to the other array. */
void box_step(struct box *box, int from);

/* Computes all steps on the whole box, without ghost cells. 'cells' has room
 * for two boxes; returns the half that holds the result. */
double *box_run_alone(const int *whole, int steps, double *cells);

/* Returns the greatest difference of cells[which] to 'cells', the result of
 * box_run_alone(); DBL_MAX for NaN and infinity. */
double box_difference(const struct box *box, int which, const int *whole,
                      const double *cells);

#endif
