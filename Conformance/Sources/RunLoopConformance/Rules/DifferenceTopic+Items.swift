// SPDX-License-Identifier: Apache-2.0

extension DifferenceTopic {
  static let items = DifferenceTopic("items", itemsRules)

  private static let itemsRules = [
    Entry(
      "M5", title: "Sources are equal if they are the same",
      "A source is equal to itself only.",
      notShown: "The sources of a program are all different.",
      """
      In Core Foundation two sources whose contexts are equal are equal, and a mode takes only one of them. Here every
      item is itself. *Reason:* a source that was added and is silently missing is a hang.
      """),
    Entry(
      "M6", title: "Descriptors are level-triggered and left alone",
      "Descriptors are level-triggered, read and write apart, for any number of sources, and the loop reads nothing "
        + "of them.",
      notShown: RuleChapter.descriptorReason,
      """
      In Core Foundation on Linux a descriptor is reported once for each change, eight bytes of it are read by the
      loop itself, and one source for each descriptor and mode is served. Here a descriptor is reported as long as it
      is ready, for reading and writing apart, to any number of sources, and the loop reads nothing. *Reason:* pipes
      and sockets work in no other way.
      """),
    Entry(
      "M7", title: "A descriptor that cannot be watched is an error",
      "A descriptor that cannot be watched is rejected with an error that names the descriptor and the system's "
        + "error; descriptors are opened by adding only; a number that was closed and used again is watched anew.",
      notShown: RuleChapter.descriptorReason,
      """
      Core Foundation accepts a descriptor that cannot be waited for and never reports it, and ends the process when
      it runs out of descriptors. Here adding throws an error with the descriptor and the system's error number;
      descriptors are opened there and nowhere else; and a descriptor number that was closed and reused is watched
      anew. *Reason:* a limit of the system is not a mistake of the program.
      """),
    Entry(
      "M21", title: "Rejections are reported",
      "A call that rejects its argument returns false or throws. The rejection is counted and, where it may be a "
        + "mistake, reported on the standard error with the item, the loop and the thread.",
      notShown: "Programs do not see what a call returns.",
      """
      Core Foundation ignores an item that is added while it is in a mode of another loop, or to a loop that has
      ended. It keeps a block for no mode forever. Here each is rejected: the call returns `false` or throws, the
      rejection is counted, and a likely mistake is reported on the standard error, with the item, the loop and the
      thread. *Reason:* the program can then react.
      """),
    Entry(
      "M22", title: "Closures are released when they are not needed",
      "Closures are released as soon as their item is invalid and no call-out runs.",
      notShown: "Programs hold no objects.",
      """
      Core Foundation keeps the context of a source as long as the source, even after it was invalidated. Here the
      closures of every item are released when it is invalid and no call-out of it runs. *Reason:* an invalidated item
      must not keep the objects of its owner alive.
      """),
    Entry(
      "M23", title: "Observers are called for what they ask for",
      "Observers are called for exactly the stages that they ask for.",
      notShown: "It is about the cost of a stage, and no log differs.",
      """
      In Core Foundation a mode records every activity that any of its observers has asked for, and still looks for
      observers of it after they have left. Here a mode knows the activities of its present observers. *Reason:* an absent observer
      costs nothing.
      """),
  ]
}
