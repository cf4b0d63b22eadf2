/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects that a program makes with DEVX commands, and what the device refuses
 * of them.
 */
#include "devx_bench.h"

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"ib", {}}, {"roce", {{"SOFTHCA_LINK", "roce"}}}});
}
