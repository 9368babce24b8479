// SPDX-License-Identifier: Apache-2.0

// What a terminal device needs of the system: opening the terminal anew, its modes, its size, and giving it back
// however the process ends. Each function that can fail gives a negative errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Opens the terminal that a descriptor is of anew, without blocking and closed on exec: the description that others
// share stays as it is.
int crl_terminal_open_again(int descriptor);

int crl_terminal_is_one(int descriptor);

// Whether two descriptors are of the same terminal.
int crl_terminal_is_same(int first, int second);

int crl_terminal_size(int descriptor, int *columns, int *rows);
// For the terminal's other end, as a window does.
int crl_terminal_set_size(int descriptor, int columns, int rows);

// How many terminals one process can have taken.
enum { CRL_TERMINALS = 8 };

// Keeps how the terminal's modes are, and that it has to be given back however the process ends. Gives a number for it;
// -EBUSY: it is kept already; -EMFILE: there are as many as can be.
int crl_terminal_keep(int descriptor);

// Sets the modes for a screen: every byte as it comes, none shown, no signals from keys.
int crl_terminal_set_raw(int number);

// Puts the modes back that were kept. From the background it does nothing.
int crl_terminal_put_back(int number);

// Sets the bytes that are written when the process ends without giving the terminal back, and how many answers are
// waited for then; NULL: it was returned already.
void crl_terminal_prepare(int number, const uint8_t *bytes, size_t count, int answers);

// Forgets a terminal.
void crl_terminal_forget(int number);

// Waits until as many answers to DA1 have arrived, for at most half a second, and drops them with all that was typed.
// It can be called in a signal's handler.
void crl_terminal_drop_answers(int descriptor, int count);

// Reads or writes what can be without waiting.
int crl_terminal_read(int descriptor, void *bytes, size_t count);
int crl_terminal_write(int descriptor, const void *bytes, size_t count);
// Writes all, waiting at most so many milliseconds for room.
int crl_terminal_write_all(int descriptor, const void *bytes, size_t count, int milliseconds);

// Redirects the standard output and the standard error to a file in memory, if they are the terminal of the descriptor.
// Returns 1 if any of them is.
int crl_terminal_capture_output(int descriptor);
// Whether the descriptor leads to that memory.
int crl_terminal_is_captured(int descriptor);
// Keeps the last mebibyte of what was captured, and frees the rest. Returns 1 if anything was written since the last
// call. Nothing limits what can be written between two calls. Requires the main thread, outside of a signal handler.
int crl_terminal_trim_output(void);
// Restores the standard output and the standard error, and writes the last mebibyte of what was captured. Can be called
// in a signal handler.
void crl_terminal_show_output(void);

// Stops the process as the terminal's own key does; returns when it continues, or at once if nobody could let it
// continue. `terminal`: stops the processes of its foreground too, if this is one of them; negative: this process
// alone.
void crl_terminal_stop(int terminal);

void crl_terminal_close(int descriptor);

// Makes a pseudo-terminal: returns the window's end, closed on exec, and the path of the other end.
int crl_terminal_make(char *path, size_t capacity);
