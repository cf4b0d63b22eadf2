/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of random bytes with elements of a type, views of them, and the
 * results of a gather and a scatter that a plain loop computes.
 */
#ifndef DCX_TEST_DCX_VIEW_MEM_H
#define DCX_TEST_DCX_VIEW_MEM_H

#include "dcx_view_type.h"

#include <memory>
#include <random>

inline std::vector<uint8_t> random_bytes(size_t length, unsigned seed)
{
    std::vector<uint8_t> bytes(length);
    std::mt19937 random(seed);

    for (auto &b : bytes) {
        b = random();
    }
    return bytes;
}

/* 'count' elements of a type in memory of random bytes */
class shaped_mem {
public:
    shaped_mem(const view_type &type, size_t count, unsigned seed) :
        bytes(random_bytes(type.shape->end - type.shape->begin +
                               std::abs(type.extent) * (count - 1),
                           seed)),
        data{type.shape, (char *)bytes.data() - type.shape->begin, count},
        m_places(type.places(count))
    {
        if (type.extent < 0) {
            data.buffer -= type.extent * (ptrdiff_t)(count - 1);
        }
    }

    shaped_mem(const shaped_mem &) = delete;

    size_t length() const { return shape_length(&data); }

    /* Returns byte n of the data in @memory: `bytes`, or a copy of them. */
    uint8_t &at(size_t n, std::vector<uint8_t> &memory) const
    {
        return memory[data.buffer - (char *)bytes.data() + m_places[n]];
    }

    std::vector<uint8_t> gather(size_t offset, size_t length)
    {
        std::vector<uint8_t> dest(length);

        for (size_t i = 0; i < length; i++) {
            dest[i] = at(offset + i, bytes);
        }
        return dest;
    }

    /* Returns all of the memory, including holes, after a scatter of @src to
     * the data from byte @offset. */
    std::vector<uint8_t> scattered(size_t offset,
                                   const std::vector<uint8_t> &src)
    {
        std::vector<uint8_t> memory = bytes;

        for (size_t i = 0; i < src.size(); i++) {
            at(offset + i, memory) = src[i];
        }
        return memory;
    }

    std::vector<uint8_t> bytes;
    shape_data_t data;

private:
    std::vector<ptrdiff_t> m_places;
};

/* An open view for devices of these domains */
class test_view {
public:
    test_view(const shaped_mem &mem, const std::vector<void *> &mds,
              int is_dest)
    {
        uct_dcx_view_status_t status =
            m_views->open(mds.data(), mds.size(), &mem.data, is_dest, &m_view);

        if (status != UCT_DCX_VIEW_OK) {
            throw std::runtime_error("no view: " + std::to_string(status));
        }
    }

    ~test_view() { m_views->close(m_view, 0); }

    test_view(const test_view &) = delete;

    uint64_t address() const { return m_view->address; }

    size_t length() const { return m_view->length; }

    int memory_type() const { return m_view->memory_type; }

private:
    dcx_views m_views;
    uct_dcx_view_t *m_view = NULL;
};

/* A type with a name for messages */
struct named_type {
    named_type(const char *label, const std::vector<shape_nest_t> &nests,
               ptrdiff_t extent) :
        name(label),
        type(std::make_shared<view_type>(nests, extent))
    {
    }

    const char *name;
    std::shared_ptr<view_type> type;
};

inline std::vector<shape_nest_t> rounds_of_two(unsigned count)
{
    std::vector<shape_nest_t> nests;

    for (unsigned i = 0; i < count; i++) {
        nests.push_back(view_type::nest(16 * i, 8));
        nests.push_back(view_type::nest(16 * i + 9, 1));
    }
    return nests;
}

/* Returns one type of each form, for tests that run for all of them. */
inline const std::vector<named_type> &named_types()
{
    auto nest = [](ptrdiff_t offset, size_t bytes,
                   const std::vector<shape_dim_t> &dims = {}) {
        return view_type::nest(offset, bytes, dims);
    };
    static const std::vector<named_type> list = {
        {"plain", {nest(0, 777)}, 777},
        {"column", {nest(0, 8, {{50, 64}})}, 3200},
        {"backwards", {nest(0, 3, {{70, -11}})}, 800},
        {"box", {nest(16, 12, {{5, 40}, {4, 400}, {3, 2000}})}, 6000},
        {"list",
         {nest(500, 100), nest(0, 1), nest(300, 33, {{3, 50}}), nest(7, 200)},
         1000},
        {"rounds", rounds_of_two(30), 480},
        {"descending", {nest(0, 24)}, -32},
    };

    return list;
}

#endif
