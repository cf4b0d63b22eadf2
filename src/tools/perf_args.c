/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Parses the command line of dcx_perf; see perf_args.h.
 */
#include "perf_args.h"
#include "perf_say.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the longest operation of UCT */
#define PERF_SIZE_MAX (1ul << 30)

const char *perf_op_names[PERF_OPS] = {
    [PERF_PUT] = "put",
    [PERF_GET] = "get",
};

const char *perf_method_names[PERF_METHODS] = {
    [PERF_CONTIG] = "contig", [PERF_UMR] = "umr",     [PERF_IOV] = "iov",
    [PERF_PACK] = "pack",     [PERF_BLOCK] = "block",
};

/* Names by bits of perf_side */
static const char *perf_side_names[] = {NULL, "local", "remote", "both"};

const char *perf_side_name(unsigned sides)
{
    return perf_side_names[sides];
}

static void perf_usage(FILE *out)
{
    fputs(
        "Usage: dcx_perf [OPTION...] [HOST]\n"
        "\n"
        "Measures transfers of strided data over dcx between two processes: "
        "by a key with\n"
        "a layout (umr), by strides in an operation (iov), packed by the "
        "processors\n"
        "(pack), and block by block (block), beside the same bytes in one "
        "piece (contig).\n"
        "\n"
        "  dcx-run mpirun -np 2 dcx_perf      also prterun, srun --mpi=pmix\n"
        "  dcx-run dcx_perf                   waits for the other, ...\n"
        "  dcx-run dcx_perf HOST              ... which measures\n"
        "\n"
        "  -o, --op LIST        put, get (both)\n"
        "  -l, --layout LIST    contiguous, strided, composite, box (all)\n"
        "  -m, --method LIST    contig, umr, iov, pack, block (all)\n"
        "  -S, --side SIDE      side with the bytes in pieces: local, remote, "
        "both (both)\n"
        "  -s, --size [MIN:]MAX bytes in all, MIN and its doubles "
        "(64K; --all: 4K:1M)\n"
        "  -b, --block LIST     bytes of a block (64,256,4K)\n"
        "  -D, --stride BYTES   from the beginning of a block to that of the "
        "next (twice\n"
        "                       the block)\n"
        "  -W, --window N       transfers under way at a time, 1 to 256 (1)\n"
        "  -i, --iters N        repetitions, of which the median counts "
        "(100)\n"
        "  -w, --warmup N       ... before them (10)\n"
        "  -d, --device NAME    such as mlx5_0:1 (the first one)\n"
        "  -p, --port PORT      of TCP, to meet on (13337)\n"
        "      --all            print all figures, not only a table of "
        "times\n"
        "      --csv FILE       all figures, for contrib/plot\n"
        "      --help           print this text and exit\n"
        "      --version        print the version and exit\n",
        out);
}

/* --- values --------------------------------------------------------------- */
/* Parses a number, optionally followed by K, M or G. Stores the place behind it
 * in @end. Returns false if it is no number, or exceeds @max. */
static bool perf_number(const char *text, char **end, uint64_t max,
                        uint64_t *value)
{
    static const char units[] = "kmg";
    const char *unit;
    unsigned shift;

    errno  = 0;
    *value = strtoull(text, end, 10);
    if (!isdigit((unsigned char)*text) || (errno != 0) || (*value > max)) {
        return false;
    }
    unit = (**end == '\0') ? NULL : strchr(units, tolower(**end));
    if (unit == NULL) {
        return true;
    }
    shift = 10 * (unit - units + 1);
    (*end)++;
    if (*value > (max >> shift)) {
        return false;
    }
    *value <<= shift;
    return true;
}

static uint64_t perf_parse_number(const char *option, const char *text,
                                  uint64_t min, uint64_t max)
{
    uint64_t value;
    char *end;

    if (!perf_number(text, &end, max, &value) || (*end != '\0') ||
        (value < min)) {
        perf_wrong_call("--%s %s: a number from %lu to %lu is needed", option,
                        text, min, max);
    }
    return value;
}

/* Parses "4K:1M", or one size. */
static void perf_parse_sizes(struct perf_plan *plan, const char *text)
{
    char *end;

    if (perf_number(text, &end, PERF_SIZE_MAX, &plan->min_size) &&
        (plan->min_size > 0)) {
        plan->max_size = plan->min_size;
        if ((*end == '\0') ||
            ((*end == ':') &&
             perf_number(end + 1, &end, PERF_SIZE_MAX, &plan->max_size) &&
             (*end == '\0') && (plan->min_size <= plan->max_size))) {
            return;
        }
    }
    perf_wrong_call("--size %s: a size from 1 to 1G is needed, or MIN:MAX",
                    text);
}

static void perf_parse_blocks(struct perf_plan *plan, const char *text)
{
    const char *next = text;
    uint64_t block;
    char *end;

    plan->num_blocks = 0;
    do {
        if (!perf_number(next, &end, PERF_SIZE_MAX, &block) || (block == 0) ||
            ((*end != '\0') && (*end != ',')) ||
            (plan->num_blocks == PERF_BLOCKS_MAX)) {
            perf_wrong_call("--block %s: up to %d sizes from 1 to 1G are "
                            "needed, with commas between",
                            text, PERF_BLOCKS_MAX);
        }
        plan->blocks[plan->num_blocks++] = block;
        next                             = end + 1;
    } while (*end == ',');
}

/* Returns all names, "put, get", for a message. */
static const char *perf_all_names(const char *const *names, unsigned num)
{
    static char text[128];
    size_t length = 0;

    for (unsigned i = 0; i < num; i++) {
        length += snprintf(text + length, sizeof(text) - length, "%s%s",
                           (i == 0) ? "" : ", ", names[i]);
    }
    return text;
}

