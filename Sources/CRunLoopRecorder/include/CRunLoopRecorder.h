// SPDX-License-Identifier: Apache-2.0

// The record in shared memory that loops leave for the instruments, and how a watcher looks at threads.
#pragma once

#include "CRunLoopInstruments.h"
#include "CRunLoopWatch.h"
