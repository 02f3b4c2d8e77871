// How the elements of a tensor are laid out; see mindapi/base/format.h for the names.
#ifndef MINDSPORE_INCLUDE_API_FORMAT_H
#define MINDSPORE_INCLUDE_API_FORMAT_H

// A program has the directory above include/ on its path, or include/ itself.
#if __has_include("include/mindapi/base/format.h")
#include "include/mindapi/base/format.h"
#else
#include "mindapi/base/format.h"
#endif

#endif  // MINDSPORE_INCLUDE_API_FORMAT_H
