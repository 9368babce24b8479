// SPDX-License-Identifier: Apache-2.0

// A Qt window whose button starts a task of Swift's main actor. Examples/check-hosts builds this program, which
// presses its own button.

#include <cstdio>

#include <QApplication>
#include <QDialog>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>

#include "RunLoopGuest.h"

int main(int argc, char **argv) {
  QApplication application(argc, argv);
  RunLoopGuest guest;
  QWidget window;
  QVBoxLayout layout(&window);
  QLabel label("press the button");
  QPushButton button("Load");
  layout.addWidget(&label);
  layout.addWidget(&button);
  QObject::connect(&button, &QPushButton::clicked, [&] {
    guest_load(
        [](const char *text, void *context) {
          static_cast<QLabel *>(context)->setText(text);
          printf("%s\n", text);
          fflush(stdout);
        },
        &label);
  });
  window.show();

  // Simulates a user: a press, another one within a dialog, and then nothing for two seconds.
  QTimer::singleShot(0, [&] { button.click(); });
  QTimer::singleShot(300, [&] {
    QDialog dialogue(&window);
    button.click();
    QTimer::singleShot(300, &dialogue, &QDialog::accept);
    dialogue.exec();
    printf("the dialogue is over\n");
    fflush(stdout);
    QTimer::singleShot(2000, [&] { application.quit(); });
  });
  return application.exec();
}
