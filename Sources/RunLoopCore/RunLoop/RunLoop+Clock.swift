extension RunLoop {
  /// The time by the loop's clock, for the floors above that count a time-out on it.
  ///
  /// Any thread.
  package var clockNow: Tick { waiter.now }
}
