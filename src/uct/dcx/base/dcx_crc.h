/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The checksum of bytes that come from outside: addresses and packed keys,
 * which may be cut off, damaged, or of another transport.
 */
#ifndef UCT_DCX_CRC_H
#define UCT_DCX_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <ucs/config/types.h>
#include <ucs/sys/math.h>


/* Returns the CRC-32C of @size bytes (RFC 3720, appendix B.4). @seed: the CRC
 * of what is in front of them, or a number for each kind of data; 0 for that of
 * the standard. Four bits at a time: the table is one cache line, and a key
 * takes 40 instructions. */
static inline uint32_t uct_dcx_crc(uint32_t seed, const void *data, size_t size)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const uint8_t *bytes = (const uint8_t *)data;
    uint32_t crc         = ~seed;
    size_t i;

    for (i = 0; i < size; ++i) {
        crc ^= bytes[i];
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}


/* Returns the level at which a fault is logged, behind @num_faults others: a
 * peer cannot fill the log. */
static inline ucs_log_level_t uct_dcx_fault_level(const unsigned *num_faults)
{
    unsigned num = __atomic_load_n(num_faults, __ATOMIC_RELAXED);

    return ((num < 64) || ucs_is_pow2(num)) ? UCS_LOG_LEVEL_ERROR :
                                              UCS_LOG_LEVEL_DEBUG;
}

#endif
