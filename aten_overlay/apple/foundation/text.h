// Strings between C++ and Foundation.
#pragma once
#include <Foundation/Foundation.h>

#include <cstdarg>
#include <string>

namespace porter {

// A new autoreleased string.
NSString* string(const std::string& text);

// printf's formats and `%@`, the description of an object.
std::string format(const char* pattern, va_list arguments);

inline std::string text(NSString* value) {
  return value ? [value UTF8String] : "";
}

}  // namespace porter
