// SPDX-License-Identifier: Apache-2.0

// GLib from Debian's libglib2.0-dev. CHostLoop.c includes it itself; this module makes the package manager ask
// pkg-config for its flags.
#pragma once
#include <glib.h>
