// SPDX-License-Identifier: Apache-2.0

// Core Foundation's run loop functions that its public headers omit or declare differently.
#pragma once

#include <stdbool.h>

// Returns the mode of the innermost run, or NULL outside every run. The caller must release it.
const void *cvc_copy_current_mode(const void *loop);

// Ends the next run of a mode when it completes a pass.
void cvc_stop_mode(const void *loop, const void *mode);

// Whether a source is signalled.
bool cvc_is_signalled(const void *source);
