// SPDX-License-Identifier: Apache-2.0

// GTK 4 as Debian's libgtk-4-dev has it.
#pragma once
#include <gtk/gtk.h>
