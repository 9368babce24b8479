// SPDX-License-Identifier: Apache-2.0

// What a program must not take from others: files that they have put at a name, and the environment in which they start
// a program that has more rights than they have. The calls that make files, and those that read the environment, are
// here and nowhere else, which `.ci/lint` checks.

#ifndef CRUNLOOPSAFETY_H
#define CRUNLOOPSAFETY_H

#include <stdint.h>

// A variable of the environment; NULL if it is not set, or the process has more rights than the user who started it
// (AT_SECURE: a set-user-id or set-group-id program, one with capabilities of its file). It is valid until the variable
// is changed.
const char *crl_environment(const char *name);

// The same whatever the process's rights are: for a text that is compared with words and nothing else, and that is no
// path, no address, no list of either and no number of a descriptor.
const char *crl_environment_word(const char *name);

// Makes a file that was not there, for reading and writing, closed on exec; a link of that name is not followed.
// Returns a descriptor, or a negative errno.
int crl_file_make(int directory, const char *name, uint32_t mode);

// Makes a file for reading and writing, or opens the one that is there, in a directory in which only this user can make
// files. A link is not followed, and nothing else than a file of this user's with one name is opened (EPERM).
int crl_file_make_or_open(int directory, const char *name, uint32_t mode);

// Makes a file without a name, for reading and writing, closed on exec. Returns a descriptor, or a negative errno: also
// if it could have no name later, as there is no /proc.
int crl_file_make_unnamed(int directory, uint32_t mode);

// Makes a file that can have no name, for this user alone, closed on exec. Returns a descriptor, or a negative errno.
int crl_file_make_nameless(const char *directory);

// Lets a file of crl_file_make_unnamed have a name that no other has.
int crl_file_name(int file, int directory, const char *name);

// The mode that a file would get that is made with `mode` now; the mask is not changed. Without /proc: without all
// rights of others.
uint32_t crl_file_masked_mode(uint32_t mode);

#endif
