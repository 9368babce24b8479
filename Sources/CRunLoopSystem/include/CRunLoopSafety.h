// SPDX-License-Identifier: Apache-2.0

// Protection against input from other users: files that they have created under a name, and the environment in which
// they start a program with more privileges than they have. All calls that create files or read the environment are in
// this file, which `.ci/lint` checks.

#ifndef CRUNLOOPSAFETY_H
#define CRUNLOOPSAFETY_H

#include <stdint.h>

// Returns an environment variable, or NULL if it is not set or the process has more privileges than the user who
// started it (AT_SECURE: a set-user-ID or set-group-ID program, or one with file capabilities). Valid until the
// variable changes.
const char *crl_environment(const char *name);

// Like crl_environment, but regardless of the process's privileges. Only for text that is compared with fixed words,
// and never for a path, an address, a list of either, or a descriptor number.
const char *crl_environment_word(const char *name);

// Creates a file that must not exist yet, for reading and writing, closed on exec. Does not follow a link of that
// name. Returns a descriptor or a negative errno.
int crl_file_make(int directory, const char *name, uint32_t mode);

// Creates a file for reading and writing, or opens the existing one, in a directory in which only this user can create
// files. Follows no link, and opens only a file of this user's that has a single name (otherwise EPERM).
int crl_file_make_or_open(int directory, const char *name, uint32_t mode);

// Creates an unnamed file for reading and writing, closed on exec. Returns a descriptor or a negative errno; also
// fails if the file could not be named later because there is no /proc.
int crl_file_make_unnamed(int directory, uint32_t mode);

// Creates a file that can never be named, for this user only, closed on exec. Returns a descriptor or a negative errno.
int crl_file_make_nameless(const char *directory);

// Links a file created by crl_file_make_unnamed to a name, which must not exist yet.
int crl_file_name(int file, int directory, const char *name);

// The mode that a file created with `mode` would get, determined without changing the umask. Without /proc, all
// permissions of the group and of others are removed.
uint32_t crl_file_masked_mode(uint32_t mode);

#endif
