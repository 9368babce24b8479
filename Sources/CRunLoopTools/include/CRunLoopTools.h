// SPDX-License-Identifier: Apache-2.0

// What the tool needs of the system and Swift's Glibc module does not show. Each returns a negative error number for a
// failure.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Reads and writes the memory of another process.
long crlt_read(int process, uint64_t address, void *buffer, size_t size);
long crlt_write(int process, uint64_t address, const void *buffer, size_t size);

// Copies from memory whose pages may not be there, as of a file on a full tmpfs; numbered: as `crl_numbered_copy` does.
// Returns 0 if that is not possible, and the target is zero then if the memory is not there. It handles SIGBUS from the
// first call on.
int crlt_copy(const void *source, void *target, size_t size, int is_numbered);

// Calls a function of C that touches such memory; 0 if the memory is not there, and then it was left where it touched
// that.
int crlt_guarded(void (*work)(void *context), void *context);

// Takes a place for this process among the holders of a header in such memory, after it has freed those of tools that
// have ended, and settles the level. Returns the place; -EBUSY: none is free; -EFAULT: the memory is not there.
int crlt_hold_take(void *header, int process, uint64_t start, uint32_t level, int is_elsewhere);
// Frees it; -EFAULT: the memory is not there.
int crlt_hold_free(void *header, int place, int process);

// Stores a word that another process reads, and waits as long as it keeps a value, or so many milliseconds. Storing
// returns 0 if the memory is not there.
int crlt_store(uint32_t *word, uint32_t value);
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

// What the calling thread could do with files before.
typedef struct crlt_files {
  uint32_t user, group, capabilities;
  int count;
  gid_t *groups;
} crlt_files;
// Lets the calling thread of a process of root's open files as a user does; of another, as the process's own user does,
// without capabilities that pass over the modes of files. Ends that.
int crlt_files_begin(uint32_t user, uint32_t group, crlt_files *before);
void crlt_files_end(crlt_files *before);

// How many bytes of addresses and how many seconds of a processor a program may use.
typedef struct crlt_limits {
  uint64_t memory, seconds;
} crlt_limits;
// Runs a program with the rights of a user, who is another only if this process is root's: without an environment, a
// terminal or descriptors, in a session of its own, and not longer than the calling thread lives. Returns its number,
// and a descriptor of what it writes.
int crlt_run_restricted(
  const char *const arguments[], const crlt_limits *limits, uint32_t user, uint32_t group, int *output);
// The same for a function of this program, of which the child has a copy; what it calls must be safe after a fork.
int crlt_do_restricted(
  void (*work)(void *context), void *context, const crlt_limits *limits, uint32_t user, uint32_t group, int *output);
// Waits for it for so long, and ends it and all that it has started; returns the status as `waitpid` has it.
int crlt_end_restricted(int process, int milliseconds);

// The name that a mangled name of Swift stands for, to be freed; null if it is none, or its text has more than 1 MiB.
// With all modules, those of extensions too, if it is qualified.
//
// What may have a long text is the work of a child with limits.
char *crlt_demangle(const char *name, int is_qualified);
