/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A file of parallel HDF5. The columns of a table are dealt out to the ranks in
 * turn, and all ranks write theirs in one collective operation. Then each reads
 * rows, from a chunked and from a contiguous data set. Prints the number of
 * wrong values.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 240, COLUMNS = 360, CHUNK = 40 };

static int rank, ranks;
static int table[ROWS][COLUMNS];

static int value_at(int row, int column)
{
    return row * 1000003 + column * 17;
}

/* Returns how many of 'num' rows or columns belong to this rank. */
static hsize_t share(hsize_t num)
{
    return (num - rank + ranks - 1) / ranks;
}

/* Transfers every 'ranks'th column or row, from the rank's own on;
 * collective. */
static void transfer(hid_t set, int is_write)
{
    hsize_t size[]   = {ROWS, COLUMNS};
    hsize_t start[]  = {is_write ? 0 : rank, is_write ? rank : 0};
    hsize_t stride[] = {is_write ? 1 : ranks, is_write ? ranks : 1};
    hsize_t count[]  = {is_write ? ROWS : share(ROWS),
                       is_write ? share(COLUMNS) : COLUMNS};
    hid_t memory = H5Screate_simple(2, size, NULL);
    hid_t file   = H5Screate_simple(2, size, NULL);
    hid_t how    = H5Pcreate(H5P_DATASET_XFER);

    H5Sselect_hyperslab(memory, H5S_SELECT_SET, start, stride, count, NULL);
    H5Sselect_hyperslab(file, H5S_SELECT_SET, start, stride, count, NULL);
    H5Pset_dxpl_mpio(how, H5FD_MPIO_COLLECTIVE);
    if (is_write) {
        H5Dwrite(set, H5T_NATIVE_INT, memory, file, how, table);
    } else {
        H5Dread(set, H5T_NATIVE_INT, memory, file, how, table);
    }
    H5Pclose(how);
    H5Sclose(file);
    H5Sclose(memory);
}

/* Writes and reads the table as a data set of its own. Returns the number of
 * wrong values. */
static int check_set(hid_t file, const char *name, int is_chunked)
{
    hsize_t size[]  = {ROWS, COLUMNS};
    hsize_t chunk[] = {CHUNK, CHUNK};
    hid_t space     = H5Screate_simple(2, size, NULL);
    hid_t how       = H5Pcreate(H5P_DATASET_CREATE);
    int wrong       = 0;
    hid_t set;

    H5Pset_obj_track_times(how, 0); /* no times: the files are compared */
    if (is_chunked) {
        H5Pset_chunk(how, 2, chunk);
    }
    set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, how,
                     H5P_DEFAULT);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        table[i / COLUMNS][i % COLUMNS] = value_at(i / COLUMNS, i % COLUMNS);
    }
    transfer(set, 1);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        table[i / COLUMNS][i % COLUMNS] = -1;
    }
    transfer(set, 0);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int row = i / COLUMNS, column = i % COLUMNS;

        wrong += table[row][column] !=
                 ((row % ranks == rank) ? value_at(row, column) : -1);
    }
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong, all = 0;
    hid_t how, file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    how = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(how, MPI_COMM_WORLD, MPI_INFO_NULL);
    file = H5Fcreate("table.h5", H5F_ACC_TRUNC, H5P_DEFAULT, how);

    wrong = check_set(file, "whole", 0);
    wrong += check_set(file, "chunks", 1);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("hdf5: %d ranks, %d wrong\n", ranks, all);
    }
    H5Fclose(file);
    H5Pclose(how);
    MPI_Finalize();
    return all != 0;
}
