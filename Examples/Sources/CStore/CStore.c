// SPDX-License-Identifier: Apache-2.0

#include "CStore.h"

#include <pthread.h>
#include <stdlib.h>

#ifdef HAS_SQLITE
#include <sqlite3.h>
#endif

struct cstore {
  pthread_t owner;
#ifdef HAS_SQLITE
  sqlite3 *database;
  sqlite3_stmt *insert;
#else
  long sum;
#endif
};

static int is_owner(const cstore *store) { return pthread_equal(store->owner, pthread_self()); }

#ifdef HAS_SQLITE
const char *cstore_library(void) { return "SQLite"; }

static cstore *open_at(const char *path, const char *statements) {
  cstore *store = calloc(1, sizeof *store);
  if (store == NULL) return NULL;
  store->owner = pthread_self();
  if (sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) !=
          SQLITE_OK ||
      sqlite3_exec(store->database, statements, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(store->database, "INSERT INTO entry VALUES (?)", -1, &store->insert, NULL) != SQLITE_OK) {
    sqlite3_close(store->database);
    free(store);
    return NULL;
  }
  return store;
}

cstore *cstore_open(void) { return open_at(":memory:", "CREATE TABLE entry (value INTEGER)"); }

cstore *cstore_open_file(const char *path) {
  // SQLite's default journal mode. Each commit is on disk before it returns.
  return open_at(path, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; "
                       "CREATE TABLE IF NOT EXISTS entry (value INTEGER PRIMARY KEY)");
}

static int execute(cstore *store, const char *statement) {
  return is_owner(store) && sqlite3_exec(store->database, statement, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

int cstore_begin(cstore *store) { return execute(store, "BEGIN IMMEDIATE"); }
int cstore_commit(cstore *store) { return execute(store, "COMMIT"); }
int cstore_roll_back(cstore *store) { return execute(store, "ROLLBACK"); }

int cstore_insert(cstore *store, int value) {
  if (!is_owner(store)) return -1;
  int answer =
      sqlite3_bind_int(store->insert, 1, value) == SQLITE_OK && sqlite3_step(store->insert) == SQLITE_DONE ? 0 : -1;
  sqlite3_reset(store->insert);
  return answer;
}

int cstore_contains(cstore *store, int value) {
  if (!is_owner(store)) return -1;
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(store->database, "SELECT 1 FROM entry WHERE value = ?", -1, &statement, NULL) != SQLITE_OK)
    return -1;
  int answer = -1;
  if (sqlite3_bind_int(statement, 1, value) == SQLITE_OK) {
    int step = sqlite3_step(statement);
    answer = step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : -1;
  }
  sqlite3_finalize(statement);
  return answer;
}

long cstore_sum(cstore *store) {
  if (!is_owner(store)) return -1;
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(store->database, "SELECT sum(value) FROM entry", -1, &statement, NULL) != SQLITE_OK) return -1;
  long sum = sqlite3_step(statement) == SQLITE_ROW ? (long)sqlite3_column_int64(statement, 0) : -1;
  sqlite3_finalize(statement);
  return sum;
}

int cstore_close(cstore *store) {
  if (!is_owner(store)) return -1;
  sqlite3_finalize(store->insert);
  sqlite3_close(store->database);
  free(store);
  return 0;
}
#else
const char *cstore_library(void) { return "a table of integers"; }

cstore *cstore_open(void) {
  cstore *store = calloc(1, sizeof *store);
  if (store != NULL) store->owner = pthread_self();
  return store;
}

// The table of integers has neither a file nor transactions.
cstore *cstore_open_file(const char *path) {
  (void)path;
  return NULL;
}

int cstore_begin(cstore *store) { return is_owner(store) ? 0 : -1; }
int cstore_commit(cstore *store) { return is_owner(store) ? 0 : -1; }
int cstore_roll_back(cstore *store) { return is_owner(store) ? 0 : -1; }

int cstore_contains(cstore *store, int value) {
  (void)store;
  (void)value;
  return -1;
}

int cstore_insert(cstore *store, int value) {
  if (!is_owner(store)) return -1;
  store->sum += value;
  return 0;
}

long cstore_sum(cstore *store) { return is_owner(store) ? store->sum : -1; }

int cstore_close(cstore *store) {
  if (!is_owner(store)) return -1;
  free(store);
  return 0;
}
#endif
