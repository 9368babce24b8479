// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopSystem

// Every user closure is called from one of these functions, which are never inlined, so that a backtrace shows what
// the loop was doing. No lock is held during any of them.

@inline(never)
func runLoopIsCallingOutToASource0(_ perform: @Sendable () -> Void) {
  perform()
  crl_keep_frame(1)
}

@inline(never)
func runLoopIsCallingOutToASource1(_ port: Port, _ message: Port.Message) {
  port.receive(message)
  crl_keep_frame(2)
}

@inline(never)
func runLoopIsCallingOutToASource1(
  _ handler: @Sendable (RunLoop.DescriptorSource, RunLoop.DescriptorSource.Events) -> Void,
  _ source: RunLoop.DescriptorSource, _ events: RunLoop.DescriptorSource.Events
) {
  handler(source, events)
  crl_keep_frame(3)
}

@inline(never)
func runLoopIsCallingOutToATimer(_ body: @Sendable (Timer) -> Void, _ timer: Timer) {
  body(timer)
  crl_keep_frame(4)
}

@inline(never)
func runLoopIsCallingOutToAnObserver(
  _ handler: @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void, _ observer: RunLoop.Observer,
  _ activity: RunLoop.Activity
) {
  handler(observer, activity)
  crl_keep_frame(5)
}

@inline(never)
func runLoopIsCallingOutToABlock(_ block: Block) {
  block.body()
  crl_keep_frame(6)
}

/// Performs the hand-off source by calling each hand-off as a block, below this frame.
@inline(never)
func runLoopIsPerformingHandOffs(_ loop: RunLoop, _ mode: ModeState, upTo end: UInt64) {
  while !loop.stopFlag.isEnding, let (block, sequence) = loop.takeHandOff(mode, upTo: end) {
    loop.calling(CRL_KIND_PERFORM, mode, CallNote(hook: nil, code: block.code, item: sequence)) {
      runLoopIsCallingOutToABlock(block)
    }
    if loop.isBudgetOver { break }
  }
  crl_keep_frame(11)
}

@inline(never)
func runLoopIsCallingOutToAnExecutorJob(_ job: LoopJob) {
  job.runner.run(job)
  crl_keep_frame(10)
}

@inline(never)
func runLoopIsCallingOutToASourceSchedule(
  _ body: @Sendable (RunLoop, RunLoop.Mode) -> Void, _ loop: RunLoop, _ mode: RunLoop.Mode
) {
  body(loop, mode)
  crl_keep_frame(7)
}

@inline(never)
func runLoopIsCallingOutToASourceCancel(
  _ body: @Sendable (RunLoop, RunLoop.Mode) -> Void, _ loop: RunLoop, _ mode: RunLoop.Mode
) {
  body(loop, mode)
  crl_keep_frame(8)
}
