// SPDX-License-Identifier: Apache-2.0

// The records that loops keep in shared memory for the instruments, and how a watcher inspects threads.
#pragma once

#include "CRunLoopInstruments.h"
#include "CRunLoopWatch.h"
