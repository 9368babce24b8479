// SPDX-License-Identifier: Apache-2.0

// GTK 4 from Debian's libgtk-4-dev.
#pragma once
#include <gtk/gtk.h>
