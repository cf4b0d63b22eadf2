/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks Open MPI's parameters; see info_ompi.h. They come from the
 * environment, where `mpirun --mca` puts them, too; if it has none, from the
 * user's file; then from that of the machine (ompi_info(1),
 * "mca_base_param_files").
 */
#include "info_ompi.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define INFO_OMPI_ENV    "OMPI_MCA_"
#define INFO_OMPI_SYSTEM "/etc/openmpi/openmpi-mca-params.conf"

extern char **environ;

bool info_list_has(const char *list, const char *entry)
{
    size_t length = strlen(entry);

    while (list != NULL) {
        if (!strncmp(list, entry, length) &&
            ((list[length] == ',') || (list[length] == '\0'))) {
            return true;
        }
        list = strchr(list, ',');
        list = (list == NULL) ? NULL : list + 1;
    }
    return false;
}

/* Reads "name = value" from a file; the last line of the name counts. */
static bool info_ompi_file(const char *path, const char *name, char *value)
{
    FILE *file = fopen(path, "r");
    char line[1024], key[64], text[INFO_TEXT_MAX];
    bool found = false;

    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        text[0] = '\0';
        if ((sscanf(line, " %63[^#= \t] = %255s", key, text) >= 1) &&
            !strcmp(key, name)) {
            strcpy(value, text);
            found = true;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* Reads a parameter into @value, of INFO_TEXT_MAX bytes. @return the variable
 * or the file that sets it; NULL: none */
static const char *info_ompi_value(const char *name, char *value)
{
    static char path[PATH_MAX];
    const char *home = getenv("HOME");
    const char *text;

    snprintf(path, sizeof(path), INFO_OMPI_ENV "%s", name);
    text = getenv(path);
    if (text != NULL) {
        snprintf(value, INFO_TEXT_MAX, "%s", text);
        return path;
    }
    snprintf(path, sizeof(path), "%s/.openmpi/mca-params.conf",
             (home == NULL) ? "" : home);
    if (info_ompi_file(path, name, value)) {
        return path;
    }
    value[0] = '\0';
    return info_ompi_file(INFO_OMPI_SYSTEM, name, value) ? INFO_OMPI_SYSTEM :
                                                           NULL;
}

static bool info_ompi_is_asked(void)
{
    for (char **var = environ; *var != NULL; var++) {
        if (!strncmp(*var, INFO_OMPI_ENV, strlen(INFO_OMPI_ENV)) ||
            !strncmp(*var, "OMPI_COMM_WORLD_SIZE=", 21)) {
            return true;
        }
    }
    return false;
}

/* Returns true if the parameter @common, or the component's @own if that is not
 * set, has the entry. */
static bool info_ompi_allows(const char *common, const char *own,
                             const char *entry)
{
    char value[INFO_TEXT_MAX];

    return ((info_ompi_value(common, value) != NULL) ||
            (info_ompi_value(own, value) != NULL)) &&
           (info_list_has(value, "any") || info_list_has(value, entry));
}

/* Says how to set the parameter. Under mpirun its value may come from mpirun's
 * command line, which overrides the environment: then advises an argument. */
static void info_ompi_fix(const char *name, const char *value,
                          struct info_verdict *verdict)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL) {
        info_fix(verdict, "mpirun --mca %s %s", name, value);
    } else {
        info_fix(verdict, "export " INFO_OMPI_ENV "%s=%s", name, value);
    }
}

void info_ompi(const struct info_report *report, struct info_verdict *verdict)
{
    char value[INFO_TEXT_MAX];
    const char *source;
    bool negated;

    (void)report;
    if (!info_ompi_is_asked()) {
        return;
    }

    source  = info_ompi_value("pml", value);
    negated = (value[0] == '^');
    if ((source != NULL) && (value[0] != '\0') &&
        (info_list_has(value + negated, "ucx") == negated)) {
        info_blame(verdict, "Open MPI does not use UCX: pml is %s (%s)", value,
                   source);
        info_ompi_fix("pml", "ucx", verdict);
    } else if (!info_ompi_allows("opal_common_ucx_tls", "pml_ucx_tls", "dcx")) {
        info_blame(verdict, "Open MPI takes UCX only for transports that it "
                            "knows by name, opal_common_ucx_tls");
        info_ompi_fix("opal_common_ucx_tls", "any", verdict);
    }
}
