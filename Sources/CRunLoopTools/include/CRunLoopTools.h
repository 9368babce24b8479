// SPDX-License-Identifier: Apache-2.0

// What the tool needs of the system and Swift's Glibc module does not show. Each returns a negative error number for a
// failure.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Reads and writes the memory of another process.
long crlt_read(int process, uint64_t address, void *buffer, size_t size);
long crlt_write(int process, uint64_t address, const void *buffer, size_t size);

// Copies from memory whose pages may not be there, as of a file on a full tmpfs; numbered: as `crl_numbered_copy` does.
// Returns 0 if that is not possible, and the target is zero then if the memory is not there. It handles SIGBUS from the
// first call on.
int crlt_copy(const void *source, void *target, size_t size, int is_numbered);

// Stores a word that another process reads, and waits as long as it keeps a value, or so many milliseconds.
void crlt_store(uint32_t *word, uint32_t value);
void crlt_futex_wait(uint32_t *word, uint32_t expected, int milliseconds);

// Memory in which a process can leave its records; returns its descriptor.
int crlt_memory(void);

// Makes a process that waits until it is let go, and then becomes a program, which may use the memory; returns its
// number.
int crlt_spawn_held(const char *const arguments[], const char *variable, const char *value, int memory, int *gate);
// Lets it go.
void crlt_let_go(int gate);
// Waits for its end; returns the status as `waitpid` has it.
int crlt_wait(int process, int *status);

// From now on the signals that interrupt a command are only noted, the first of each, until it is at its end.
void crlt_interruption_begin(void);
int crlt_interruption_has_come(void);
void crlt_interruption_end(void);

// Lets go of every level that this process holds by a header, here or in another process (0: here), when one of the
// signals INT, TERM, HUP, PIPE and QUIT ends it; gives what it is taken back with, -1 if too many are guarded.
int crlt_level_guard(int process, uint64_t address);
void crlt_level_unguard(int place);

// The name that a mangled name of Swift stands for, to be freed; null if it is none.
char *crlt_demangle(const char *name);
// The same with all modules, those of extensions too.
char *crlt_demangle_qualified(const char *name);
