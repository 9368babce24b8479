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
#else
  long sum;
#endif
};

static int is_owner(const cstore *store) { return pthread_equal(store->owner, pthread_self()); }

#ifdef HAS_SQLITE
const char *cstore_library(void) { return "SQLite"; }

cstore *cstore_open(void) {
  cstore *store = calloc(1, sizeof *store);
  if (store == NULL) return NULL;
  store->owner = pthread_self();
  if (sqlite3_open_v2(":memory:", &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      NULL) != SQLITE_OK ||
      sqlite3_exec(store->database, "CREATE TABLE entry (value INTEGER)", NULL, NULL, NULL) != SQLITE_OK) {
    sqlite3_close(store->database);
    free(store);
    return NULL;
  }
  return store;
}

int cstore_insert(cstore *store, int value) {
  if (!is_owner(store)) return -1;
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(store->database, "INSERT INTO entry VALUES (?)", -1, &statement, NULL) != SQLITE_OK) return -1;
  int answer = sqlite3_bind_int(statement, 1, value) == SQLITE_OK && sqlite3_step(statement) == SQLITE_DONE ? 0 : -1;
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
