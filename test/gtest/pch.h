/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
 *
 * The headers that most tests include, compiled once (see Makefile.inc). A test
 * includes what it needs itself: builds with a compiler cache have no such
 * header. */
#ifdef __cplusplus
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <infiniband/mlx5dv.h>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
#endif
