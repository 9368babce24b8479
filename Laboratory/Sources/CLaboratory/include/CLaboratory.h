// SPDX-License-Identifier: Apache-2.0

// What the laboratory needs of the system and Swift's Glibc module does not show: who the calling thread is, and the
// names of the functions on its stack.
#pragma once

#include <stdint.h>

// The kernel's number of the calling thread.
int32_t lab_thread_number(void);

// The calling thread's stack: the addresses that its calls return to, the innermost first, which is in the caller of
// this function. Returns how many there are, at most `capacity`.
int lab_stack(uintptr_t *addresses, int capacity);

// The functions of a program or library by name, from the symbol table of its file.
typedef struct lab_symbols lab_symbols;
// Reads a file's; null if it is not an executable file of this machine's kind, or has no symbols. To be freed.
lab_symbols *lab_symbols_read(const char *path);
void lab_symbols_free(lab_symbols *symbols);
// The function at a distance from the beginning of the file in memory; null if there is none. The name belongs to the
// table.
const char *lab_symbols_find(const lab_symbols *symbols, uint64_t distance);

// The program or library that has an address: where it begins in memory, its path, and the exported function there if
// there is one. The texts belong to the dynamic linker. The path of the program itself is that of its file, however it
// was started. Returns whether there is one.
typedef struct lab_image {
  uint64_t base;
  const char *path, *symbol;
} lab_image;
int lab_image_find(uint64_t address, lab_image *image);

// The name that a mangled name of Swift stands for, without the name of its module, to be freed; null if it is none.
char *lab_demangle(const char *name);
