/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds out which MPI is installed, and if it has UCX, from the output of its
 * commands; see info_mpi.h. They run without LD_PRELOAD, as only their output
 * is needed.
 */
#include "info_mpi.h"

#include <stdlib.h>
#include <string.h>

/* Returns the output of the command, which the caller frees; NULL: none. Reads
 * all of it, so that the command does not end by SIGPIPE. */
static char *info_mpi_ask(const char *command)
{
    char *text  = NULL;
    size_t size = 0;
    char ask[128];
    FILE *pipe;

    snprintf(ask, sizeof(ask), "LD_PRELOAD= exec %s 2>/dev/null", command);
    pipe = popen(ask, "r");
    if (pipe == NULL) {
        return NULL;
    }
    if (getdelim(&text, &size, '\0', pipe) < 0) {
        free(text);
        text = NULL;
    }
    pclose(pipe);
    return text;
}

/* Returns the text behind @key in the first line that begins with it; NULL:
 * there is none. */
static const char *info_mpi_find(const char *text, const char *key)
{
    const char *at = text;

    while ((at != NULL) && (strncmp(at, key, strlen(key)) != 0)) {
        at = strchr(at, '\n');
        at = (at == NULL) ? NULL : at + 1;
    }
    return (at == NULL) ? NULL : at + strlen(key);
}

static void info_mpi_value(const char *text, const char *key, char *value,
                           size_t max)
{
    const char *at = info_mpi_find(text, key);

    if (at != NULL) {
        at += strspn(at, " \t");
        snprintf(value, max, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

void info_mpi_find_ompi(struct info_mpi *mpi)
{
    char *text = info_mpi_ask("ompi_info --parsable");

    memset(mpi, 0, sizeof(*mpi));
    info_mpi_value(text, "ompi:version:full:", mpi->version,
                   sizeof(mpi->version));
    mpi->has_ucx = (info_mpi_find(text, "mca:pml:ucx:") != NULL);
    free(text);
}

void info_mpi_find_mpich(struct info_mpi *mpi)
{
    char *text = info_mpi_ask("mpichversion");

    memset(mpi, 0, sizeof(*mpi));
    info_mpi_value(text, "MPICH Version:", mpi->version, sizeof(mpi->version));
    info_mpi_value(text, "MPICH Device:", mpi->device, sizeof(mpi->device));
    mpi->has_ucx = (strstr(mpi->device, "ucx") != NULL);
    free(text);
}

/* --- the MPI in use ------------------------------------------------------- */
enum info_mpi_kind { INFO_MPI_NONE, INFO_MPI_OMPI, INFO_MPI_MPICH };

/* Returns the MPI of `mpirun`, by the first line that it prints. MPICH's
 * launcher is called Hydra. */
static enum info_mpi_kind info_mpi_mpirun(void)
{
    char *text              = info_mpi_ask("mpirun --version");
    enum info_mpi_kind kind = INFO_MPI_NONE;

    if (text != NULL) {
        text[strcspn(text, "\n")] = '\0';
        kind = (strstr(text, "Open MPI") != NULL) ? INFO_MPI_OMPI :
               (strstr(text, "HYDRA") != NULL)    ? INFO_MPI_MPICH :
                                                    INFO_MPI_NONE;
    }
    free(text);
    return kind;
}

/* Returns the MPI that started this process, by its variables; if none did,
 * that of `mpirun`. */
static enum info_mpi_kind info_mpi_kind(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) {
        return INFO_MPI_OMPI;
    }
    return (getenv("PMI_RANK") != NULL) ? INFO_MPI_MPICH : info_mpi_mpirun();
}

/* Returns true if srun has started several tasks without a PMI: then no task
 * knows the others. */
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
        info_fix(verdict, "./configure --with-ucx, in the source of Open MPI");
    } else {
        info_blame(verdict, "MPICH %s was built for %s, without UCX",
                   mpi.version, mpi.device);
        info_fix(verdict, "./configure --with-device=ch4:ucx, in the source of "
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
        info_fix(verdict, "srun --mpi=%s",
                 (kind == INFO_MPI_OMPI) ? "pmix" : "pmi2");
        return;
    }
    info_mpi_ucx(kind, verdict);
}
