import Glibc
import RunLoopConformance

exit(ConformanceCommand().run(Array(CommandLine.arguments.dropFirst())))