static unsigned perf_find_name(const char *option, const char *text,
                               size_t length, const char *const *names,
                               unsigned num)
{
    for (unsigned i = 0; i < num; i++) {
        if ((strlen(names[i]) == length) && !strncmp(names[i], text, length)) {
            return i;
        }
    }
    perf_wrong_call("--%s %.*s: there is only %s", option, (int)length, text,
                    perf_all_names(names, num));
}

static uint32_t perf_parse_names(const char *option, const char *text,
                                 const char *const *names, unsigned num)
{
    uint32_t bits = 0;
    size_t length;

    for (;;) {
        length = strcspn(text, ",");
        bits |= 1u << perf_find_name(option, text, length, names, num);
        if (text[length] == '\0') {
            return bits;
        }
        text += length + 1;
    }
}

/* --- the command line ----------------------------------------------------- */
static const struct option perf_options[] = {
    {"op", required_argument, NULL, 'o'},
    {"layout", required_argument, NULL, 'l'},
    {"method", required_argument, NULL, 'm'},
    {"side", required_argument, NULL, 'S'},
    {"size", required_argument, NULL, 's'},
    {"block", required_argument, NULL, 'b'},
    {"stride", required_argument, NULL, 'D'},
    {"window", required_argument, NULL, 'W'},
    {"iters", required_argument, NULL, 'i'},
    {"warmup", required_argument, NULL, 'w'},
    {"device", required_argument, NULL, 'd'},
    {"port", required_argument, NULL, 'p'},
    {"all", no_argument, NULL, 'a'},
    {"csv", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {NULL, 0, NULL, 0},
};

/* Parses an option that selects cases. @return false if it is another one. */
static bool perf_parse_plan(struct perf_plan *plan, int option)
{
    switch (option) {
    case 'o':
        plan->ops = perf_parse_names("op", optarg, perf_op_names, PERF_OPS);
        return true;
    case 'l':
        plan->forms = perf_parse_names("layout", optarg, perf_form_names,
                                       PERF_FORMS);
        return true;
    case 'm':
        plan->methods = perf_parse_names("method", optarg, perf_method_names,
                                         PERF_METHODS);
        return true;
    case 'S':
        plan->sides = perf_find_name("side", optarg, strlen(optarg),
                                     perf_side_names + 1, 3) +
                      1;
        return true;
    case 's':
        perf_parse_sizes(plan, optarg);
        return true;
    case 'b':
        perf_parse_blocks(plan, optarg);
        return true;
    default:
        return false;
    }
}

static bool perf_parse_counts(struct perf_plan *plan, int option)
{
    switch (option) {
    case 'D':
        plan->stride = perf_parse_number("stride", optarg, 1, PERF_SIZE_MAX);
        return true;
    case 'W':
        plan->window = perf_parse_number("window", optarg, 1, PERF_WINDOW_MAX);
        return true;
    case 'i':
        plan->iters = perf_parse_number("iters", optarg, 1, 1000000);
        return true;
    case 'w':
        plan->warmup = perf_parse_number("warmup", optarg, 0, 1000000);
        return true;
    default:
        return false;
    }
}

static void perf_parse_option(struct perf_args *args, char **argv, int option)
{
    switch (option) {
    case 'd':
        args->device = optarg;
        break;
    case 'p':
        perf_parse_number("port", optarg, 1, 65535);
        args->port = optarg;
        break;
    case 'a':
        args->plan.is_all = true;
        break;
    case 'c':
        args->csv = optarg;
        break;
    case 'h':
        perf_usage(stdout);
        exit(PERF_GOOD);
    case 'v':
        puts("dcx_perf (dcx) " DCX_VERSION);
        exit(PERF_GOOD);
    case ':':
        perf_wrong_call("%s needs a value (dcx_perf --help)", argv[optind - 1]);
    default:
        perf_wrong_call("there is no option %s (dcx_perf --help)",
                        argv[optind - 1]);
    }
}

static void perf_complete_plan(struct perf_plan *plan)
{
    if (plan->min_size == 0) {
        plan->min_size = plan->is_all ? 4096 : 65536;
        plan->max_size = plan->is_all ? 1 << 20 : 65536;
    }
    for (unsigned i = 0; i < plan->num_blocks; i++) {
        if ((plan->stride != 0) && (plan->stride < plan->blocks[i])) {
            perf_wrong_call("--stride %lu is less than a block of %lu",
                            plan->stride, plan->blocks[i]);
        }
    }
}

void perf_args_parse(struct perf_args *args, int argc, char **argv)
{
    int option;

    *args = (struct perf_args){.plan = {.ops        = (1u << PERF_OPS) - 1,
                                        .forms      = (1u << PERF_FORMS) - 1,
                                        .methods    = (1u << PERF_METHODS) - 1,
                                        .sides      = PERF_LOCAL | PERF_REMOTE,
                                        .num_blocks = 3,
                                        .window     = 1,
                                        .blocks     = {64, 256, 4096},
                                        .iters      = 100,
                                        .warmup     = 10}};
    while ((option = getopt_long(argc, argv, ":o:l:m:S:s:b:D:W:i:w:d:p:",
                                 perf_options, NULL)) != -1) {
        if (!perf_parse_plan(&args->plan, option) &&
            !perf_parse_counts(&args->plan, option)) {
            perf_parse_option(args, argv, option);
        }
    }
    if (argc > optind + 1) {
        perf_wrong_call("one HOST only, not %s", argv[optind + 1]);
    }
    args->host = argv[optind];
    perf_complete_plan(&args->plan);
}
