#pragma once

// giflib as it is: all that is called has a fixed arity, and the version's macros are imported as constants.
// Reference: https://giflib.sourceforge.net/gif_lib.html
#include <gif_lib.h>
