// SPDX-License-Identifier: Apache-2.0

// GLib as Debian's libglib2.0-dev has it. CHostLoop.c includes it itself; this makes the package manager ask
// pkg-config.
#pragma once
#include <glib.h>
