/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "halo_box.h"
#include "halo_net.h"

#include <float.h>
#include <math.h>

/* Returns the index of a cell. */
static size_t at(const int *size, int x, int y, int z)
{
    return ((size_t)x * size[1] + y) * size[2] + z;
}

size_t box_count(const int *size)
{
    return (size_t)size[0] * size[1] * size[2];
}

/* Returns the initial value of a cell: no two of 2^31 - 1 have the same,
 * so that none passes for another. */
static double initial(size_t index)
{
    return index * 40503 % 2147483647;
}

/* Adds in a fixed order: the result is the same on every rank. */
static double mean(double x0, double x1, double y0, double y1, double z0,
                   double z1)
{
    return (x0 + x1 + y0 + y1 + z0 + z1) / 6;
}

/* Returns the index in the whole box of a local cell, where x, y and z count
 * from 1. */
static size_t at_whole(const struct box *box, const int *whole, int x, int y,
                       int z)
{
    return at(whole, box->first[0] + x - 1, box->first[1] + y - 1,
              box->first[2] + z - 1);
}

void box_init(struct box *box, const int *whole)
{
    int d, x, y, z;

    for (d = 0; d < 3; d++) {
        box->size[d] = box->n[d] + 2;
    }
    box->cells[0] = alloc(box_count(box->size) * sizeof(double));
    box->cells[1] = alloc(box_count(box->size) * sizeof(double));
    for (x = 1; x <= box->n[0]; x++) {
        for (y = 1; y <= box->n[1]; y++) {
            for (z = 1; z <= box->n[2]; z++) {
                box->cells[0][at(box->size, x, y, z)] =
                    initial(at_whole(box, whole, x, y, z));
            }
        }
    }
}

void box_step(struct box *box, int from)
{
    const size_t dx = at(box->size, 1, 0, 0), dy = at(box->size, 0, 1, 0);
    const double *c = box->cells[from];
    double *to      = box->cells[!from];
    int x, y, z;
    size_t i;

    for (x = 1; x <= box->n[0]; x++) {
        for (y = 1; y <= box->n[1]; y++) {
            for (z = 1; z <= box->n[2]; z++) {
                i     = at(box->size, x, y, z);
                to[i] = mean(c[i - dx], c[i + dx], c[i - dy], c[i + dy],
                             c[i - 1], c[i + 1]);
            }
        }
    }
}

/* Computes a step of the whole box, whose opposite faces are neighbours. */
static void step_alone(const int *n, const double *c, double *to)
{
    int x, y, z;

    for (x = 0; x < n[0]; x++) {
        for (y = 0; y < n[1]; y++) {
            for (z = 0; z < n[2]; z++) {
                to[at(n, x, y, z)] = mean(c[at(n, (x + n[0] - 1) % n[0], y, z)],
                                          c[at(n, (x + 1) % n[0], y, z)],
                                          c[at(n, x, (y + n[1] - 1) % n[1], z)],
                                          c[at(n, x, (y + 1) % n[1], z)],
                                          c[at(n, x, y, (z + n[2] - 1) % n[2])],
                                          c[at(n, x, y, (z + 1) % n[2])]);
            }
        }
    }
}

double *box_run_alone(const int *whole, int steps, double *cells)
{
    const size_t count = box_count(whole);
    double *half[2]    = {cells, cells + count};
    size_t i;
    int step;

    for (i = 0; i < count; i++) {
        cells[i] = initial(i);
    }
    for (step = 0; step < steps; step++) {
        step_alone(whole, half[step % 2], half[!(step % 2)]);
    }
    return half[steps % 2];
}

/* Returns DBL_MAX for NaN and infinity, which MPI_MAX does not order. */
static double max_difference(double max, double difference)
{
    return (difference <= max)     ? max :
           (difference <= DBL_MAX) ? difference :
                                     DBL_MAX;
}

double box_difference(const struct box *box, int which, const int *whole,
                      const double *cells)
{
    double max = 0, actual, expected;
    int x, y, z;

    for (x = 1; x <= box->n[0]; x++) {
        for (y = 1; y <= box->n[1]; y++) {
            for (z = 1; z <= box->n[2]; z++) {
                actual   = box->cells[which][at(box->size, x, y, z)];
                expected = cells[at_whole(box, whole, x, y, z)];
                max      = max_difference(max, fabs(actual - expected));
            }
        }
    }
    return max;
}
