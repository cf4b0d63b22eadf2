/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What commands of Open MPI and MPICH print; see info_mpi.h. They run without our
 * preloads: they are asked, not tried.
 */
#include "info_mpi.h"

#include <stdlib.h>
#include <string.h>

#define INFO_MPI_ASK(_command) "LD_PRELOAD= exec " _command " 2>/dev/null"

/* What stands behind `key` in the line, if it begins with that */
static bool
info_mpi_value(const char *line, const char *key, char *value, size_t max)
{
    size_t length = strlen(key);

    if (strncmp(line, key, length) != 0) {
        return false;
    }
    line += length;
    line += strspn(line, " \t");
    snprintf(value, max, "%.*s", (int)strcspn(line, "\n"), line);
    return true;
}

void info_mpi_find_ompi(struct info_mpi *mpi)
{
    FILE *pipe = popen(INFO_MPI_ASK("ompi_info --parsable"), "r");
    char line[1024];

    memset(mpi, 0, sizeof(*mpi));
    while ((pipe != NULL) && (fgets(line, sizeof(line), pipe) != NULL)) {
        info_mpi_value(line, "ompi:version:full:", mpi->version,
                       sizeof(mpi->version));
        mpi->has_ucx |= !strncmp(line, "mca:pml:ucx:", 12);
    }
    if (pipe != NULL) {
        pclose(pipe);
    }
}

void info_mpi_find_mpich(struct info_mpi *mpi)
{
    FILE *pipe = popen(INFO_MPI_ASK("mpichversion"), "r");
    char line[1024];

    memset(mpi, 0, sizeof(*mpi));
    while ((pipe != NULL) && (fgets(line, sizeof(line), pipe) != NULL)) {
        info_mpi_value(line, "MPICH Version:", mpi->version,
                       sizeof(mpi->version));
        info_mpi_value(line, "MPICH Device:", mpi->device, sizeof(mpi->device));
    }
    mpi->has_ucx = (strstr(mpi->device, "ucx") != NULL);
    if (pipe != NULL) {
        pclose(pipe);
    }
}

/* --- which of them ---------------------------------------------------------- */
enum info_mpi_kind { INFO_MPI_NONE, INFO_MPI_OMPI, INFO_MPI_MPICH };

/* Whose launcher `mpirun` is: MPICH's is called Hydra */
static enum info_mpi_kind info_mpi_mpirun(void)
{
    FILE *pipe              = popen(INFO_MPI_ASK("mpirun --version"), "r");
    enum info_mpi_kind kind = INFO_MPI_NONE;
    char line[1024];

    if (pipe == NULL) {
        return kind;
    }
    if (fgets(line, sizeof(line), pipe) != NULL) {
        kind = (strstr(line, "Open MPI") != NULL) ? INFO_MPI_OMPI :
               (strstr(line, "HYDRA") != NULL)    ? INFO_MPI_MPICH :
                                                    INFO_MPI_NONE;
    }
    while (fgets(line, sizeof(line), pipe) != NULL) {
        /* it shall not end of a broken pipe */
    }
    pclose(pipe);
    return kind;
}

/* By the variables of who has started this process, else by `mpirun` */
static enum info_mpi_kind info_mpi_kind(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) {
        return INFO_MPI_OMPI;
    }
    return (getenv("PMI_RANK") != NULL) ? INFO_MPI_MPICH : info_mpi_mpirun();
}

/* Below srun, one of several tasks, and none of them knows of the others */
static bool info_mpi_alone(void)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");

    return (getenv("SLURM_PROCID") != NULL) && (tasks != NULL) &&
           (atoi(tasks) > 1) && (getenv("PMIX_RANK") == NULL) &&
           (getenv("PMI_RANK") == NULL);
}

static void info_mpi_ucx(enum info_mpi_kind kind, struct info_verdict *verdict)
{
    struct info_mpi mpi;

    if (kind == INFO_MPI_OMPI) {
        info_mpi_find_ompi(&mpi);
    } else {
        info_mpi_find_mpich(&mpi);
    }
    if (mpi.has_ucx || (mpi.version[0] == '\0')) {
        return;
    }
    if (kind == INFO_MPI_OMPI) {
        info_blame(verdict, "Open MPI %s was built without UCX", mpi.version);
        info_mend(verdict, "./configure --with-ucx, in the source of Open MPI");
    } else {
        info_blame(verdict, "MPICH %s was built for %s, without UCX",
                   mpi.version, mpi.device);
        info_mend(verdict, "./configure --with-device=ch4:ucx, in the source of "
                  "MPICH");
    }
}

void info_mpi(const struct info_report *report, struct info_verdict *verdict)
{
    enum info_mpi_kind kind = info_mpi_kind();

    (void)report;
    if (kind == INFO_MPI_NONE) {
        return;
    }
    if (info_mpi_alone()) {
        info_blame(verdict, "srun has started each task as a job of its own");
        info_mend(verdict, "srun --mpi=%s",
                  (kind == INFO_MPI_OMPI) ? "pmix" : "pmi2");
        return;
    }
    info_mpi_ucx(kind, verdict);
}
