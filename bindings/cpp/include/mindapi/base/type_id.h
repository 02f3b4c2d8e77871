#ifndef MINDSPORE_INCLUDE_MINDAPI_BASE_TYPE_ID_H
#define MINDSPORE_INCLUDE_MINDAPI_BASE_TYPE_ID_H

#if __has_include("include/ir/dtype/type_id.h")
#include "include/ir/dtype/type_id.h"
#else
#include "ir/dtype/type_id.h"
#endif

#endif  // MINDSPORE_INCLUDE_MINDAPI_BASE_TYPE_ID_H
