/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * rows [check]: measures the cost of 64 KiB in rows of 256 bytes, 512 apart,
 * between two processes, and of as many contiguous bytes. The rows are local,
 * gathered or scattered, or remote. Prints lines of WHAT MICROSECONDS SPEED,
 * the last over that of the contiguous operation. The best of many, in turn.
 * With `check`, a speed far below the usual one is an error.
 */
#include "../gtest/pieces_bench.h"
#include "../gtest/verbs_peer.h"

namespace {

constexpr unsigned ROWS = 256, ROW = 256, STRIDE = 512, LENGTH = ROWS * ROW;
constexpr size_t SIZE = ROWS * STRIDE;
constexpr int TURNS   = 500;

pieces_blocks rows()
{
    pieces_blocks blocks;

    for (unsigned i = 0; i < ROWS; i++) {
        blocks.list.push_back({i * STRIDE, ROW});
        blocks.length += ROW;
    }
    return blocks;
}

struct rows_card {
    uint32_t qpn, flat, list;
    uint64_t addr;
};

/* Exposes its memory to the other process. */
void rows_peer(int fd)
{
    hca_device dev;
    pieces_mem mem(dev.pd, SIZE, 1);
    pieces_key key(dev, mem, rows());
    verbs_ep ep(dev);
    rows_card card = {ep.qp->qp_num, mem.mr->rkey, key.key, mem.addr()};

    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
    ep.connect(ep.attr(card.qpn));
    peer_meet(fd);
    peer_meet(fd);
}

struct rows_line {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool near_rows, far_rows;
    double least; /* minimum of SPEED */
    double best;
};

/* The kernel looks up the pages of each row of a peer again. Therefore remote
 * rows are read together with their gaps, and written slowly. */
rows_line lines[] = {
    {"write_contiguous", IBV_WR_RDMA_WRITE, false, false, 1, 1e9},
    {"write_gathers", IBV_WR_RDMA_WRITE, true, false, 0.25, 1e9},
    {"write_to_rows", IBV_WR_RDMA_WRITE, false, true, 0.02, 1e9},
    {"read_contiguous", IBV_WR_RDMA_READ, false, false, 1, 1e9},
    {"read_scatters", IBV_WR_RDMA_READ, true, false, 0.25, 1e9},
    {"read_of_rows", IBV_WR_RDMA_READ, false, true, 0.15, 1e9},
};

double run(verbs_ep &ep, verbs_op &op)
{
    struct timespec start, end;

    clock_gettime(CLOCK_MONOTONIC, &start);
    HCA_CHECK_CALL(op.post(ep.qp) == 0);
    HCA_CHECK_CALL(verbs_wait(ep.send_cq).status == IBV_WC_SUCCESS);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - start.tv_sec) * 1e6 +
           (end.tv_nsec - start.tv_nsec) / 1e3;
}

void measure(peer_process &peer)
{
    hca_device dev;
    verbs_ep ep(dev);
    pieces_mem mem(dev.pd, SIZE, 2);
    pieces_key key(dev, mem, rows());
    rows_card card, own = {ep.qp->qp_num, 0, 0, 0};

    HCA_CHECK_CALL(::read(peer.fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::write(peer.fd, &own, sizeof(own)) == sizeof(own));
    ep.connect(ep.attr(card.qpn));
    peer_meet(peer.fd);
    for (int turn = 0; turn < TURNS; turn++) {
        for (auto &line : lines) {
            verbs_op op(line.opcode);

            op.local(line.near_rows ? 0 : mem.addr(), LENGTH,
                     line.near_rows ? key.key : mem.mr->lkey);
            op.remote(line.far_rows ? 0 : card.addr,
                      line.far_rows ? card.list : card.flat);
            line.best = std::min(line.best, run(ep, op));
        }
    }
    peer_meet(peer.fd);
}

int report(bool checks)
{
    double whole = 0;
    int status   = 0;

    for (const auto &line : lines) {
        if (!line.near_rows && !line.far_rows) {
            whole = line.best;
        }
        printf("%s %.2f %.2f\n", line.name, line.best, whole / line.best);
        if (checks && (whole / line.best < line.least)) {
            fprintf(stderr, "%s: slower than %.2f\n", line.name, line.least);
            status = 1;
        }
    }
    return status;
}

} /* namespace */

int main(int argc, char **argv)
{
    peer_process peer(rows_peer);

    measure(peer);
    if (peer.wait() != 0) {
        return 1;
    }
    return report((argc > 1) && !strcmp(argv[1], "check"));
}
