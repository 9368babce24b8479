// SPDX-License-Identifier: Apache-2.0

// System calls of a terminal device: opening the terminal again, its modes and size, and restoring it however the
// process ends. Functions that can fail return a negative errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Opens the terminal of a descriptor again, non-blocking and closed on exec. The original description, which other
// code shares, is not changed.
int crl_terminal_open_again(int descriptor);

int crl_terminal_is_one(int descriptor);

// Returns whether two descriptors refer to the same terminal.
int crl_terminal_is_same(int first, int second);

int crl_terminal_size(int descriptor, int *columns, int *rows);
// Sets the size at the other end of the terminal, as a terminal window does.
int crl_terminal_set_size(int descriptor, int columns, int rows);

// The maximum number of terminals that a process can have open.
enum { CRL_TERMINALS = 8 };

// Saves the modes of a terminal, to be restored however the process ends. Returns a number that identifies them,
// -EBUSY if they are already saved, or -EMFILE if too many terminals are open.
int crl_terminal_keep(int descriptor);

// Sets the modes for a screen: bytes are delivered immediately, without echo, and keys raise no signals.
int crl_terminal_set_raw(int number);

// Restores the saved modes. Has no effect if the process is in the background.
int crl_terminal_put_back(int number);

// Sets the bytes to write, and the number of replies to wait for, if the process ends without restoring the terminal.
// If `bytes` is NULL, the terminal was already restored.
void crl_terminal_prepare(int number, const uint8_t *bytes, size_t count, int answers);

// Discards the saved modes of a terminal.
void crl_terminal_forget(int number);

// Waits up to half a second for `count` replies to DA1, and discards all input. Async-signal-safe.
void crl_terminal_drop_answers(int descriptor, int count);

// Reads or writes as much as possible without blocking.
int crl_terminal_read(int descriptor, void *bytes, size_t count);
int crl_terminal_write(int descriptor, const void *bytes, size_t count);
// Does the same for an open screen, whose output is dropped once another thread has restored it for the process's end.
int crl_terminal_write_frame(int descriptor, const void *bytes, size_t count);
// Writes all bytes, and waits for room up to a time limit. Async-signal-safe.
int crl_terminal_write_all(int descriptor, const void *bytes, size_t count, int milliseconds);

// Redirects standard output and error to a memory file if they refer to the descriptor's terminal. Returns 1 if either
// does.
int crl_terminal_capture_output(int descriptor);
// Returns whether a descriptor refers to that memory file.
int crl_terminal_is_captured(int descriptor);
// Keeps the last mebibyte of captured output and frees the rest. Returns 1 if anything was written since the last
// call. Output between two calls is not limited. Must be called on the main thread, outside of signal handlers.
int crl_terminal_trim_output(void);
// Restores standard output and standard error, and writes the last mebibyte of captured output. Async-signal-safe.
void crl_terminal_show_output(void);

// Stops the process like the terminal's suspend key. Returns when the process continues, or immediately if nothing
// could continue it. If `terminal` is not negative and this process is in its foreground group, the group is stopped.
void crl_terminal_stop(int terminal);

void crl_terminal_close(int descriptor);

// Creates a pseudo-terminal. Returns the controlling end, closed on exec, and the path of the other end.
int crl_terminal_make(char *path, size_t capacity);
