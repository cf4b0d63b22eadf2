/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A row of the tests of the strict device: something that is right, one change
 * that makes it wrong, and all that has to be seen of it. The rows stand in
 * strict_rows_*.cc, grouped as the checks are; test_hca_strict.cc runs them.
 */
#ifndef DCX_TEST_STRICT_ROWS_H
#define DCX_TEST_STRICT_ROWS_H

#include "strict_bench.h"

extern "C" {
#include "softhca/obj/hca_check.h"
}

/* What is seen besides a completion in error */
enum strict_outcome {
    /* the sender's completion is in error, its QP too, nothing reaches the
     * receiver */
    OUTCOME_LOCAL,
    /* the same, and the receiver's QP is in error with `events` */
    OUTCOME_REMOTE,
    /* the same as REMOTE, and a receive was taken: it completes in error with
     * `recv_syndrome`, which is no event as well */
    OUTCOME_RECV,
    /* the sender sees success, the receiver's QP stays as it is: dropped */
    OUTCOME_DROP,
    /* no completion can tell: the QP is in error with `events` */
    OUTCOME_EVENT
};

/* Both ends have their sends completed by one queue: it fails them both. */
constexpr char OVERRUN_OF_ALL[] =
        "CQ error of send cq, "
        "local work queue catastrophic error of sender, "
        "local work queue catastrophic error of receiver";

struct strict_row {
    const char     *name;
    enum hca_check check;
    const char     *mode = "plain";
    strict_service service = SERVICE_RC;
    strict_options options = {};

    /* Something that succeeds, with what it needs */
    std::function<raw_wqe(strict_bench&)> good;

    /* Makes it wrong, once it is complete */
    std::function<void(strict_bench&, raw_wqe&)> spoil;

    uint8_t        syndrome = 0;   /* MLX5_CQE_SYNDROME_*, of the sender */
    const char     *field   = "";  /* what the log line calls the field */
    strict_outcome outcome  = OUTCOME_LOCAL;
    uint8_t        recv_syndrome = 0;
    const char     *events  = "";
    unsigned       num_bb   = 0;   /* that are rung, if not those of the WQE */
    bool           written  = false; /* memory is, as the fault comes late */
    bool           fresh    = false; /* spoil on another bench than good */
    strict_options bad_options = {}; /* of that bench */
    bool           peer_reset  = false; /* spoil resets the receiver */
};

/* For gtest's messages */
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
