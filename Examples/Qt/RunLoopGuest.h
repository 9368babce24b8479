// SPDX-License-Identifier: Apache-2.0

// The main loop of Swift's as a guest of Qt's: make one in main, after the QApplication.

#pragma once

#include <QSocketNotifier>

extern "C" {
// Of Sources/GuestLibrary.
int guest_begin(void);
void guest_service(void);
void guest_end(void);
void guest_load(void (*answer)(const char *text, void *context), void *context);
}

class RunLoopGuest {
 public:
  // The descriptor becomes readable at the loop's deadlines too, so that no QTimer is needed.
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
