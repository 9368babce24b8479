// SPDX-License-Identifier: Apache-2.0

// A C library whose handle belongs to one thread, as those of SQLite in its multi-thread mode, OpenGL or GTK do. With
// SQLite's header at hand it is SQLite; otherwise a table of integers that checks its thread.
#pragma once

typedef struct cstore cstore;

// Opens a store that belongs to the calling thread; NULL: it cannot be opened.
cstore *cstore_open(void);
// Opens a store that is a file, in which every entry is there once, for the calling thread; NULL: it cannot be opened,
// or the library keeps no files.
cstore *cstore_open_file(const char *path);
// Begins, commits or gives up a transaction; 0, or -1 on another thread or for an error of the library.
int cstore_begin(cstore *store);
int cstore_commit(cstore *store);
int cstore_roll_back(cstore *store);
// Whether there is an entry: 1 or 0, or -1.
int cstore_contains(cstore *store, int value);
// Adds an entry; 0, or -1 on another thread or for an error of the library.
int cstore_insert(cstore *store, int value);
// The sum of all entries, or -1.
long cstore_sum(cstore *store);
// Closes the store; 0, or -1 on another thread.
int cstore_close(cstore *store);
// What keeps the entries.
const char *cstore_library(void);
