/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Three-dimensional transforms by FFTW's MPI library, forward and backward.
 * Compares the spectrum with that of a transform by one process, and the result
 * of the backward transform with the input. Prints the number of wrong values,
 * and a sum over all bits.
 */
#include <fftw3-mpi.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { N0 = 30, N1 = 44, N2 = 36, CELLS = N0 * N1 * N2 };

static double value_at(ptrdiff_t i)
{
    return (double)(i * 7919 % 1009) / 1009 - 0.5;
}

/* Returns the sum of the bits of numbers, weighted by position. */
static uint64_t bits_sum(const double *values, ptrdiff_t num, ptrdiff_t first)
{
    uint64_t sum = 0, bits;

    for (ptrdiff_t i = 0; i < num; i++) {
        memcpy(&bits, &values[i], sizeof(bits));
        sum += bits * (uint64_t)(2 * (first + i) + 1);
    }
    return sum;
}

static int is_wrong(const fftw_complex got, const fftw_complex want)
{
    return hypot(got[0] - want[0], got[1] - want[1]) > 1e-9;
}

/* Returns the spectrum, computed by this process alone. */
static fftw_complex *transform_alone(void)
{
    fftw_complex *data = fftw_alloc_complex(CELLS);
    fftw_plan plan     = fftw_plan_dft_3d(N0, N1, N2, data, data, FFTW_FORWARD,
                                          FFTW_ESTIMATE);

    for (ptrdiff_t i = 0; i < CELLS; i++) {
        data[i][0] = value_at(i);
        data[i][1] = 0;
    }
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    return data;
}

int main(int argc, char **argv)
{
    ptrdiff_t size, num, first, planes;
    fftw_complex *data, *want;
    fftw_plan there, back;
    uint64_t sum, all_sum;
    int rank, wrong = 0, all_wrong = 0;

    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    size  = fftw_mpi_local_size_3d(N0, N1, N2, MPI_COMM_WORLD, &planes, &first);
    first = first * N1 * N2;
    num   = planes * N1 * N2;
    data  = fftw_alloc_complex(size);
    there = fftw_mpi_plan_dft_3d(N0, N1, N2, data, data, MPI_COMM_WORLD,
                                 FFTW_FORWARD, FFTW_ESTIMATE);
    back  = fftw_mpi_plan_dft_3d(N0, N1, N2, data, data, MPI_COMM_WORLD,
                                 FFTW_BACKWARD, FFTW_ESTIMATE);
    for (ptrdiff_t i = 0; i < num; i++) {
        data[i][0] = value_at(first + i);
        data[i][1] = 0;
    }

    fftw_execute(there);
    want = transform_alone();
    for (ptrdiff_t i = 0; i < num; i++) {
        wrong += is_wrong(data[i], want[first + i]);
    }
    sum = bits_sum(data[0], 2 * num, 2 * first);

    fftw_execute(back);
    for (ptrdiff_t i = 0; i < num; i++) {
        fftw_complex old = {value_at(first + i) * CELLS, 0};

        wrong += is_wrong(data[i], old);
    }
    sum += bits_sum(data[0], 2 * num, 2 * first);

    MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&sum, &all_sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("fftw: %d cells, %d wrong, sum %016llx\n", CELLS, all_wrong,
               (unsigned long long)all_sum);
    }
    fftw_destroy_plan(back);
    fftw_destroy_plan(there);
    fftw_free(want);
    fftw_free(data);
    MPI_Finalize();
    return all_wrong != 0;
}
