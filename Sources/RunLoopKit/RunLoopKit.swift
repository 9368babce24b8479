// The umbrella that people import beside Foundation. Exporting the modules makes everything visible; exporting each type by
// name makes it win where Foundation has one of the same name.
@_exported public import RunLoopCore
@_exported public import class RunLoopCore.Port
@_exported public import class RunLoopCore.RunLoop
@_exported public import class RunLoopCore.Timer
@_exported public import RunLoopFoundation
@_exported public import class RunLoopFoundation.NotificationQueue
@_exported public import RunLoopPorts
@_exported public import RunLoopThreads
@_exported public import class RunLoopThreads.Thread
