// MS_API marks what the shared library exports; everything else in it is hidden.
#ifndef MINDSPORE_INCLUDE_API_VISIBLE_H
#define MINDSPORE_INCLUDE_API_VISIBLE_H

#ifndef MS_API
#define MS_API __attribute__((visibility("default")))
#endif

#endif  // MINDSPORE_INCLUDE_API_VISIBLE_H
