import Glibc
import PrefetchHelper

// The program that decodes and encodes pictures for `worker`, which starts it. It is a separate program, so that
// `worker` need not load the image libraries.
exit(HelperMain.main(Array(CommandLine.arguments.dropFirst())))
