// SPDX-License-Identifier: Apache-2.0

// Reproduces the kernel interface of a sandbox: blocked calls, no /proc, another user. The changes are permanent, and
// apply to the process and its children. A failure is a negative errno.
#pragma once

#include <stdint.h>

// Returns the number of a call by its name, or a negative number if the table does not contain it.
int call_filter_number(const char *name);

// Makes a call fail with an error. `argument` is the index of an argument that must equal `value`; if it is negative,
// every such call fails.
int call_filter_refuse(int number, int argument, uint32_t value, int error);

// Hides /proc behind an empty directory, in the process's own namespace.
int call_filter_hide_proc(void);

// Changes to another user, without privileges.
int call_filter_become(unsigned user);

// Creates, sets and closes a timer descriptor. Returns 0 if all three calls succeed.
int call_filter_try_timer(void);
