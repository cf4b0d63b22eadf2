/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds the ELF text segment of an address, and reads its original bytes from
 * the module's file. The trap needs the instruction under a debugger's
 * breakpoint, hca_patch the bounds of text that it may change.
 */
#ifndef HCA_TEXT_H
#define HCA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hca_text {
    const char *path; /* of the module's file; /proc/self/exe for the program */
    off_t offset;     /* of the address in it */
    size_t left;      /* bytes of text from the address on */
};

/**
 * Find the loaded module with an address in a segment whose program header
 * says readable, executable and not writable. May be called in the handler of a
 * fault at it.
 *
 * @param out  path is valid as long as the module is loaded
 *
 * @return false if there is none.
 */
bool hca_text_find(uintptr_t addr, struct hca_text *out);

/**
 * Read text from the module's file, free of breakpoints.
 *
 * @return Bytes read, at most @len; 0 also if the file cannot be read.
 */
size_t hca_text_original(uintptr_t addr, void *bytes, size_t len);

#endif
