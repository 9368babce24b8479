// SPDX-License-Identifier: Apache-2.0

// The umbrella that people import beside Foundation. Exporting the modules makes everything visible; exporting each
// type by name makes it win where Foundation has one of the same name.
//
// No other file of this module imports one of these types by its name, as it would not export it, and of two imports of
// one name the compiler keeps one: beside Foundation, other files say `RunLoopCore.Port`.
@_exported public import RunLoopCore
@_exported public import class RunLoopCore.Port
@_exported public import class RunLoopCore.RunLoop
@_exported public import class RunLoopCore.Timer
@_exported public import RunLoopFoundation
@_exported public import func RunLoopFoundation.CFRunLoopStop
@_exported public import class RunLoopFoundation.NotificationQueue
@_exported public import class RunLoopFoundation.PortMessage
@_exported public import protocol RunLoopFoundation.PortDelegate
@_exported public import RunLoopThreads
@_exported public import class RunLoopThreads.Thread
