// SPDX-License-Identifier: Apache-2.0

// What Core Foundation has for run loops and its public headers do not say, or say otherwise.
#pragma once

#include <stdbool.h>

// The mode of the innermost run, NULL outside every run; to be released.
const void *cvc_copy_current_mode(const void *loop);

// Ends the next run of a mode that comes to the end of a pass.
void cvc_stop_mode(const void *loop, const void *mode);

// Whether a source is signalled.
bool cvc_is_signalled(const void *source);
