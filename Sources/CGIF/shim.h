#pragma once

// Only for the version in its macros, which Swift imports as constants: they belong to the identity of renditions.
#include <gif_lib.h>
