// SPDX-License-Identifier: Apache-2.0

// System functions for the tool that Swift's Glibc module does not provide. Failures are returned as negative error
// numbers.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Reads and writes the memory of another process.
long crlt_read(int process, uint64_t address, void *buffer, size_t size);
long crlt_write(int process, uint64_t address, const void *buffer, size_t size);

// Copies from memory whose pages may be missing, for example in a file on a full tmpfs; `is_numbered` selects
// `crl_numbered_copy`. Returns 0 on failure, and fills the target with zeros if the memory is missing. Handles SIGBUS
// from the first call on.
int crlt_copy(const void *source, void *target, size_t size, int is_numbered);

// Calls a C function that accesses such memory. Returns 0 if memory is missing, in which case the function was left at
// that point.
int crlt_guarded(void (*work)(void *context), void *context);

// Takes a place for this process among the holders in a header, after releasing those of ended tools, and updates the
// level. Returns the place, -EBUSY if none is free, or -EFAULT if the memory is missing.
int crlt_hold_take(void *header, int process, uint64_t start, uint32_t level, int is_elsewhere);
// Releases the place; returns -EFAULT if the memory is missing.
int crlt_hold_free(void *header, int place, int process);

// Stores a word that another process reads, and waits while it has a value, up to a number of milliseconds. Storing
// returns 0 if the memory is missing.
int crlt_store(uint32_t *word, uint32_t value);
void crlt_futex_wait(uint32_t *word, uint32_t expected, int milliseconds);

// Creates memory for the records of a child process, and returns its descriptor.
int crlt_memory(void);

// Starts a process that waits at a gate and then executes a program, which inherits the memory. Returns its process
// ID.
int crlt_spawn_held(const char *const arguments[], const char *variable, const char *value, int memory, int *gate);
// Opens the gate.
void crlt_let_go(int gate);
// Waits for the process to end, and returns its `waitpid` status.
int crlt_wait(int process, int *status);

// Between these calls, the first of each interrupting signal is only recorded.
void crlt_interruption_begin(void);
int crlt_interruption_has_come(void);
void crlt_interruption_end(void);

// Releases every level that this process holds in a header, in this (0) or another process, when INT, TERM, HUP, PIPE
// or QUIT ends it. Returns a handle for `crlt_level_unguard`, or -1 if there are too many.
int crlt_level_guard(int process, uint64_t address);
void crlt_level_unguard(int place);

// The previous file access rights of a thread.
typedef struct crlt_files {
  uint32_t user, group, capabilities;
  int count;
  gid_t *groups;
} crlt_files;
// Lets the calling thread open files with the rights of a user if this process runs as root. Otherwise, it uses the
// process's own rights, without capabilities that override file permissions. `crlt_files_end` restores the previous
// rights.
int crlt_files_begin(uint32_t user, uint32_t group, crlt_files *before);
void crlt_files_end(crlt_files *before);

// The maximum address space in bytes and processor time in seconds, and a descriptor for the standard input, or zero
// for an empty one.
typedef struct crlt_limits {
  uint64_t memory, seconds;
  int input;
} crlt_limits;
// Runs a program with the rights of a user, which may differ only if this process runs as root. The program has no
// environment, terminal or other descriptors, runs in its own session, and ends with the calling thread. Returns its
// process ID, and a descriptor for its output.
int crlt_run_restricted(
  const char *const arguments[], const crlt_limits *limits, uint32_t user, uint32_t group, int *output);
// Like `crlt_run_restricted`, but runs a function in a forked child. The function must be safe after a fork.
int crlt_do_restricted(
  void (*work)(void *context), void *context, const crlt_limits *limits, uint32_t user, uint32_t group, int *output);
// Waits for the child with a time limit, ends it and its descendants, and returns its `waitpid` status.
int crlt_end_restricted(int process, int milliseconds);

// Demangles a Swift name; the caller frees the result. Returns null if the name is invalid or its text exceeds 1 MiB.
// If `is_qualified` is set, all module names are included, also those of extensions.
//
// Names whose text could be long are demangled in a child with limits.
char *crlt_demangle(const char *name, int is_qualified);
