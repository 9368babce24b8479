// SPDX-License-Identifier: Apache-2.0

// System functions that Swift's Glibc module does not expose: the calling thread's number, and the names of the
// functions on its stack.
#pragma once

#include <stdint.h>

// Returns the kernel's number of the calling thread.
int32_t lab_thread_number(void);

// Stores the return addresses on the calling thread's stack, the innermost first, which is in the caller of this
// function. Returns their number, at most `capacity`.
int lab_stack(uintptr_t *addresses, int capacity);

// The functions of a program or library by name, from the symbol table of its file.
typedef struct lab_symbols lab_symbols;
// Reads a file's symbols. Returns null if it is not an executable for this machine, or has none. Must be freed.
lab_symbols *lab_symbols_read(const char *path);
void lab_symbols_free(lab_symbols *symbols);
// Returns the function at a distance from the beginning of the file in memory, or null. The name belongs to the
// table.
const char *lab_symbols_find(const lab_symbols *symbols, uint64_t distance);

// Finds the program or library that contains an address: its base address, its path, and the exported function at the
// address, if any. The texts belong to the dynamic linker. For the program itself the path is that of its file.
// Returns whether one was found.
typedef struct lab_image {
  uint64_t base;
  const char *path, *symbol;
} lab_image;
int lab_image_find(uint64_t address, lab_image *image);

// Demangles a Swift name, without its module. Returns null if it is not a mangled name. Must be freed.
char *lab_demangle(const char *name);
