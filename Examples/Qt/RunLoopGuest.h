// SPDX-License-Identifier: Apache-2.0

// Swift's main loop as a guest of Qt's. Create one in main, after the QApplication.

#pragma once

#include <QSocketNotifier>

extern "C" {
// Implemented in Sources/GuestLibrary.
int guest_begin(void);
void guest_service(void);
void guest_end(void);
void guest_load(void (*answer)(const char *text, void *context), void *context);
}

class RunLoopGuest {
 public:
  // The descriptor also becomes readable at the loop's deadlines, so no QTimer is needed.
  RunLoopGuest() : notifier(guest_begin(), QSocketNotifier::Read) {
    QObject::connect(&notifier, &QSocketNotifier::activated, [] { guest_service(); });
  }

  ~RunLoopGuest() {
    notifier.setEnabled(false);
    guest_end();
  }

 private:
  QSocketNotifier notifier;
};
