// SPDX-License-Identifier: Apache-2.0

// A C library whose handle belongs to one thread, like those of SQLite in its multi-thread mode, OpenGL or GTK. It
// uses SQLite if its header is installed, and otherwise a table of integers that checks its thread.
#pragma once

typedef struct cstore cstore;

// Opens a store that belongs to the calling thread. Returns NULL on failure.
cstore *cstore_open(void);
// Opens a store in a file for the calling thread, in which every entry is unique. Returns NULL on failure, or if the
// library does not support files.
cstore *cstore_open_file(const char *path);
// Begins, commits or rolls back a transaction. Returns 0, or -1 on another thread or if the library fails.
int cstore_begin(cstore *store);
int cstore_commit(cstore *store);
int cstore_roll_back(cstore *store);
// Returns 1 if the entry exists, 0 if not, and -1 on failure.
int cstore_contains(cstore *store, int value);
// Adds an entry. Returns 0, or -1 on another thread or if the library fails.
int cstore_insert(cstore *store, int value);
// Returns the sum of all entries, or -1.
long cstore_sum(cstore *store);
// Closes the store. Returns 0, or -1 on another thread.
int cstore_close(cstore *store);
// The name of the library that stores the entries.
const char *cstore_library(void);
