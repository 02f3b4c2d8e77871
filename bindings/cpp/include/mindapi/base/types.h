#ifndef MINDSPORE_INCLUDE_MINDAPI_BASE_TYPES_H
#define MINDSPORE_INCLUDE_MINDAPI_BASE_TYPES_H

#if __has_include("include/mindapi/base/format.h")
#include "include/mindapi/base/format.h"
#include "include/mindapi/base/type_id.h"
#else
#include "mindapi/base/format.h"
#include "mindapi/base/type_id.h"
#endif

#endif  // MINDSPORE_INCLUDE_MINDAPI_BASE_TYPES_H
