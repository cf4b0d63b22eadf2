/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows of test_hca_strict.cc, which checks that the device refuses what the PRM
 * forbids: each is a valid request, one change that makes it invalid, and all
 * expected effects. strict_rows_*.cc have them, grouped as hca_check.h is.
 */
#ifndef DCX_TEST_STRICT_ROWS_H
#define DCX_TEST_STRICT_ROWS_H

#include "strict_bench.h"

/* C headers: a function may have the name of a structure */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "softhca/obj/hca_check.h"
}
#pragma GCC diagnostic pop

/* Effects besides a completion in error */
enum strict_outcome {
    /* the sender's completion and its QP are in error, the receiver is not
     * affected */
    OUTCOME_LOCAL,
    /* also the receiver's QP is in error, with `events` */
    OUTCOME_REMOTE,
    /* as REMOTE, and a receive was taken: it completes in error with
     * `recv_syndrome`, without an event; an unreliable sender sees success */
    OUTCOME_RECV,
    /* dropped: the sender sees success, the receiver's QP does not change */
    OUTCOME_DROP,
    /* without a completion: the QP is in error with `events` */
    OUTCOME_EVENT
};

/* One queue gets the completions of both ends' sends: its overrun fails
 * both. */
constexpr char OVERRUN_OF_ALL[] =
    "CQ error of send cq, "
    "local work queue catastrophic error of sender, "
    "local work queue catastrophic error of receiver";

using spoil_fn = std::function<void(strict_bench &, raw_wqe &)>;

struct strict_row {
    const char *name;
    enum hca_check check;
    const char *mode       = "plain";
    strict_service service = SERVICE_RC;
    strict_options options = {};

    /* Returns a valid request, and prepares its objects. */
    std::function<raw_wqe(strict_bench &)> good;

    /* Makes the finished request invalid. */
    spoil_fn spoil;

    uint8_t syndrome       = 0;  /* MLX5_CQE_SYNDROME_* of the sender */
    const char *field      = ""; /* name of the field in the log */
    strict_outcome outcome = OUTCOME_LOCAL;
    uint8_t recv_syndrome  = 0;
    const char *events     = "";
    unsigned num_bb        = 0; /* blocks to ring, if not those of the WQE */
    bool written           = false;     /* memory is written, because the error
                                         * comes late */
    bool fresh             = false;     /* good and spoil run on different
                                         * benches */
    strict_options bad_options = {};    /* options of the bench for spoil */
    bool peer_reset            = false; /* spoil resets the receiver */
};

/* Valid requests of most rows */

inline raw_wqe good_send(strict_bench &bench)
{
    bench.post_recv();
    return bench.send();
}

inline raw_wqe good_write(strict_bench &bench)
{
    return bench.write();
}

inline raw_wqe good_read(strict_bench &bench)
{
    return bench.read();
}

inline raw_wqe good_fetch_add(strict_bench &bench)
{
    return bench.fetch_add();
}

/* Returns a row with the syndrome of binds (MW_BIND_ERR). */
inline strict_row bind_row(const char *name, enum hca_check check,
                           const char *field,
                           std::function<raw_wqe(strict_bench &)> good,
                           spoil_fn spoil)
{
    return {.name     = name,
            .check    = check,
            .good     = good,
            .spoil    = spoil,
            .syndrome = MLX5_CQE_SYNDROME_MW_BIND_ERR,
            .field    = field};
}

/* Prints the row in gtest's messages. */
inline void PrintTo(const strict_row &row, std::ostream *out)
{
    *out << row.name;
}

std::vector<strict_row> strict_rows_wqe();
std::vector<strict_row> strict_rows_key();
std::vector<strict_row> strict_rows_umr();
std::vector<strict_row> strict_rows_layout();
std::vector<strict_row> strict_rows_tm();
std::vector<strict_row> strict_rows_responder();
std::vector<strict_row> strict_rows_wire();

#endif
