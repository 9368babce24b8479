// SPDX-License-Identifier: Apache-2.0

// Lets a process meet the kernel of a sandbox: calls that are refused, no /proc, another user. What is set up holds for
// the process and its children, permanently. A failure is a negative errno.
#pragma once

#include <stdint.h>

// The number of a call by its name; negative: the table does not have it.
int call_filter_number(const char *name);

// Refuses a call with an error. `argument` is the place of an argument, which must be `value`; negative: all such calls
// are refused.
int call_filter_refuse(int number, int argument, uint32_t value, int error);

// Hides /proc behind an empty directory, in a namespace of the process's own.
int call_filter_hide_proc(void);

// Becomes another user, without privileges.
int call_filter_become(unsigned user);

// Makes a timer of the kernel's that has a descriptor, sets it and closes it; 0 if all of that can be done.
int call_filter_try_timer(void);
